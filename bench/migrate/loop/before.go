// Package loop moves a hand-written ReceiveMessage loop to sqsonce: docs/migrate.md shows its steps.
package loop

import (
	"context"
	"encoding/json"
	"log"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/sqsonce/sqsonce/bench/migrate"
)

// Order is the body of a message.
type Order = migrate.Order

// Send is the producer.
func Send(ctx context.Context, client *sqs.Client, queueURL string, o Order) error {
	body, err := json.Marshal(o)
	if err != nil {
		return err
	}
	_, err = client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &queueURL, MessageBody: aws.String(string(body))})
	return err
}

// Consume is the loop.
func Consume(ctx context.Context, client *sqs.Client, queueURL string, charge func(context.Context, Order) error) error {
	for ctx.Err() == nil {
		out, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: &queueURL, MaxNumberOfMessages: 10, WaitTimeSeconds: 20,
		})
		if err != nil {
			return err
		}
		for _, m := range out.Messages {
			var o Order
			err := json.Unmarshal([]byte(*m.Body), &o)
			if err == nil {
				err = charge(ctx, o)
			}
			if err == nil {
				_, err = client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &queueURL, ReceiptHandle: m.ReceiptHandle})
			}
			if err != nil { // delivered again when its visibility timeout ends
				log.Print(err)
			}
		}
	}
	return ctx.Err()
}
