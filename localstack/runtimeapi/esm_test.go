package runtimeapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/localstack/esm"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
	"github.com/sqsonce/sqsonce/localstack/runtimeapi"
)

// Invoke serves an event source mapping. A process is killed meanwhile, and the mapping has more concurrency than there are
// processes, so it is throttled. Even so every message is processed, and is deleted only after that.
func TestUnderEventSourceMapping(t *testing.T) {
	t.Parallel()
	x := start(t, func(o *runtimeapi.Options) { o.Processes, o.Timeout = 2, time.Second })
	srv := memsqs.New()
	defer srv.Close()
	client := sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://sqs.local"), HTTPClient: &http.Client{Transport: srv},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, nil
		}),
	})
	queue, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{
		QueueName: aws.String("jobs"), Attributes: map[string]string{"VisibilityTimeout": "2"},
	})
	if err != nil {
		t.Fatal(err)
	}
	const messages = 30
	for i := range messages {
		if _, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: queue.QueueUrl, MessageBody: aws.String(fmt.Sprint(i))}); err != nil {
			t.Fatal(err)
		}
	}

	var mu sync.Mutex
	done := map[string]bool{}
	failures := 0
	// The test bootstrap takes one request, so each event has one record, and its body is the request.
	invoke := func(ctx context.Context, event []byte) ([]byte, error) {
		var e events.SQSEvent
		if err := json.Unmarshal(event, &e); err != nil {
			return nil, err
		}
		in, err := json.Marshal(request{Value: e.Records[0].Body, Sleep: 30 * time.Millisecond})
		if err != nil {
			return nil, err
		}
		out, err := x.Invoke(ctx, in)
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			done[e.Records[0].Body] = true
		} else {
			failures++
		}
		return out, err
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- esm.Run(ctx, client, esm.Config{
			QueueURL: aws.ToString(queue.QueueUrl), BatchSize: 1, MaximumConcurrency: 3, FunctionTimeout: time.Second,
			InvokerTimesOut: true, Wait: time.Second, Logger: slog.New(slog.DiscardHandler),
		}, invoke)
	}()
	time.Sleep(200 * time.Millisecond)
	if _, err := x.KillOne(); err != nil {
		t.Error(err)
	}
	for begin := time.Now(); len(srv.Messages("jobs")) > 0 && time.Since(begin) < 20*time.Second; {
		time.Sleep(20 * time.Millisecond)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("esm.Run: %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if remaining := len(srv.Messages("jobs")); len(done) != messages || remaining != 0 {
		t.Errorf("%d messages were processed and %d are in the queue, want %d and none", len(done), remaining, messages)
	}
	if failures == 0 {
		t.Error("no invocation failed: neither the kill nor the throttling was seen")
	}
}
