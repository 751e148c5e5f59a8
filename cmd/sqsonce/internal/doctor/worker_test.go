package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/fleet"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/statusreport"
	"github.com/sqsonce/sqsonce/limit"
	"github.com/sqsonce/sqsonce/sqsworker"
	"github.com/sqsonce/sqsonce/status"
)

// processes answer as a status.Handler does, by host.
type processes map[string]*proc

// proc is a process with a worker and a consumer that are well.
type proc struct {
	report  statusreport.Report
	running statusreport.RunningReport
	asked   int
	change  func(p *proc, asked int) // before each answer of /stats, counted from 1
	away    bool
	mute    bool // /running has no answer
}

func newProc(name string) *proc {
	return &proc{
		report: statusreport.Report{
			V: 1, Name: name, Started: time.Now().Add(-time.Hour),
			Workers: []statusreport.Worker{{
				Queue: "orders", URL: "https://sqs/1/orders", State: "running", Intake: "open",
				Options: map[string]float64{"visibility_timeout_seconds": 30, maxInFlight: 30, maxHeld: 120, delayed: 0},
				Stats:   statusreport.Stats{fleet.Stuck: 0, unanswered: 7, fleet.LeasesLost: 2, runsAtOnce: 10},
			}},
			Consumers: []statusreport.Component{{Name: "billing", Stats: statusreport.Stats{messageIDKeys: 0, foreignWriters: 0, fleet.LeasesLost: 1, connections: 10, allowed: 100}}},
		},
		running: statusreport.RunningReport{V: 1, Total: 1, Running: []statusreport.Running{{Queue: "orders", MessageID: "m1", Seconds: 95, Lease: 20}}},
	}
}

func (ps processes) RoundTrip(req *http.Request) (*http.Response, error) {
	p := ps[req.URL.Host]
	if p == nil || p.away {
		return nil, errors.New("connection refused")
	}
	var v any = p.running
	if req.URL.Path == "/stats" {
		if p.asked++; p.change != nil {
			p.change(p, p.asked)
		}
		p.report.Now = time.Now()
		v = p.report
	} else if p.mute {
		return nil, errors.New("connection reset")
	}
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body))}, nil
}

// watched is a healthy deployment with two processes.
func watched(t *testing.T) (*account, processes) {
	a := healthy(t, "orders")
	ps := processes{"one:80": newProc("one"), "two:80": newProc("two")}
	a.clients.HTTP, a.deployment.Workers = &http.Client{Transport: ps}, []string{"http://one:80", "http://two:80"}
	return a, ps
}

func TestWorkersWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, ps := watched(t)
		start := time.Now()
		a.well()
		if took := time.Since(start); took != betweenReads || ps["one:80"].asked != 2 {
			t.Errorf("%s, %d reads", took, ps["one:80"].asked)
		}
		if f := a.of("W1"); f.Text != "2 of 2 processes answer, with 2 workers that are ready, and no handler is stuck" {
			t.Error(f)
		}
	})
}

func TestWorkers(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(p *proc)
		id      string
		verdict Verdict
		says    string
	}{
		"not ready": {func(p *proc) { p.report.Workers[0].NotReady = "paused" }, "W1", Fail, "not ready: http://one:80 of orders (paused)"},
		"stuck": {func(p *proc) {
			p.report.Workers[0].Stats[fleet.Stuck] = 2
			p.running.Running[0].Stuck, p.running.Running[0].Lease = true, -1
		}, "W1", Fail, "handlers are stuck: http://one:80 of orders (2)"},
		"unanswered rises": {func(p *proc) {
			p.change = func(p *proc, n int) { p.report.Workers[0].Stats[unanswered] = float64(7 + 3*n) }
		}, "W2", Warn, "within 2s: http://one:80, worker of orders: 3 receives without an answer"},
		"leases are lost": {func(p *proc) {
			p.change = func(p *proc, n int) { p.report.Workers[0].Stats[fleet.LeasesLost] = float64(n) }
		}, "W2", Warn, "worker of orders: 1 leases lost"},
		"record leases are lost": {func(p *proc) {
			p.change = func(p *proc, n int) { p.report.Consumers[0].Stats[fleet.LeasesLost] = float64(n) }
		}, "W2", Warn, "consumer billing: 1 record leases lost"},
		"restarted": {func(p *proc) {
			p.change = func(p *proc, n int) { p.report.Started = time.Now() }
		}, "W2", Unknown, "http://one:80 has answered once, or was another process"},
		"message IDs":     {func(p *proc) { p.report.Consumers[0].Stats[messageIDKeys] = 12 }, "W3", Warn, "keys are message IDs: http://one:80, consumer billing (12)"},
		"foreign writers": {func(p *proc) { p.report.Consumers[0].Stats[foreignWriters] = 1 }, "W3", Warn, "another program writes the records: http://one:80, consumer billing (1)"},
		"a small pool": {func(p *proc) { p.report.Workers[0].Stats[runsAtOnce] = 11 }, "W3", Warn,
			"http://one:80, consumer billing has 10 connections, worker of orders runs 11 handlers"},
		"large pools": {func(p *proc) { p.report.Consumers[0].Stats[connections] = 91 }, "W3", Warn,
			"consumer billing may open 101 in 2 processes, the server allows 100"},
		"a pool without a limit": {func(p *proc) {
			p.report.Consumers[0].Stats[connections], p.report.Workers[0].Stats[runsAtOnce] = 0, 91
		}, "W3", Warn, "consumer billing may open 101 in 2 processes, the server allows 100"},
		"visible": {func(p *proc) { p.running.Running[0].Lease = 0 }, "W3", Warn,
			"http://one:80, message m1 of orders: its handler has run for 95s, the visibility timeout is 30s"},
		"no group": {func(p *proc) { p.limits("shop/tenant", statusreport.Stats{noGroup: 7}) }, "W4", Warn,
			"a rule limits by message group, and messages without one ran without a limit: http://one:80, rule shop/tenant (7 messages)"},
		"in flight":           {func(p *proc) { p.report.Workers[0].Options[maxHeld] = 99_821 }, "W4", Warn, "are 100001 together, more than 100000: SQS stops delivering at 120000"},
		"in flight, delayed":  {func(p *proc) { p.report.Workers[0].Options[delayed] = 100_000 }, "W4", Warn, "workers of orders are 100300 together"},
		"older options":       {func(p *proc) { delete(p.report.Workers[0].Options, maxHeld) }, "W4", Unknown, "http://one:80 does not report max_held"},
		"running is not said": {func(p *proc) { p.mute = true }, "W3", Unknown, "connection reset"},
	} {
		must.Run(t, name, func(t *testing.T) {
			a, ps := watched(t)
			test.change(ps["one:80"])
			if f := a.only(test.id, test.verdict); !strings.Contains(f.Text, test.says) {
				t.Errorf("%s: want %q", f, test.says)
			}
		})
	}
}

// A process that cannot be asked is no process that is ready, and what is asked of it is not seen.
func TestWorkersAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, ps := watched(t)
		ps["one:80"].away = true
		for id, want := range map[string]Verdict{"W1": Fail, "W2": Unknown, "W3": Unknown, "W4": Unknown} {
			if f := a.of(id); f.Verdict != want || !strings.Contains(f.Text, "http://one:80") || !strings.Contains(f.Text, "connection refused") {
				t.Errorf("%s: want %s", f, want)
			}
		}
		ps["two:80"].away = true
		start := time.Now()
		if f := a.of("W1"); f.Verdict != Fail || time.Since(start) != 0 {
			t.Error(f, "after", time.Since(start))
		}
		a.deployment.Workers = []string{"ftp://one"}
		a.says("W1", Unknown, "must be a URL")
	})
}

// A number that a process does not report is not zero.
func TestWorkersOfAnotherVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, name := range []string{fleet.Stuck, unanswered, messageIDKeys, foreignWriters, connections, runsAtOnce} {
			a, ps := watched(t)
			p := ps["two:80"]
			delete(p.report.Workers[0].Stats, name)
			delete(p.report.Consumers[0].Stats, name)
			skipped := 0
			for _, f := range a.all() {
				if f.Verdict == Unknown && strings.Contains(f.Text, "http://two:80 does not report "+name) {
					skipped++
				} else if f.Verdict != OK {
					t.Error(f)
				}
			}
			if skipped != 1 {
				t.Errorf("without %s %d checks are skipped", name, skipped)
			}
		}
	})
}

// A server that a process cannot ask, or behind a pooler, is no reason to warn.
func TestUnknownServerIsNoProblem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, ps := watched(t)
		ps["one:80"].report.Consumers[0].Stats[connections], ps["one:80"].report.Consumers[0].Stats[allowed] = 500, 0
		delete(ps["two:80"].report.Consumers[0].Stats, allowed) // of an older version
		a.well()
	})
}

func TestManyWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := watched(t)
		a.deployment.Workers = []string{"http://a", "http://b", "http://c", "http://d", "http://e"}
		if f := a.of("W1"); !strings.Contains(f.Text, "http://a (") || !strings.Contains(f.Text, "http://c (") || !strings.HasSuffix(f.Text, " and 2 more") {
			t.Error(f)
		}
	})
}

type consumer struct{}

func (consumer) Stats() (s dedup.Stats) { return s }

// The names are those of package status.
func TestNamesOfStats(t *testing.T) {
	t.Parallel()
	w := must.Get(sqsworker.New(sqs.New(sqs.Options{Region: "eu-west-1"}), "http://sqs/1/orders", func(context.Context, *sqsonce.Message) error { return nil }))(t)
	h := must.Get(status.Handler(func(o *status.Options) {
		o.Workers, o.Consumers = []*sqsworker.Worker{w}, map[string]status.Consumer{"billing": consumer{}}
		o.Limits = map[string]*limit.Limiter{"billing": must.Get(limit.New([]limit.Rule{{Name: "all", Plan: limit.Plan{Concurrency: 1}}}))(t)}
	}))(t)
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/stats", nil))
	var r statusreport.Report
	must.Do(t, json.Unmarshal(answer.Body.Bytes(), &r))
	for _, want := range []struct {
		stats statusreport.Stats
		names []string
	}{
		{r.Workers[0].Stats, []string{unanswered, fleet.Stuck, fleet.LeasesLost, runsAtOnce}},
		{r.Consumers[0].Stats, []string{messageIDKeys, foreignWriters, fleet.LeasesLost, connections, allowed}},
		{r.Workers[0].Options, []string{maxInFlight, maxHeld, delayed}},
		{r.Limits[0].Stats, []string{noGroup, fleet.LimitWaiting, fleet.RunningNow, fleet.LimitNext, fleet.LimitPaused, fleet.LimitPausedUntil, fleet.LimitDown, fleet.LimitKeysDown}},
	} {
		for _, name := range want.names {
			if _, ok := want.stats[name]; !ok {
				t.Errorf("there is no %s in %v", name, want.stats)
			}
		}
	}
}
