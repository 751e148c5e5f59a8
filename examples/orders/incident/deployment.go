package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/examples/orders"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/localstack"
)

const (
	queue       = "orders"
	deadLetters = "orders-dlq"
	queueARN    = "arn:aws:sqs:us-east-1:000000000000:" + queue
	table       = "dedup"
	ledger      = "ledger"
	consumer    = "billing"
	namespace   = "orders"

	poisoned    = 400
	article     = "TEA-ASS-100"
	maxReceives = 5
)

// deployment is the queue with its dead-letter queue, and the tables.
type deployment struct {
	*localstack.Stack
	url       string
	publisher *fifo.Publisher
}

// deploy creates all of it as template.yaml does, but for the table's TTL.
func deploy(ctx context.Context, url string) (*deployment, error) {
	const days = 24 * 60 * 60
	stack, err := localstack.Start(ctx, func(o *localstack.Options) {
		o.Endpoint = url
		o.Queues = []localstack.Queue{{Name: queue, MaxReceiveCount: maxReceives, Attributes: map[string]string{
			"VisibilityTimeout": "30", "MessageRetentionPeriod": strconv.Itoa(4 * days),
		}}}
	})
	if err != nil {
		return nil, err
	}
	d := &deployment{Stack: stack, url: url}
	_, err = stack.SQS.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{
		QueueUrl: aws.String(stack.QueueURL[deadLetters]), Attributes: map[string]string{"MessageRetentionPeriod": strconv.Itoa(14 * days)},
	})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(d.createTable(ctx), orders.CreateLedger(ctx, stack.DynamoDB, ledger)); err != nil {
		return nil, err
	}
	d.publisher, err = fifo.NewPublisher(stack.SQS, stack.QueueURL[queue], namespace)
	return d, err
}

// createTable forgets the TTL.
func (d *deployment) createTable(ctx context.Context) error {
	_, err := d.DynamoDB.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: aws.String(table), BillingMode: ddbtypes.BillingModePayPerRequest, DeletionProtectionEnabled: aws.Bool(true),
		AttributeDefinitions: []ddbtypes.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: ddbtypes.ScalarAttributeTypeS}},
		KeySchema:            []ddbtypes.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: ddbtypes.KeyTypeHash}},
	})
	if err != nil {
		return err
	}
	_, err = d.DynamoDB.UpdateContinuousBackups(ctx, &dynamodb.UpdateContinuousBackupsInput{
		TableName: aws.String(table), PointInTimeRecoverySpecification: &ddbtypes.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(true)},
	})
	return err
}

func event(o orders.Order) (fifo.Event, error) {
	body, err := json.Marshal(o)
	return fifo.Event{ID: o.ID, Body: string(body)}, err
}

// poison publishes orders of the article, and waits until the worker has rejected all of them.
func (d *deployment) poison(ctx context.Context) error {
	var events []fifo.Event
	for i := range poisoned {
		name := fmt.Sprintf("ord-%d", 20_001+i)
		e, err := event(orders.Order{
			ID: name + "/placed", Type: "order.placed", Account: fmt.Sprintf("acct-%04d", i%40), Order: name, Amount: 890, Currency: "EUR",
			At: time.Now().UTC().Truncate(time.Second), Review: "150ms", Lines: []orders.Line{{SKU: article, Quantity: 1, Price: 890}},
		})
		if err != nil {
			return err
		}
		events = append(events, e)
	}
	if _, err := d.publisher.PublishAll(ctx, events); err != nil {
		return err
	}
	return d.await(ctx, poisoned+1)
}

// await waits until so many messages are in the dead-letter queue.
func (d *deployment) await(ctx context.Context, want int) error {
	for range 600 {
		out, err := d.SQS.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
			QueueUrl: aws.String(d.QueueURL[deadLetters]), AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameApproximateNumberOfMessages},
		})
		if err != nil {
			return err
		}
		if out.Attributes[string(sqstypes.QueueAttributeNameApproximateNumberOfMessages)] == strconv.Itoa(want) {
			return nil
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s does not have %d messages", deadLetters, want)
}

func pause(ctx context.Context) error {
	select {
	case <-time.After(100 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
