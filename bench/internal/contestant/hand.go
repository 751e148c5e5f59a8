package contestant

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/bench/internal/job"
)

// hand is the worker that people write: receive ten, a goroutine for each message, delete it when the handler is done.
// It is a good one of its kind: several receivers, a limit on handlers, deletes that a stop does not cancel, and a stop
// that waits for the handlers.
func hand(ctx context.Context, j job.Job, l *Ledger) error {
	client := sqsClient(j, httpClient())
	return handLoop(ctx, client, j, func(m sqstypes.Message) error {
		l.Handle(aws.ToString(m.Body), j.HandlerTime())
		return handDelete(client, j, m)
	})
}

// handLoop runs handle for each message, at most j.Slots at once.
func handLoop(ctx context.Context, client *sqs.Client, j job.Job, handle func(sqstypes.Message) error) error {
	slots := make(chan struct{}, j.Slots)
	var receiving, handling sync.WaitGroup
	for range max(1, j.Slots/10) {
		receiving.Go(func() {
			for ctx.Err() == nil {
				out, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
					QueueUrl: aws.String(j.QueueURL), MaxNumberOfMessages: 10, WaitTimeSeconds: 20,
				})
				if ctx.Err() != nil {
					return
				}
				if err != nil {
					fmt.Fprintln(os.Stderr, j.Contestant+":", err)
					time.Sleep(time.Second)
					continue
				}
				for _, m := range out.Messages {
					slots <- struct{}{}
					handling.Go(func() {
						defer func() { <-slots }()
						if err := handle(m); err != nil {
							fmt.Fprintln(os.Stderr, j.Contestant+":", err)
						}
					})
				}
			}
		})
	}
	receiving.Wait()
	handling.Wait()
	return nil
}

func handDelete(client *sqs.Client, j job.Job, m sqstypes.Message) error {
	_, err := client.DeleteMessage(context.Background(), &sqs.DeleteMessageInput{
		QueueUrl: aws.String(j.QueueURL), ReceiptHandle: m.ReceiptHandle,
	})
	return err
}
