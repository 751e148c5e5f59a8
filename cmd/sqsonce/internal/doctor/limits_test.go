package doctor

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/fleet"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/statusreport"
)

// limits gives a process a rule.
func (p *proc) limits(name string, stats statusreport.Stats) {
	p.report.Limits = []statusreport.Limit{{Component: statusreport.Component{Name: name, Stats: stats}}}
}

// Too few receives are found where it is known that the queue's messages wait for a limit, and nowhere else.
func TestReceivesWithALimit(t *testing.T) {
	rules := func(p *proc) { p.limits("shop/tenant", statusreport.Stats{noGroup: 0}) }
	other := statusreport.Worker{
		Queue: "jobs", Options: map[string]float64{"visibility_timeout_seconds": 30, maxInFlight: 30, maxHeld: 120},
		Stats: statusreport.Stats{fleet.Stuck: 0, unanswered: 0, fleet.LeasesLost: 0, runsAtOnce: 10},
	}
	for name, test := range map[string]struct {
		change   func(p *proc)
		receives string
		verdict  Verdict
		says     string
	}{
		"none":              {func(*proc) {}, "5", OK, "100000"},
		"enough":            {rules, "6", OK, "100000"},
		"a rule":            {rules, "5", Warn, "orders has maxReceiveCount 5, less than 6, and its messages wait for a limit (http://one:80)"},
		"an older limiter":  {func(p *proc) { p.limits("shop/tenant", nil) }, "6", Unknown, "http://one:80 does not report no_group"},
		"no redrive policy": {rules, "", OK, "100000"},
		"of another queue":  {func(p *proc) { rules(p); p.report.Workers = []statusreport.Worker{other} }, "5", OK, "100000"},
		"of another account": {func(p *proc) {
			rules(p)
			p.report.Workers[0].URL = "https://sqs.us-east-1.amazonaws.com/999999999999/orders"
		}, "5", OK, "100000"},
		"one of two queues": {func(p *proc) { rules(p); p.report.Workers = append(p.report.Workers, other) }, "5", Unknown,
			"workers of several queues in http://one:80 don't say which"},
		"one of two queues, enough": {func(p *proc) { rules(p); p.report.Workers = append(p.report.Workers, other) }, "6", OK, "100000"},
	} {
		must.Run(t, name, func(t *testing.T) {
			a, ps := watched(t)
			test.change(ps["one:80"])
			policy := ""
			if test.receives != "" {
				policy = `{"deadLetterTargetArn":"` + queueARN(a.dlq()) + `","maxReceiveCount":"` + test.receives + `"}`
			}
			a.setQueue("orders", map[string]string{"RedrivePolicy": policy})
			f := a.of("W4")
			if f.Verdict != test.verdict || !strings.Contains(f.Text, test.says) {
				t.Errorf("%s: want %s with %q", f, test.verdict, test.says)
			}
			if test.verdict != Warn {
				return
			}
			a.fixed("orders", f)
			if f := a.of("W4"); f.Verdict != OK {
				t.Errorf("after the fix: %s", f)
			}
		})
	}
}

// fixed does what a fix says that sets attributes of a queue.
func (a *account) fixed(queue string, f Finding) {
	a.Helper()
	_, text, _ := strings.Cut(f.Fix, "--attributes '")
	attributes := map[string]string{}
	must.Do(a, json.Unmarshal([]byte(strings.TrimSuffix(text, "'")), &attributes))
	a.setQueue(queue, attributes)
}

// A function's limiter is known by a flag alone.
func TestFunctionLimits(t *testing.T) {
	for name, test := range map[string]struct {
		limits, receives string
		change           func(a *account)
		verdict          Verdict // "": does not apply
		says             string
	}{
		"not said":         {receives: "5"},
		"fleet":            {limits: LimitsFleet, receives: "6", verdict: OK},
		"few receives":     {limits: LimitsFleet, receives: "5", verdict: Warn, says: "maxReceiveCount 5, less than 6, and its messages wait for a limit (function billing)"},
		"each for itself":  {limits: LimitsProcess, receives: "6", verdict: Warn, says: "multiplied by up to 10 invocations at a time"},
		"reserved alone":   {LimitsProcess, "6", func(a *account) { a.mappings[0].ScalingConfig, a.reserved["billing"] = nil, 7 }, Warn, "multiplied by up to 7 invocations at a time"},
		"nothing is known": {LimitsProcess, "6", func(a *account) { a.mappings[0].ScalingConfig = nil }, Warn, "multiplied by an unknown number of invocations"},
		"no client": {LimitsFleet, "6", func(a *account) {
			a.deployment.NoClient = true
			a.setQueue("orders", map[string]string{"VisibilityTimeout": "420"})
		}, Warn, "hides each message that waits for a limit for its visibility timeout, 7m, and not until its turn, and SQS moves one that still waits at its last receive to orders-dlq"},
		"no mapping": {limits: LimitsProcess, receives: "6", change: func(a *account) { a.mappings = []*mappingConfiguration{} }},
	} {
		run(t, name, func(a *account) {
			a.setQueue("orders", map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + queueARN(a.dlq()) + `","maxReceiveCount":"` + test.receives + `"}`})
			if test.change != nil {
				test.change(a)
			}
			a.deployment.Limits = test.limits
			if f := a.examine(functionChecks()...)["L7"]; f.Verdict != test.verdict || !strings.Contains(f.Text, test.says) {
				a.Errorf("%s: want %q with %q", f, test.verdict, test.says)
			}
		})
	}
}
