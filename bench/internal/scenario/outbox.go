package scenario

import (
	"context"
	"time"

	"github.com/sqsonce/sqsonce/bench/internal/endpoint"
	"github.com/sqsonce/sqsonce/bench/internal/job"
	"github.com/sqsonce/sqsonce/bench/internal/report"
)

// outbox: events with bodies of 1 KB in 64 groups are published from an outbox in DynamoDB, and the same events from memory, by
// one PublishAll. The write units are those of the producer's transactions and of the relay's deletes.
var outbox = Scenario{
	Name:        "outbox",
	Contestants: []Contestant{{"publishall", 8_000}, {"sqsonce", 8_000}},
	Latencies:   []time.Duration{shortLatency, longLatency},
	measure: func(ctx context.Context, b *Bench, r run) (report.Row, error) {
		cfg := endpoint.Config{Latency: r.latency, Visibility: 30, FIFO: true, Events: b.count(r.contestant)}
		if ours(r.contestant.Name) {
			cfg.OutboxGroups = outboxGroups
		}
		return b.publish(ctx, r, cfg, job.Job{Slots: requests, Groups: outboxGroups})
	},
}

const outboxGroups = 64
