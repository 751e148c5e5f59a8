package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/localstack"
)

// deployed is the outputs of a stack of template.yaml, whose functions consume from the same queues as the demo's workers.
type deployed struct {
	OrdersQueueUrl, OrdersDLQUrl, OrdersFifoQueueUrl, OrdersFifoDLQUrl, DedupTableName, LedgerTableName string
}

// readDeployed reads the file that STACK_OUTPUTS names. nil: there is no stack.
func readDeployed() (*deployed, error) {
	file := os.Getenv("STACK_OUTPUTS")
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var outputs []struct{ OutputKey, OutputValue string }
	if err := json.Unmarshal(text, &outputs); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	d := &deployed{}
	for field, value := range reflect.ValueOf(d).Elem().Fields() {
		for _, o := range outputs {
			if o.OutputKey == field.Name {
				value.SetString(o.OutputValue)
			}
		}
		if value.IsZero() {
			return nil, fmt.Errorf("%s has no output %s: is it of a stack of template.yaml?", file, field.Name)
		}
	}
	return d, nil
}

func (d *deployed) names() names {
	return names{
		fifo: path.Base(d.OrdersFifoQueueUrl), fifoDLQ: path.Base(d.OrdersFifoDLQUrl),
		standard: path.Base(d.OrdersQueueUrl), standardDLQ: path.Base(d.OrdersDLQUrl),
		ledger: d.LedgerTableName, dedup: d.DedupTableName,
	}
}

// connect returns the stack, which the demo neither creates nor deletes. Nothing is between AWS and its clients, so that
// nothing is counted, and there is no outage: a signature is for one host.
func (d *deployed) connect(ctx context.Context, b *backend) (*stack, error) {
	if b.env != nil {
		return nil, fmt.Errorf("STORE=%s: a deployed stack has its records in DynamoDB", os.Getenv("STORE"))
	}
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, err
	}
	b.relay = nil // the relay of the stack publishes to the FIFO queue alone
	b.noOutage = "nothing stands between a deployed stack and its clients"
	return &stack{names: d.names(), backend: b, deployed: true, Stack: &localstack.Stack{
		SQS: sqs.NewFromConfig(cfg), DynamoDB: dynamodb.NewFromConfig(cfg), QueueURL: map[string]string{
			path.Base(d.OrdersQueueUrl): d.OrdersQueueUrl, path.Base(d.OrdersDLQUrl): d.OrdersDLQUrl,
			path.Base(d.OrdersFifoQueueUrl): d.OrdersFifoQueueUrl, path.Base(d.OrdersFifoDLQUrl): d.OrdersFifoDLQUrl,
		},
	}}, nil
}
