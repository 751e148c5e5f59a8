package scenario

import (
	"context"
	"time"

	"github.com/sqsonce/sqsonce/bench/internal/endpoint"
	"github.com/sqsonce/sqsonce/bench/internal/job"
	"github.com/sqsonce/sqsonce/bench/internal/report"
)

// slow: handlers that take longer than the visibility timeout, twice as many messages as handlers. Who does not extend
// it for every message in hand, the waiting ones included, runs them twice.
var slow = Scenario{
	Name: "slow",
	Contestants: []Contestant{
		{"floor", 0}, {"hand", 0}, {"hand+ddb", 0}, {"gocloud", 0}, {"sqs-consumer", 0}, {"sqs-consumer+powertools", 0},
		{"sqsonce", 0}, {"sqsonce+ddb", 0},
	},
	Latencies: []time.Duration{near},
	Rounds:    1, // of minutes
	Together:  true,
	measure: func(ctx context.Context, b *Bench, r run) (report.Row, error) {
		cfg := endpoint.Config{Latency: r.latency, Visibility: b.Size.Visibility, Events: 20, BodySize: smallBody}
		j := job.Job{Slots: 10, InFlight: 30, Handler: int(b.Size.Handler.Milliseconds())}
		// Two rounds of handlers are needed; whoever needs more than four does not come to an end.
		return b.consume(ctx, r, cfg, j, 4*b.Size.Handler)
	},
}
