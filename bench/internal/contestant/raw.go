package contestant

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/bench/internal/job"
	"github.com/sqsonce/sqsonce/sqsworker"
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

// floor is the fastest program on the SDK alone: receivers, handlers and batched deletes, connected by channels. It has no
// heartbeat, no retry of failed deletes and no recovery from panics. It shows what these cost; do not run it in production.
func floor(ctx context.Context, j job.Job, effects *Effects) error {
	return runFloor(ctx, sqsClient(j, httpClient()), j, effects)
}

// floorHTTP is floor on sqsonce's HTTP client.
func floorHTTP(ctx context.Context, j job.Job, effects *Effects) error {
	return runFloor(ctx, sqsClient(j, sqsworker.HTTPClient(j.InFlight)), j, effects)
}

func runFloor(ctx context.Context, client *sqs.Client, j job.Job, effects *Effects) error {
	receivers := floorReceivers(j)
	// The messages in these channels, with the receivers and in the handlers stay below the limit in flight.
	received := make(chan sqstypes.Message, j.InFlight/4)
	handled := make(chan *string, j.InFlight/4)

	var receiving, handling, deleting sync.WaitGroup
	for range receivers {
		receiving.Go(func() { floorReceive(ctx, client, j, received) })
	}
	for range j.Slots {
		handling.Go(func() {
			for m := range received {
				effects.Handle(aws.ToString(m.Body), j.HandlerTime())
				handled <- m.ReceiptHandle
			}
		})
	}
	for range receivers {
		deleting.Go(func() { floorDelete(client, j, handled) })
	}
	receiving.Wait()
	close(received)
	handling.Wait()
	close(handled)
	deleting.Wait()
	return nil
}

// floorReceivers returns as many receivers as sqsonce has on two CPUs. At 5 ms more receivers gain nothing. At 15 ms a
// hundred receivers raise the rate of both by a fifth.
func floorReceivers(j job.Job) int { return max(1, min(64, j.InFlight/10)) }

// floorReceive never cancels a poll: what a cancelled poll receives stays hidden until its visibility timeout ends.
func floorReceive(ctx context.Context, client *sqs.Client, j job.Job, out chan<- sqstypes.Message) {
	for ctx.Err() == nil {
		got, err := client.ReceiveMessage(context.WithoutCancel(ctx), &sqs.ReceiveMessageInput{
			QueueUrl: aws.String(j.QueueURL), MaxNumberOfMessages: 10, WaitTimeSeconds: 20,
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, "floor:", err)
			time.Sleep(time.Second)
			continue
		}
		for _, m := range got.Messages {
			out <- m
		}
	}
}

// floorDelete deletes in batches: ten receipt handles, or those that arrive within 10 ms.
func floorDelete(client *sqs.Client, j job.Job, handled <-chan *string) {
	for handle := range handled {
		entries := []sqstypes.DeleteMessageBatchRequestEntry{{Id: aws.String("0"), ReceiptHandle: handle}}
		linger := time.NewTimer(10 * time.Millisecond)
	gather:
		for len(entries) < 10 {
			select {
			case handle, ok := <-handled:
				if !ok {
					break gather
				}
				entries = append(entries, sqstypes.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(len(entries))), ReceiptHandle: handle})
			case <-linger.C:
				break gather
			}
		}
		linger.Stop()
		if _, err := client.DeleteMessageBatch(context.Background(), &sqs.DeleteMessageBatchInput{QueueUrl: aws.String(j.QueueURL), Entries: entries}); err != nil {
			fmt.Fprintln(os.Stderr, "floor:", err)
		}
	}
}
