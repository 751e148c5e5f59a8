package contestant

import (
	"context"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/bench/internal/job"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// worker is sqsworker with its defaults, but for the two limits that every contestant has and the visibility timeout of
// the scenario.
func worker(ctx context.Context, j job.Job, l *Ledger) error {
	return runWorker(ctx, j, handler(j, l))
}

// workerDDB is the same with package dedup before the handler, and its records in DynamoDB.
func workerDDB(ctx context.Context, j job.Job, l *Ledger) error {
	store, err := dynamostore.New(dynamodbClient(j, sqsworker.HTTPClient(j.InFlight)), j.Table)
	if err != nil {
		return err
	}
	once, err := dedup.New(store, "bench", func(o *dedup.Options) {
		o.Lease = time.Duration(j.Lease) * time.Second
	})
	if err != nil {
		return err
	}
	return runWorker(ctx, j, once.Handler(handler(j, l)))
}

func handler(j job.Job, l *Ledger) sqsonce.Handler {
	return func(_ context.Context, m *sqsonce.Message) error {
		l.Handle(m.Body, j.HandlerTime())
		return nil
	}
}

func runWorker(ctx context.Context, j job.Job, h sqsonce.Handler) error {
	w, err := sqsworker.New(sqsClient(j, sqsworker.HTTPClient(j.InFlight)), j.QueueURL, h, func(o *sqsworker.Options) {
		o.Concurrency, o.InFlight = j.Slots, j.InFlight
		o.Visibility = j.VisibilityTime()
		o.Logger = logger()
	})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}
