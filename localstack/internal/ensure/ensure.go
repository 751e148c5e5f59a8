// Package ensure creates the queues and tables that do not exist.
package ensure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// Queue returns the URL of a queue, and whether it has created the queue. A queue that exists keeps its attributes.
func Queue(ctx context.Context, c *sqs.Client, in *sqs.CreateQueueInput) (url string, created bool, err error) {
	// CreateQueue does not say whether the queue existed.
	got, err := c.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: in.QueueName})
	if err == nil {
		return aws.ToString(got.QueueUrl), false, nil
	}
	if _, missing := errors.AsType[*sqstypes.QueueDoesNotExist](err); !missing {
		return "", false, err
	}
	out, err := c.CreateQueue(ctx, in)
	if err != nil {
		return "", false, err
	}
	return aws.ToString(out.QueueUrl), true, nil
}

// Table returns whether it has created a table, also with an error. ttl is the time to live attribute; "": none. A table that exists
// stays as it is.
func Table(ctx context.Context, c *dynamodb.Client, in *dynamodb.CreateTableInput, ttl string) (created bool, err error) {
	_, err = c.CreateTable(ctx, in)
	if _, exists := errors.AsType[*ddbtypes.ResourceInUseException](err); exists {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := dynamodb.NewTableExistsWaiter(c).Wait(ctx, &dynamodb.DescribeTableInput{TableName: in.TableName}, time.Minute); err != nil {
		return true, err
	}
	if ttl == "" {
		return true, nil
	}
	_, err = c.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName: in.TableName, TimeToLiveSpecification: &ddbtypes.TimeToLiveSpecification{AttributeName: &ttl, Enabled: aws.Bool(true)},
	})
	if err != nil {
		return true, fmt.Errorf("time to live: %w", err)
	}
	return true, nil
}
