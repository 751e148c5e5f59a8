package contestant

import (
	"context"
	"errors"
	"sync"
	"time"

	"gocloud.dev/pubsub"
	"gocloud.dev/pubsub/awssnssqs"
	"gocloud.dev/pubsub/batcher"

	"github.com/sqsonce/sqsonce/bench/internal/job"
)

// gocloudConsumer is gocloud.dev/pubsub as in its guide: a receive loop, a limit on goroutines, and Ack when the handler
// has returned. WaitTime is set, as its documentation offers: without it, the default, an idle queue is polled four times
// a second. Its limits of concurrent receives and deletes are its own, 100 of each.
func gocloudConsumer(ctx context.Context, j job.Job, effects *Effects) error {
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
			effects.Handle(string(m.Body), j.HandlerTime())
		})
	}
	handling.Wait()
	return errors.Join(failed, sub.Shutdown(context.WithoutCancel(ctx)))
}

// gocloudPublisher sends through gocloud.dev's batcher. Send returns when its message was accepted, so a group keeps its
// order with a goroutine of its own that sends one event after the other. All groups share the batches. An error of a
// batch is returned to every message in it: each is sent again under the same MessageDeduplicationId.
func gocloudPublisher(ctx context.Context, j job.Job, effects *Effects) error {
	topic := awssnssqs.OpenSQSTopic(ctx, sqsClient(j, httpClient()), j.QueueURL, &awssnssqs.TopicOptions{
		BatcherOptions: batcher.Options{MaxHandlers: j.Slots},
	})
	groups := make([][]job.Event, j.Groups)
	for _, e := range job.Backlog(j.Events, j.Groups) {
		groups[e.Group] = append(groups[e.Group], e)
	}
	var sending sync.WaitGroup
	for _, events := range groups {
		sending.Go(func() {
			for _, e := range events {
				for ctx.Err() == nil {
					err := topic.Send(ctx, &pubsub.Message{Body: []byte(publishedBody(e)), Metadata: map[string]string{
						awssnssqs.MetadataKeyMessageGroupID:  groupID(e),
						awssnssqs.MetadataKeyDeduplicationID: job.EventID(e.N),
					}})
					if err == nil {
						effects.Accepted(e.N)
						break
					}
				}
			}
		})
	}
	sending.Wait()
	return topic.Shutdown(ctx)
}
