package scenario

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce/bench/internal/endpoint"
	"github.com/sqsonce/sqsonce/bench/internal/job"
	"github.com/sqsonce/sqsonce/bench/internal/report"
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
