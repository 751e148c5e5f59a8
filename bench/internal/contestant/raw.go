package contestant

import (
	"context"
	"slices"
	"strconv"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/bench/internal/job"
)

// rawPublisher sends the backlog with the SDK alone: batches of ten in the backlog's order, j.Slots batches at once. An
// entry that failed is sent again under the same MessageDeduplicationId until it is accepted. The SDK's retries are on.
func rawPublisher(ctx context.Context, j job.Job, effects *Effects) error {
	return rawPublish(ctx, j, effects, func(job.Event) map[string]sqstypes.MessageAttributeValue { return nil })
}

// rawPublisherWithAttributes is rawPublisher with the two attributes that fifo.Publisher writes.
func rawPublisherWithAttributes(ctx context.Context, j job.Job, effects *Effects) error {
	text := func(s string) sqstypes.MessageAttributeValue {
		return sqstypes.MessageAttributeValue{DataType: aws.String("String"), StringValue: &s}
	}
	return rawPublish(ctx, j, effects, func(e job.Event) map[string]sqstypes.MessageAttributeValue {
		return map[string]sqstypes.MessageAttributeValue{
			sqsonce.AttrEventID: text(job.EventID(e.N)), sqsonce.AttrEventSource: text("bench"),
		}
	})
}

type attributesOf func(job.Event) map[string]sqstypes.MessageAttributeValue

func rawPublish(ctx context.Context, j job.Job, effects *Effects, attributes attributesOf) error {
	client := sqsClient(j, httpClient())
	batches := make(chan []job.Event)
	var sending sync.WaitGroup
	var first sync.Once
	var failed error
	for range j.Slots {
		sending.Go(func() {
			for events := range batches {
				if err := rawSend(ctx, client, j, effects, events, attributes); err != nil {
					first.Do(func() { failed = err })
				}
			}
		})
	}
	for events := range slices.Chunk(job.Backlog(j.Events, j.Groups), 10) {
		batches <- events
	}
	close(batches)
	sending.Wait()
	return failed
}

func rawSend(ctx context.Context, client *sqs.Client, j job.Job, effects *Effects, events []job.Event, attributes attributesOf) error {
	for len(events) > 0 {
		in := &sqs.SendMessageBatchInput{QueueUrl: aws.String(j.QueueURL)}
		for i, e := range events {
			in.Entries = append(in.Entries, sqstypes.SendMessageBatchRequestEntry{
				Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(publishedBody(e)),
				MessageGroupId: aws.String(groupID(e)), MessageDeduplicationId: aws.String(job.EventID(e.N)),
				MessageAttributes: attributes(e),
			})
		}
		out, err := client.SendMessageBatch(ctx, in)
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
			continue // unknown outcome: send it again, SQS drops what it has already
		}
		for _, s := range out.Successful {
			i, err := strconv.Atoi(aws.ToString(s.Id))
			if err != nil {
				return err
			}
			effects.Accepted(events[i].N)
		}
		var again []job.Event
		for _, f := range out.Failed {
			i, err := strconv.Atoi(aws.ToString(f.Id))
			if err != nil {
				return err
			}
			again = append(again, events[i])
		}
		events = again
	}
	return nil
}

func groupID(e job.Event) string { return "group-" + strconv.Itoa(e.Group) }

// publishedSize is the size of a published body, in bytes.
const publishedSize = 256

func publishedBody(e job.Event) string { return job.Body(e.N, publishedSize) }
