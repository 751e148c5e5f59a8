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

// floor is the least that the SDK can do the work with: receivers, handlers and batched deletes joined by channels. No
// heartbeat, no retry of failed deletes, no recovery: it shows what safety costs, and nobody should run it.
func floor(ctx context.Context, j job.Job, l *Ledger) error {
	return runFloor(ctx, sqsClient(j, httpClient()), j, l)
}

// floorHTTP is the same on the connections that sqsonce has.
func floorHTTP(ctx context.Context, j job.Job, l *Ledger) error {
	return runFloor(ctx, sqsClient(j, sqsworker.HTTPClient(j.InFlight)), j, l)
}

func runFloor(ctx context.Context, client *sqs.Client, j job.Job, l *Ledger) error {
	receivers := floorReceivers(j)
	// With what receivers and handlers hold this stays below the limit in flight.
	received := make(chan sqstypes.Message, j.InFlight/4)
	done := make(chan *string, j.InFlight/4)

	var receiving, handling, deleting sync.WaitGroup
	for range receivers {
		receiving.Go(func() { floorReceive(ctx, client, j, received) })
	}
	for range j.Slots {
		handling.Go(func() {
			for m := range received {
				l.Handle(aws.ToString(m.Body), j.HandlerTime())
				done <- m.ReceiptHandle
			}
		})
	}
	for range receivers {
		deleting.Go(func() { floorDelete(client, j, done) })
	}
	receiving.Wait()
	close(received)
	handling.Wait()
	close(done)
	deleting.Wait()
	return nil
}

// floorReceivers is as many as sqsonce has on two CPUs: at 5 ms more are of no use. At 15 ms a hundred bring both of them a fifth more.
func floorReceivers(j job.Job) int { return max(1, min(64, j.InFlight/10)) }

// floorReceive lets the last poll end: a cancelled one would strand what it receives.
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

// floorDelete gathers ten, or what there is after 10 ms.
func floorDelete(client *sqs.Client, j job.Job, done <-chan *string) {
	for handle := range done {
		entries := []sqstypes.DeleteMessageBatchRequestEntry{{Id: aws.String("0"), ReceiptHandle: handle}}
		linger := time.NewTimer(10 * time.Millisecond)
	gather:
		for len(entries) < 10 {
			select {
			case handle, ok := <-done:
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
