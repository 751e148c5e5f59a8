package contestant

import (
	"context"
	"sync"

	"gocloud.dev/pubsub"
	"gocloud.dev/pubsub/awssnssqs"
	"gocloud.dev/pubsub/batcher"

	"github.com/sqsonce/sqsonce/bench/internal/job"
)

// gocloudPublisher sends through gocloud.dev's batcher. Send returns when its message was accepted, so that the way to
// keep a group's order is a goroutine per group that sends one event after the other; all of them share the batches. An
// error is every message's of its batch: each is sent again under the same DeduplicationId.
func gocloudPublisher(ctx context.Context, j job.Job, l *Ledger) error {
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
					err := topic.Send(ctx, &pubsub.Message{Body: []byte(body(e)), Metadata: map[string]string{
						awssnssqs.MetadataKeyMessageGroupID:  group(e),
						awssnssqs.MetadataKeyDeduplicationID: job.EventID(e.N),
					}})
					if err == nil {
						l.Done(e.N)
						break
					}
				}
			}
		})
	}
	sending.Wait()
	return topic.Shutdown(ctx)
}
