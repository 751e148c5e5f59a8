// Package scenario holds what is measured. For each row it starts an endpoint and a contestant as processes, reads the
// figures of both, and kills them.
package scenario

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce/bench/internal/endpoint"
	"github.com/sqsonce/sqsonce/bench/internal/job"
	"github.com/sqsonce/sqsonce/bench/internal/report"
)

// Scenario is work that several contestants do.
type Scenario struct {
	// Name is the name in the rows. A variant follows a slash: "bodies/1KB".
	Name string
	// Contestants take part, in the order of the rows.
	Contestants []Contestant
	// Latencies of the endpoint: one table for each. A quick run has the first only.
	Latencies []time.Duration
	// Rounds is the most rounds that are run. 0: as many as the user asks for.
	Rounds int
	// Parallel runs the contestants at the same time, where they wait most of the time.
	Parallel bool
	// measure runs one contestant once.
	measure func(context.Context, *Bench, run) (report.Row, error)
}

// Contestant takes part in a scenario.
type Contestant struct {
	// Name is that of the program, and after spaces what its environment sets: "sqsonce GOGC=400".
	Name string
	// Rate is the rate that is expected, in messages a second. It decides how many messages the contestant gets: each
	// contestant then works for about the same time.
	Rate int
}

// program returns the contestant's program and environment.
func (c Contestant) program() (name string, env []string) {
	fields := strings.Fields(c.Name)
	return fields[0], fields[1:]
}

// run is one measurement: a contestant in a scenario, at a latency.
type run struct {
	scenario   Scenario
	contestant Contestant
	latency    time.Duration
}

// All are the scenarios in the order of the report.
var All = slices.Concat(
	[]Scenario{worker, dedup}, lambda, []Scenario{cold}, fifo, []Scenario{outbox, slow}, stop, []Scenario{idle, duplicates}, bodies, []Scenario{memory},
)

// family is the name without the variant.
func (s Scenario) family() string {
	name, _, _ := strings.Cut(s.Name, "/")
	return name
}

// Names returns the names of all scenarios, without variants.
func Names() []string {
	var out []string
	for _, s := range All {
		out = append(out, s.family())
	}
	return slices.Compact(out)
}

// Find returns the variants of a scenario ("fifo"), or one of them ("fifo/0.1").
func Find(name string) []Scenario {
	var out []Scenario
	for _, s := range All {
		if name == s.Name || name == s.family() {
			out = append(out, s)
		}
	}
	return out
}

// Size is how much work a run does.
type Size struct {
	Rounds int
	// AllLatencies measures at every latency of a scenario, not at the first only.
	AllLatencies bool
	// Work is how long a contestant works, at the rate that is expected of it.
	Work time.Duration
	// Limit is the time after which a measurement is ended. Contestants need it only where messages do not come back.
	Limit time.Duration
	// Visibility is the visibility timeout of the scenario slow, in seconds, and Handler how long its handlers take.
	Visibility int
	Handler    time.Duration
	// Idle is how long the scenario idle waits.
	Idle time.Duration
	// Memory is how many messages the scenario memory handles. 0: as many as fit into Work.
	Memory int
	// Install is how long npm may take.
	Install time.Duration
}

// Full is for a report, Quick for a first look at a change, Tiny for the tests of the bench.
var (
	Full = Size{
		Rounds: 3, AllLatencies: true, Work: 5 * time.Second, Limit: time.Minute, Install: 5 * time.Minute,
		Visibility: 10, Handler: 24 * time.Second, Idle: 65 * time.Second, Memory: 1_000_000,
	}
	Quick = Size{
		Rounds: 1, Work: time.Second, Limit: 15 * time.Second, Install: 15 * time.Second,
		Visibility: 3, Handler: 7 * time.Second, Idle: 10 * time.Second,
	}
	Tiny = Size{
		Rounds: 1, Work: 100 * time.Millisecond, Limit: time.Minute, Install: 5 * time.Minute,
		Visibility: 3, Handler: 4 * time.Second, Idle: 2 * time.Second,
	}
)

// The two latencies of a table.
const (
	shortLatency = 5 * time.Millisecond
	longLatency  = 15 * time.Millisecond
)

// row reads the figures of both processes. elapsed 0: the row has no rate.
func (p *pair) row(r run, j job.Job, cfg endpoint.Config, elapsed time.Duration) (report.Row, error) {
	var u job.Usage
	var st endpoint.State
	if err := p.contestant.Call("usage", nil, &u); err != nil {
		return report.Row{}, err
	}
	if err := p.endpoint.Call("state", nil, &st); err != nil {
		return report.Row{}, err
	}
	row := rowOf(r, j, cfg.Events, u, elapsed)
	row.RSS = maxRSS(p.contestant.PID())
	addState(&row, u, st)
	return row, nil
}

// rowOf returns the row of a contestant, with the figures of its own process.
func rowOf(r run, j job.Job, events int, u job.Usage, elapsed time.Duration) report.Row {
	done := 0
	for n := range events {
		if u.Done.Has(n) {
			done++
		}
	}
	row := report.Row{
		Scenario: r.scenario.Name, Contestant: r.contestant.Name,
		Latency: report.Number(r.latency.Milliseconds()), Slots: report.Number(j.Slots),
		Messages: report.Number(done), Doubled: report.Number(u.Doubled),
		CPU: perMessage(float64(u.CPU), done),
	}
	if elapsed > 0 {
		row.Rate = report.Number(float64(done) / elapsed.Seconds())
	}
	if u.Mallocs >= 0 {
		row.Allocs = perMessage(float64(u.Mallocs), done)
	}
	return row
}

// addState adds what the endpoint has counted. A message that was received and remains in the queue is undeleted where
// its handler returned: it will run again. It is hidden where its handler did not return and it is in flight: no consumer
// can receive it until its visibility timeout ends. Otherwise it is visible, and nothing is wrong.
func addState(row *report.Row, u job.Usage, st endpoint.State) {
	done := int(*row.Messages)
	row.SQS, row.Conns = perMessage(float64(st.SQSRequests), done), report.Number(st.Connections)
	if st.DynamoDBRequests > 0 {
		row.DynamoDB, row.WriteUnits = perMessage(float64(st.DynamoDBRequests), done), perMessage(st.WriteUnits, done)
	}
	undeleted, hidden := 0, 0
	for _, m := range st.Remaining {
		switch {
		case m.Event >= 0 && u.Done.Has(m.Event):
			undeleted++
		case m.InFlight:
			hidden++
		}
	}
	row.Undeleted, row.Hidden = report.Number(undeleted), report.Number(hidden)
}

func perMessage(sum float64, messages int) *float64 {
	if messages == 0 {
		return nil
	}
	return report.Number(sum / float64(messages))
}

// maxRSS is the largest resident set of a process, in MB, or nil where there is no /proc. It is not read by getrusage,
// where a child starts with the value of its parent.
func maxRSS(pid int) *float64 {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(raw)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 64)
			if err != nil {
				return nil
			}
			return report.Number(kb / (1 << 10))
		}
	}
	return nil
}
