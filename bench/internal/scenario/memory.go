package scenario

import (
	"context"
	"time"

	"github.com/sqsonce/sqsonce/bench/internal/endpoint"
	"github.com/sqsonce/sqsonce/bench/internal/job"
	"github.com/sqsonce/sqsonce/bench/internal/report"
)

// memory: a million messages through one worker, the queue filled while it works. Memory that grows with what was
// handled shows; four bytes a message are the bench's own.
var memory = Scenario{
	Name:        "memory",
	Contestants: []Contestant{{"sqsonce", 15_000}, {"sqsonce+ddb", 2_500}},
	Rounds:      1,
	Latencies:   []time.Duration{near},
	measure: func(ctx context.Context, b *Bench, r run) (report.Row, error) {
		events, limit := b.count(r.contestant), b.Size.Limit
		if b.Size.Memory > 0 {
			events, limit = b.Size.Memory, 30*time.Minute
		}
		cfg := endpoint.Config{Latency: r.latency, Visibility: 30, Events: events, BodySize: smallBody, Backlog: 20_000}
		j := job.Job{Slots: slots, InFlight: inFlight}
		if r.contestant.Name == "sqsonce+ddb" {
			j.Slots = dedupSlots
		}
		return b.consume(ctx, r, cfg, j, limit)
	},
}
