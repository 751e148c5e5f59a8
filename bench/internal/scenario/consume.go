package scenario

import (
	"context"
	"time"

	"github.com/sqsonce/sqsonce/bench/internal/endpoint"
	"github.com/sqsonce/sqsonce/bench/internal/job"
	"github.com/sqsonce/sqsonce/bench/internal/report"
)

// consume lets a contestant empty a queue.
func (b *Bench) consume(ctx context.Context, r run, cfg endpoint.Config, j job.Job, limit time.Duration) (report.Row, error) {
	p, err := b.start(ctx, r, r.contestant.Name, cfg, j)
	if err != nil {
		return report.Row{}, err
	}
	defer p.kill()
	begin := time.Now()
	if err := p.contestant.Call("go", nil, nil); err != nil {
		return report.Row{}, err
	}
	var end endpoint.Emptied
	if err := p.endpoint.Call("await", limit, &end); err != nil {
		return report.Row{}, err
	}
	if !end.Empty {
		b.logf("%s, %s: not done after %s. %s", r.scenario.Name, r.contestant.Name, limit, p.contestant.Said())
	}
	row, err := p.row(r, j, cfg, end.At.Sub(begin))
	if err == nil {
		row.EndpointCPU = per(float64(end.CPU), int(*row.Messages))
	}
	return row, err
}

// row asks both processes what it took. elapsed 0: a rate would mean nothing.
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

// rowOf is what a contestant says of itself.
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
		CPU: per(float64(u.CPU), done),
	}
	if elapsed > 0 {
		row.Rate = report.Number(float64(done) / elapsed.Seconds())
	}
	if u.Mallocs >= 0 {
		row.Allocs = per(float64(u.Mallocs), done)
	}
	return row
}

// addState is what the endpoint has seen. A message that is left and was received is undeleted if its handler returned:
// it will run again. If not, and nobody else can have it, it is stranded until its visibility timeout ends.
func addState(row *report.Row, u job.Usage, st endpoint.State) {
	done := int(*row.Messages)
	row.SQS, row.Conns = per(float64(st.SQSRequests), done), report.Number(st.Connections)
	if st.DynamoDBRequests > 0 {
		row.DynamoDB, row.WriteUnits = per(float64(st.DynamoDBRequests), done), per(st.WriteUnits, done)
	}
	undeleted, stranded := 0, 0
	for _, m := range st.Left {
		switch {
		case m.Event >= 0 && u.Done.Has(m.Event):
			undeleted++
		case m.InFlight:
			stranded++
		}
	}
	row.Undeleted, row.Stranded = report.Number(undeleted), report.Number(stranded)
}

func per(sum float64, messages int) *float64 {
	if messages == 0 {
		return nil
	}
	return report.Number(sum / float64(messages))
}
