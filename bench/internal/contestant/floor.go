package contestant

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/bench/internal/job"
	"github.com/sqsonce/sqsonce/sqsworker"
)

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
