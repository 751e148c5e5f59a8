package contestant

import (
	"context"
	"errors"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/bench/internal/job"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// sqsonceWorker is sqsworker with its defaults, but for the two limits of every contestant and the visibility timeout of
// the scenario.
func sqsonceWorker(ctx context.Context, j job.Job, effects *Effects) error {
	return runWorker(ctx, j, handler(j, effects))
}

// sqsonceWorkerDDB is sqsonceWorker with package dedup, and its records in DynamoDB.
func sqsonceWorkerDDB(ctx context.Context, j job.Job, effects *Effects) error {
	store, err := dynamostore.New(dynamodbClient(j, sqsworker.HTTPClient(j.InFlight)), j.Table)
	if err != nil {
		return err
	}
	once, err := dedup.New(store, "bench", func(o *dedup.Options) {
		o.LeaseDuration = time.Duration(j.Lease) * time.Second
	})
	if err != nil {
		return err
	}
	return runWorker(ctx, j, once.Handler(handler(j, effects)))
}

func handler(j job.Job, effects *Effects) sqsonce.Handler {
	return func(_ context.Context, m *sqsonce.Message) error {
		effects.Handle(m.Body, j.HandlerTime())
		return nil
	}
}

func runWorker(ctx context.Context, j job.Job, h sqsonce.Handler) error {
	w, err := sqsworker.New(sqsClient(j, sqsworker.HTTPClient(j.InFlight)), j.QueueURL, h, func(o *sqsworker.Options) {
		o.Concurrency, o.MaxInFlight = j.Slots, j.InFlight
		o.VisibilityTimeout = j.VisibilityTime()
		o.Logger = logger()
	})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

// sqsoncePublisher is fifo.Publisher with its defaults, but for the limit of concurrent requests. One goroutine enqueues
// the backlog in its order, another waits for the results.
func sqsoncePublisher(ctx context.Context, j job.Job, effects *Effects) error {
	p, err := fifo.NewPublisher(sqsClient(j, httpClient()), j.QueueURL, "bench", func(o *fifo.Options) {
		o.MaxRequests, o.Logger = j.Slots, logger()
	})
	if err != nil {
		return err
	}
	type enqueued struct {
		n       int
		pending *fifo.PublishResult
	}
	events, waited := make(chan enqueued, j.Events), make(chan error, 1)
	go func() {
		var failed error
		for e := range events {
			if _, err := e.pending.Get(ctx); err != nil {
				failed = errors.Join(failed, err)
				continue
			}
			effects.Accepted(e.n)
		}
		waited <- failed
	}()
	for _, e := range job.Backlog(j.Events, j.Groups) {
		pending, err := p.Enqueue(ctx, fifo.Event{ID: job.EventID(e.N), Group: groupID(e), Body: publishedBody(e)})
		if err != nil {
			close(events)
			return errors.Join(err, <-waited)
		}
		events <- enqueued{e.N, pending}
	}
	close(events)
	return errors.Join(<-waited, p.Close(ctx))
}
