package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/localstack"
)

func TestServesBothServicesOnOnePort(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, out, "127.0.0.1:0", []string{"jobs", "jobs.fifo"}, []string{"records"}) }()

	url, err := bufio.NewReader(in).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url = strings.TrimSpace(url)
	health, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	health.Body.Close()
	if health.StatusCode != http.StatusOK {
		t.Errorf("GET / returned %s, want 200", health.Status)
	}

	stack, err := localstack.Start(ctx, func(o *localstack.Options) { o.Endpoint = url })
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"jobs", "jobs-dlq", "jobs.fifo", "jobs-dlq.fifo"} {
		if _, err := stack.SQS.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(name)}); err != nil {
			t.Errorf("queue %s: %v", name, err)
		}
	}
	if _, err := stack.DynamoDB.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String("records")}); err != nil {
		t.Errorf("table records: %v", err)
	}

	cancel()
	if err := <-ended; err != nil {
		t.Errorf("ended with %v, want nil after a signal", err)
	}
}

func TestAddressInUse(t *testing.T) {
	stack, err := localstack.Start(t.Context(), func(o *localstack.Options) { o.HTTP = true })
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stack.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	err = run(t.Context(), io.Discard, strings.TrimPrefix(stack.URL, "http://"), nil, nil)
	if err == nil || errors.Is(err, http.ErrServerClosed) {
		t.Errorf("got %v, want that the address is in use", err)
	}
}
