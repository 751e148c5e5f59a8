package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/examples/orders"
	"github.com/sqsonce/sqsonce/fifo/outbox/dynamooutbox"
	"github.com/sqsonce/sqsonce/internal/proof/netfault"
	"github.com/sqsonce/sqsonce/localstack"
)

// stack is SQS and DynamoDB, with a counter between SQS and its clients, and the backend, with a proxy before its store.
type stack struct {
	*localstack.Stack
	names   names
	counter *counter
	backend *backend
	outage  *netfault.Proxy // between the store and the workers and functions; nil: there is none
	// deployed is of a stack of template.yaml: functions are beside the demo, and counter and outage nil.
	deployed bool
}

func startStack(ctx context.Context, n names, b *backend) (*stack, error) {
	inner, err := localstack.Start(ctx, func(o *localstack.Options) {
		o.HTTP = true
		o.Tables = []string{n.dedup}
		for _, name := range []string{n.fifo, n.standard} {
			// A duplicate of a slow order is received again until the order is done: it must not be dead-lettered.
			o.Queues = append(o.Queues, localstack.Queue{Name: name, MaxReceiveCount: 20, Attributes: map[string]string{
				"VisibilityTimeout": strconv.Itoa(int(queueVisibility.Seconds())),
			}})
		}
	})
	if err != nil {
		return nil, err
	}
	s := &stack{Stack: inner, names: n, backend: b}
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(err, s.close(context.WithoutCancel(ctx)))
	}
	return s, nil
}

func (s *stack) prepare(ctx context.Context) error {
	if err := orders.CreateLedger(ctx, s.DynamoDB, s.names.ledger); err != nil {
		return err
	}
	if s.backend.env == nil {
		if err := s.backend.useDynamoDB(s.dynamoURL()); err != nil {
			return err
		}
		if err := s.createOutbox(ctx); err != nil {
			return err
		}
	}
	var err error
	if s.backend.address != "" {
		if s.outage, err = netfault.Start(s.backend.address); err != nil {
			return err
		}
	}
	s.counter, err = startCounter(aws.ToString(s.SQS.Options().BaseEndpoint))
	return err
}

// createOutbox creates the tables of the orders and of the outbox.
func (s *stack) createOutbox(ctx context.Context) error {
	_, err := s.DynamoDB.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: aws.String(s.names.orders), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	})
	if err != nil {
		return err
	}
	return dynamooutbox.CreateTable(ctx, s.DynamoDB, s.names.outbox)
}

func (s *stack) close(ctx context.Context) error {
	var err error
	if s.counter != nil {
		err = s.counter.close()
	}
	if s.outage != nil {
		err = errors.Join(err, s.outage.Close())
	}
	if s.deployed {
		return err
	}
	tables := []string{s.names.ledger}
	if s.backend.worker == dynamoWorker {
		tables = append(tables, s.names.orders, s.names.outbox)
	}
	for _, table := range tables {
		_, tableErr := s.DynamoDB.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &table})
		err = errors.Join(err, tableErr)
	}
	return errors.Join(err, s.Stack.Close(ctx))
}

func (s *stack) dynamoURL() string { return aws.ToString(s.DynamoDB.Options().BaseEndpoint) }

// storeEnv is the environment of workers and functions, which use the store by the proxy. The demo itself does not.
func (s *stack) storeEnv() []string {
	if s.outage == nil {
		return s.backend.env(s.backend.address)
	}
	return s.backend.env(s.outage.Addr)
}

// ledger returns every account, by name.
func (s *stack) ledger(ctx context.Context) (map[string]orders.Account, error) {
	if s.backend.ledgerCommand == nil {
		return orders.ReadLedger(ctx, s.DynamoDB, s.names.ledger)
	}
	text, err := s.backend.ledgerCommand().Output()
	if err != nil {
		return nil, fmt.Errorf("reading the ledger: %w", err)
	}
	accounts := map[string]orders.Account{}
	return accounts, json.Unmarshal(text, &accounts)
}

// booked returns how often each event is booked.
func (s *stack) booked(ctx context.Context) (map[string]int, error) {
	ledger, err := s.ledger(ctx)
	if err != nil {
		return nil, err
	}
	n := map[string]int{}
	for _, a := range ledger {
		for _, id := range a.Entries {
			n[id]++
		}
	}
	return n, nil
}

// drained reports whether both queues are empty, with no message in flight.
func (s *stack) drained(ctx context.Context) (bool, error) {
	for _, q := range []string{s.names.fifo, s.names.standard} {
		n, err := s.messages(ctx, q)
		if err != nil || n > 0 {
			return false, err
		}
	}
	return true, nil
}

func (s *stack) messages(ctx context.Context, queue string) (int, error) {
	out, err := s.SQS.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl:       aws.String(s.QueueURL[queue]),
		AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameAll},
	})
	if err != nil {
		return 0, err
	}
	total := 0
	for _, name := range []sqstypes.QueueAttributeName{
		sqstypes.QueueAttributeNameApproximateNumberOfMessages,
		sqstypes.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
		sqstypes.QueueAttributeNameApproximateNumberOfMessagesDelayed,
	} {
		n, err := strconv.Atoi(out.Attributes[string(name)])
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}
