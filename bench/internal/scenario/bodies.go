package scenario

import (
	"context"
	"time"

	"github.com/sqsonce/sqsonce/bench/internal/endpoint"
	"github.com/sqsonce/sqsonce/bench/internal/job"
	"github.com/sqsonce/sqsonce/bench/internal/report"
)

// bodies: our rows of worker and dedup with larger messages.
var bodies = []Scenario{
	body("bodies/1KB", 1<<10, []Contestant{{"sqsonce", 16_000}, {"sqsonce+ddb", 2_500}}),
	body("bodies/64KB", 64<<10, []Contestant{{"sqsonce", 2_000}, {"sqsonce+ddb", 1_000}}),
}

func body(name string, size int, contestants []Contestant) Scenario {
	return Scenario{
		Name: name, Contestants: contestants, Latencies: []time.Duration{near},
		measure: func(ctx context.Context, b *Bench, r run) (report.Row, error) {
			cfg := endpoint.Config{Latency: r.latency, Visibility: 30, Events: b.count(r.contestant), BodySize: size}
			j := job.Job{Slots: slots, InFlight: inFlight}
			if r.contestant.Name == "sqsonce+ddb" {
				j.Slots = dedupSlots
			}
			return b.consume(ctx, r, cfg, j, b.Size.Limit)
		},
	}
}
