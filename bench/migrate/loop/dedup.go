package loop

import (
	"context"
	"log"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// ConsumeOnce is the same loop with the handler.
func ConsumeOnce(ctx context.Context, client *sqs.Client, queueURL, queueARN string, handler sqsonce.Handler) error {
	for ctx.Err() == nil {
		out, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: &queueURL, MaxNumberOfMessages: 10, WaitTimeSeconds: 20,
			MessageAttributeNames:       []string{"All"},
			MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{sqstypes.MessageSystemAttributeNameAll},
		})
		if err != nil {
			return err
		}
		for _, m := range out.Messages {
			err := handler(ctx, sqsworker.MessageOf(m, queueARN))
			if sqsonce.OutcomeOf(err).Kind == sqsonce.OutcomeDone {
				_, err = client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &queueURL, ReceiptHandle: m.ReceiptHandle})
			}
			if err != nil { // delivered again when its visibility timeout ends
				log.Print(err)
			}
		}
	}
	return ctx.Err()
}
