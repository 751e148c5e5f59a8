package scenario

import (
	"context"
	"time"

	"github.com/sqsonce/sqsonce/bench/internal/endpoint"
	"github.com/sqsonce/sqsonce/bench/internal/job"
	"github.com/sqsonce/sqsonce/bench/internal/report"
)

// worker: a full queue and handlers that do nothing. What is measured is the way of a message through the worker.
var worker = Scenario{
	Name: "worker",
	Contestants: []Contestant{
		{"floor", 40_000}, {"floor+http", 40_000}, {"hand", 8_000}, {"gocloud", 20_000}, {"sqs-consumer", 4_000}, {"sqsonce", 40_000},
	},
	Latencies: []time.Duration{near, far},
	measure: func(ctx context.Context, b *Bench, r run) (report.Row, error) {
		cfg := endpoint.Config{Latency: r.latency, Visibility: 30, Events: b.count(r.contestant), BodySize: smallBody}
		return b.consume(ctx, r, cfg, job.Job{Slots: slots, InFlight: inFlight}, b.Size.Limit)
	},
}

// smallBody is that of an event which names what happened.
const smallBody = 256
