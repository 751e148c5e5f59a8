package scenario

import (
	"context"
	"time"

	"github.com/sqsonce/sqsonce/bench/internal/endpoint"
	"github.com/sqsonce/sqsonce/bench/internal/job"
	"github.com/sqsonce/sqsonce/bench/internal/report"
)

// idle: one message, and then none for the rest of the time. Figures per message are those of the whole time: what a
// queue costs in which nothing happens.
var idle = Scenario{
	Name: "idle",
	Contestants: []Contestant{
		{"floor", 0}, {"hand", 0}, {"gocloud", 0}, {"sqs-consumer", 0}, {"sqsonce", 0}, {"sqsonce+ddb", 0},
	},
	Latencies: []time.Duration{near},
	Rounds:    1, // of a minute
	Together:  true,
	measure: func(ctx context.Context, b *Bench, r run) (report.Row, error) {
		cfg := endpoint.Config{Latency: r.latency, Visibility: 30, Events: 1, BodySize: smallBody}
		j := job.Job{Slots: slots, InFlight: inFlight}
		p, err := b.start(ctx, r, r.contestant.Name, cfg, j)
		if err != nil {
			return report.Row{}, err
		}
		defer p.kill()
		if err := p.contestant.Call("go", nil, nil); err != nil {
			return report.Row{}, err
		}
		if err := sleep(ctx, b.Size.Idle); err != nil {
			return report.Row{}, err
		}
		return p.row(r, j, cfg, 0)
	},
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
