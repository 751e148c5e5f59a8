package loop

import (
	"context"
	"encoding/json"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
)

// SendWithID is the producer that gives each message the ID of its event.
func SendWithID(ctx context.Context, client *sqs.Client, queueURL string, o Order) error {
	body, err := json.Marshal(o)
	if err != nil {
		return err
	}
	_, err = client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: &queueURL, MessageBody: aws.String(string(body)),
		MessageAttributes: map[string]sqstypes.MessageAttributeValue{
			sqsonce.AttrEventSource: {DataType: aws.String("String"), StringValue: aws.String("orders")},
			sqsonce.AttrEventID:     {DataType: aws.String("String"), StringValue: aws.String(o.ID)},
		},
	})
	return err
}

// Publish does the same with our publisher, made by fifo.NewPublisher(client, queueURL, "orders").
func Publish(ctx context.Context, p *fifo.Publisher, o Order) error {
	body, err := json.Marshal(o)
	if err != nil {
		return err
	}
	_, err = p.Publish(ctx, fifo.Event{ID: o.ID, Body: string(body)})
	return err
}
