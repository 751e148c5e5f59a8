package scenario

import (
	"context"
	"time"

	"github.com/sqsonce/sqsonce/bench/internal/endpoint"
	"github.com/sqsonce/sqsonce/bench/internal/job"
	"github.com/sqsonce/sqsonce/bench/internal/report"
)

// duplicates: every twentieth receive leaves a copy of the message in the queue, as a standard queue may, and the
// producer sends every twentieth event a second time. floor runs them all; it is there to show how many there are. A copy
// that comes while its event is in progress waits for its visibility timeout, or the holder's lease: that decides how
// long it takes until the queue is empty, not how fast anybody is.
var duplicates = Scenario{
	Name: "duplicates",
	Contestants: []Contestant{
		{"floor", 2_500}, {"hand+ddb", 1_000}, {"sqs-consumer+powertools", 150}, {"sqsonce+ddb", 1_500},
	},
	Latencies: []time.Duration{near},
	Together:  true,
	measure: func(ctx context.Context, b *Bench, r run) (report.Row, error) {
		cfg := endpoint.Config{
			Latency: r.latency, Visibility: 4, Events: b.count(r.contestant), BodySize: smallBody,
			EventIDs: true, Resend: 20, Duplicates: 0.05,
		}
		// The lease is the others' visibility timeout: who waits longer for a holder is not to be seen as losing messages.
		j := job.Job{Slots: slots, InFlight: inFlight, Lease: cfg.Visibility}
		return b.consume(ctx, r, cfg, j, 25*time.Second)
	},
}
