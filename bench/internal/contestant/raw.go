package contestant

import (
	"context"
	"strconv"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/bench/internal/job"
)

// rawPublisher sends the backlog in batches of ten as it comes, j.Slots batches at once, with the SDK alone. What a
// batch's answer calls failed is sent again until it is accepted, under the same MessageDeduplicationId; the SDK's own
// retries are on.
func rawPublisher(ctx context.Context, j job.Job, l *Ledger) error {
	return rawPublish(ctx, j, l, func(job.Event) map[string]sqstypes.MessageAttributeValue { return nil })
}

// rawPublisherWithAttributes gives each message the two attributes that fifo.Publisher writes.
func rawPublisherWithAttributes(ctx context.Context, j job.Job, l *Ledger) error {
	text := func(s string) sqstypes.MessageAttributeValue {
		return sqstypes.MessageAttributeValue{DataType: aws.String("String"), StringValue: &s}
	}
	return rawPublish(ctx, j, l, func(e job.Event) map[string]sqstypes.MessageAttributeValue {
		return map[string]sqstypes.MessageAttributeValue{
			sqsonce.AttrEventID: text(job.EventID(e.N)), sqsonce.AttrEventSource: text("bench"),
		}
	})
}

type attributesOf func(job.Event) map[string]sqstypes.MessageAttributeValue

func rawPublish(ctx context.Context, j job.Job, l *Ledger, attributes attributesOf) error {
	client, batches := sqsClient(j, httpClient()), make(chan []job.Event)
	var sending sync.WaitGroup
	var first sync.Once
	var failed error
	for range j.Slots {
		sending.Go(func() {
			for events := range batches {
				if err := rawSend(ctx, client, j, l, events, attributes); err != nil {
					first.Do(func() { failed = err })
				}
			}
		})
	}
	for events := job.Backlog(j.Events, j.Groups); len(events) > 0; {
		k := min(10, len(events))
		batches <- events[:k]
		events = events[k:]
	}
	close(batches)
	sending.Wait()
	return failed
}

func rawSend(ctx context.Context, client *sqs.Client, j job.Job, l *Ledger, events []job.Event, attributes attributesOf) error {
	for len(events) > 0 {
		in := &sqs.SendMessageBatchInput{QueueUrl: aws.String(j.QueueURL)}
		for i, e := range events {
			in.Entries = append(in.Entries, sqstypes.SendMessageBatchRequestEntry{
				Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(body(e)),
				MessageGroupId: aws.String(group(e)), MessageDeduplicationId: aws.String(job.EventID(e.N)),
				MessageAttributes: attributes(e),
			})
		}
		out, err := client.SendMessageBatch(ctx, in)
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
			continue // the outcome is unknown: the same again, which FIFO recognises
		}
		for _, s := range out.Successful {
			i, err := strconv.Atoi(aws.ToString(s.Id))
			if err != nil {
				return err
			}
			l.Done(events[i].N)
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

func group(e job.Event) string { return "group-" + strconv.Itoa(e.Group) }

// publishedSize is the size of a published body.
const publishedSize = 256

func body(e job.Event) string { return job.Body(e.N, publishedSize) }
