package localstack

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/localstack/internal/ensure"
)

const fifoSuffix = ".fifo"

// deadLetterName adds "-dlq" to a queue's name, in front of the suffix ".fifo".
func deadLetterName(queue string) string {
	base, fifo := strings.CutSuffix(queue, fifoSuffix)
	if fifo {
		return base + "-dlq" + fifoSuffix
	}
	return base + "-dlq"
}

func (s *Stack) createQueue(ctx context.Context, q Queue) error {
	attrs := maps.Clone(q.Attributes)
	if attrs == nil {
		attrs = map[string]string{}
	}
	if q.MaxReceiveCount >= 0 {
		dlq := deadLetterName(q.Name)
		if err := s.ensureQueue(ctx, dlq, map[string]string{}); err != nil {
			return err
		}
		out, err := s.SQS.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
			QueueUrl: aws.String(s.QueueURL[dlq]), AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameQueueArn},
		})
		if err != nil {
			return fmt.Errorf("localstack: queue %s: %w", dlq, err)
		}
		arn := out.Attributes[string(sqstypes.QueueAttributeNameQueueArn)]
		attrs[string(sqstypes.QueueAttributeNameRedrivePolicy)] =
			`{"deadLetterTargetArn":` + strconv.Quote(arn) + `,"maxReceiveCount":` + strconv.Quote(q.maxReceiveCount()) + `}`
	}
	return s.ensureQueue(ctx, q.Name, attrs)
}

func (s *Stack) ensureQueue(ctx context.Context, name string, attrs map[string]string) error {
	if strings.HasSuffix(name, fifoSuffix) {
		attrs[string(sqstypes.QueueAttributeNameFifoQueue)] = "true"
	}
	url, created, err := ensure.Queue(ctx, s.SQS, &sqs.CreateQueueInput{QueueName: aws.String(name), Attributes: attrs})
	if err != nil {
		return fmt.Errorf("localstack: queue %s: %w", name, err)
	}
	s.QueueURL[name] = url
	if created {
		s.undo(func(ctx context.Context) error {
			_, err := s.SQS.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: aws.String(url)})
			return err
		})
	}
	return nil
}

// The schema of an idempotency table. It is not shared with dynamostore, so that a test with this table fails if the schema
// in dynamostore changes.
const (
	tableKey     = "id"
	ttlAttribute = "expiration"
)

func (s *Stack) createTable(ctx context.Context, name string) error {
	created, err := ensure.Table(ctx, s.DynamoDB, &dynamodb.CreateTableInput{
		TableName:            aws.String(name),
		BillingMode:          ddbtypes.BillingModePayPerRequest,
		KeySchema:            []ddbtypes.KeySchemaElement{{AttributeName: aws.String(tableKey), KeyType: ddbtypes.KeyTypeHash}},
		AttributeDefinitions: []ddbtypes.AttributeDefinition{{AttributeName: aws.String(tableKey), AttributeType: ddbtypes.ScalarAttributeTypeS}},
	}, ttlAttribute)
	if created {
		s.undo(func(ctx context.Context) error {
			_, err := s.DynamoDB.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: aws.String(name)})
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("localstack: table %s: %w", name, err)
	}
	return nil
}
