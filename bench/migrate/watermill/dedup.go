package watermill

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/ThreeDotsLabs/watermill"
	wmsqs "github.com/ThreeDotsLabs/watermill-aws/sqs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// ConsumeOnce is the same router with a handler.
func ConsumeOnce(ctx context.Context, cfg aws.Config, queue, queueARN string, handler sqsonce.Handler) error {
	logger := watermill.NewSlogLogger(nil)
	sub, err := wmsqs.NewSubscriber(wmsqs.SubscriberConfig{
		AWSConfig: cfg, Unmarshaler: received{}, GenerateReceiveMessageInput: receiveAll, DoNotCreateQueueIfNotExists: true,
	}, logger)
	if err != nil {
		return err
	}
	router, err := message.NewRouter(message.RouterConfig{}, logger)
	if err != nil {
		return err
	}
	router.AddConsumerHandler("charge", queue, sub, func(m *message.Message) error {
		var r sqstypes.Message
		if err := json.Unmarshal([]byte(m.Metadata.Get("received")), &r); err != nil {
			return err
		}
		return handler(m.Context(), sqsworker.MessageOf(r, queueARN)) // nil, an ack, only for a done event
	})
	return errors.Join(router.Run(ctx), sub.Close())
}

// received keeps the message as SQS sent it: watermill replaces its message ID.
type received struct {
	wmsqs.DefaultMarshalerUnmarshaler
}

func (u received) Unmarshal(r *sqstypes.Message) (*message.Message, error) {
	m, err := u.DefaultMarshalerUnmarshaler.Unmarshal(r)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(r)
	m.Metadata.Set("received", string(text))
	return m, err
}

func receiveAll(ctx context.Context, queueURL wmsqs.QueueURL) (*sqs.ReceiveMessageInput, error) {
	in, err := wmsqs.GenerateReceiveMessageInputDefault(ctx, queueURL)
	if err != nil {
		return nil, err
	}
	in.MessageSystemAttributeNames = []sqstypes.MessageSystemAttributeName{sqstypes.MessageSystemAttributeNameAll}
	return in, nil
}
