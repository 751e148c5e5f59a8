package gocloud

import (
	"context"
	"encoding/json"

	"github.com/aws/aws-sdk-go-v2/aws"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"gocloud.dev/pubsub"

	"github.com/sqsonce/sqsonce"
)

// SendWithID is the producer that gives each message the ID of its event. Not as Metadata, whose values gocloud escapes.
func SendWithID(ctx context.Context, topic *pubsub.Topic, o Order) error {
	body, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return topic.Send(ctx, &pubsub.Message{Body: body, BeforeSend: func(as func(any) bool) error {
		var entry *sqstypes.SendMessageBatchRequestEntry
		if as(&entry) {
			if entry.MessageAttributes == nil {
				entry.MessageAttributes = map[string]sqstypes.MessageAttributeValue{}
			}
			entry.MessageAttributes[sqsonce.AttrEventSource] = sqstypes.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String("orders")}
			entry.MessageAttributes[sqsonce.AttrEventID] = sqstypes.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(o.ID)}
		}
		return nil
	}})
}
