package scenario

import (
	"context"
	"time"

	"github.com/sqsonce/sqsonce/bench/internal/endpoint"
	"github.com/sqsonce/sqsonce/bench/internal/job"
	"github.com/sqsonce/sqsonce/bench/internal/report"
)

// dedup: the same as worker, with a record of each event in DynamoDB: written before the handler, completed after it.
// floor writes none; it is there to be compared with.
var dedup = Scenario{
	Name: "dedup",
	Contestants: []Contestant{
		{"floor", 40_000}, {"hand+ddb", 2_800}, {"sqs-consumer+powertools", 500}, {"sqsonce+ddb", 18_000},
	},
	Latencies: []time.Duration{near, far},
	measure: func(ctx context.Context, b *Bench, r run) (report.Row, error) {
		cfg := endpoint.Config{Latency: r.latency, Visibility: 30, Events: b.count(r.contestant), BodySize: smallBody}
		return b.consume(ctx, r, cfg, job.Job{Slots: dedupSlots, InFlight: inFlight}, b.Size.Limit)
	},
}

// dedupSlots is enough not to wait on latency: at 15 ms a message is in its slot for two calls and what they wait for
// company, some 40 ms. With more, those that open a connection for each call get slower.
const dedupSlots = 1000
