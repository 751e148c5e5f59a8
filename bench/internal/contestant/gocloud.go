package contestant

import (
	"context"
	"errors"
	"sync"
	"time"

	"gocloud.dev/pubsub/awssnssqs"

	"github.com/sqsonce/sqsonce/bench/internal/job"
)

// gocloud is gocloud.dev/pubsub as its guide has it: a receive loop, a limit on goroutines, Ack when the handler is done.
// WaitTime is set, which its documentation offers and its default is not: without it an idle queue is polled four times
// a second. Its number of receives and deletes at once is its own, 100 of each.
func gocloud(ctx context.Context, j job.Job, l *Ledger) error {
	sub := awssnssqs.OpenSubscription(ctx, sqsClient(j, httpClient()), j.QueueURL, &awssnssqs.SubscriptionOptions{
		Raw: true, WaitTime: 20 * time.Second,
	})
	slots := make(chan struct{}, j.Slots)
	var handling sync.WaitGroup
	var failed error
	for {
		m, err := sub.Receive(ctx)
		if err != nil {
			if ctx.Err() == nil {
				failed = err
			}
			break
		}
		slots <- struct{}{}
		handling.Go(func() {
			defer func() { <-slots }()
			defer m.Ack()
			l.Handle(string(m.Body), j.HandlerTime())
		})
	}
	handling.Wait()
	return errors.Join(failed, sub.Shutdown(context.WithoutCancel(ctx)))
}
