package localstack_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack"
)

func start(t *testing.T, optFns ...func(*localstack.Options)) *localstack.Stack {
	t.Helper()
	return must.Get(localstack.Start(t.Context(), optFns...))(t)
}

func closeStack(t *testing.T, s *localstack.Stack) {
	t.Helper()
	if err := s.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func noEndpoint(t *testing.T) {
	for _, name := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL_DYNAMODB"} {
		t.Setenv(name, "")
	}
}

// wantInMemory expects the services without an endpoint in memory, and of the others a panic that names the endpoint.
func wantInMemory(t *testing.T, s *localstack.Stack, sqsEndpoint, dynamoEndpoint string) {
	t.Helper()
	want := func(method, service, endpoint string, call func() bool) {
		t.Helper()
		defer func() {
			t.Helper()
			text := "localstack: " + service + " has the endpoint " + endpoint + ": set Options.InMemory to use " + method
			if got := recover(); got != any(text) && endpoint != "" {
				t.Errorf("%s: got panic %v, want %q", method, got, text)
			} else if got != nil && endpoint == "" {
				t.Errorf("%s: got panic %v, want a server", method, got)
			}
		}()
		if !call() {
			t.Errorf("%s: got nil", method)
		}
	}
	want("MemSQS", "SQS", sqsEndpoint, func() bool { return s.MemSQS() != nil })
	want("MemDynamoDB", "DynamoDB", dynamoEndpoint, func() bool { return s.MemDynamoDB() != nil })
}

func TestInMemoryInVirtualTime(t *testing.T) {
	noEndpoint(t)
	synctest.Test(t, func(t *testing.T) {
		s := start(t, func(o *localstack.Options) {
			o.Queues = []localstack.Queue{{Name: "jobs", Attributes: map[string]string{"VisibilityTimeout": "43200"}}}
			o.Tables = []string{"records"}
		})
		defer closeStack(t, s)
		wantInMemory(t, s, "", "")
		if s.URL != "" {
			t.Errorf("URL %q, want none", s.URL)
		}
		url := aws.String(s.QueueURL["jobs"])
		must.Get(s.SQS.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: url, MessageBody: aws.String("hello")}))(t)
		begin := time.Now()
		for range 2 { // the second delivery comes after twelve hours
			out := &sqs.ReceiveMessageOutput{}
			for len(out.Messages) == 0 {
				out = must.Get(s.SQS.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: url, WaitTimeSeconds: 20}))(t)
			}
		}
		if got := time.Since(begin); got != 12*time.Hour {
			t.Errorf("the second delivery came after %s, want 12h", got)
		}
	})
}

func TestMessageMovesToTheDeadLetterQueue(t *testing.T) {
	noEndpoint(t)
	for _, tt := range []struct{ queue, dlq string }{{"jobs", "jobs-dlq"}, {"jobs.fifo", "jobs-dlq.fifo"}} {
		synctest.Test(t, func(t *testing.T) {
			s := start(t, func(o *localstack.Options) {
				o.Queues = []localstack.Queue{{Name: tt.queue, MaxReceiveCount: 1, Attributes: map[string]string{"VisibilityTimeout": "1"}}}
			})
			defer closeStack(t, s)
			in := &sqs.SendMessageInput{QueueUrl: aws.String(s.QueueURL[tt.queue]), MessageBody: aws.String("hello")}
			if strings.HasSuffix(tt.queue, ".fifo") {
				in.MessageGroupId, in.MessageDeduplicationId = aws.String("g"), aws.String("d")
			}
			must.Get(s.SQS.SendMessage(t.Context(), in))(t)
			for range 2 {
				must.Get(s.SQS.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: in.QueueUrl, WaitTimeSeconds: 5}))(t)
			}
			if got := len(s.MemSQS().Messages(tt.dlq)); got != 1 {
				t.Errorf("%s holds %d messages, want 1", tt.dlq, got)
			}
		})
	}
}

func TestNoDeadLetterQueue(t *testing.T) {
	noEndpoint(t)
	s := start(t, func(o *localstack.Options) { o.Queues = []localstack.Queue{{Name: "jobs", MaxReceiveCount: -1}} })
	defer closeStack(t, s)
	if url, ok := s.QueueURL["jobs-dlq"]; ok {
		t.Errorf("got a dead-letter queue %s, want none", url)
	}
}

// TestEndpoint uses the endpoint of another stack. Close deletes what Start created, and nothing else.
func TestEndpoint(t *testing.T) {
	noEndpoint(t)
	server := start(t, func(o *localstack.Options) {
		o.HTTP = true
		o.Queues = []localstack.Queue{{Name: "theirs"}}
		o.Tables = []string{"theirs"}
	})
	defer closeStack(t, server)
	t.Setenv("AWS_ENDPOINT_URL", server.URL)

	s := start(t, func(o *localstack.Options) {
		o.Queues = []localstack.Queue{{Name: "theirs"}, {Name: "ours"}}
		o.Tables = []string{"theirs", "ours"}
	})
	wantInMemory(t, s, server.URL, server.URL)
	if s.URL != server.URL {
		t.Errorf("URL %q, want the endpoint %s", s.URL, server.URL)
	}
	closeStack(t, s)

	ctx := t.Context()
	_, err := server.SQS.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("ours")})
	if _, deleted := errors.AsType[*sqstypes.QueueDoesNotExist](err); !deleted {
		t.Errorf("queue that Start created: got %v, want it deleted", err)
	}
	if _, err := server.SQS.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("theirs")}); err != nil {
		t.Errorf("queue that existed before: %v", err)
	}
	tables := must.Get(server.DynamoDB.ListTables(ctx, &dynamodb.ListTablesInput{}))(t)
	if got := strings.Join(tables.TableNames, " "); got != "theirs" {
		t.Errorf("tables after Close: %s, want those that existed before", got)
	}
}

func TestOneServiceAtAnEndpoint(t *testing.T) {
	noEndpoint(t)
	server := start(t, func(o *localstack.Options) { o.HTTP = true })
	defer closeStack(t, server)
	for _, tt := range []struct{ variable, sqs, dynamoDB string }{{"AWS_ENDPOINT_URL_SQS", server.URL, ""}, {"AWS_ENDPOINT_URL_DYNAMODB", "", server.URL}} {
		t.Run(tt.variable, func(t *testing.T) {
			t.Setenv(tt.variable, server.URL)
			s := start(t, func(o *localstack.Options) {
				o.Queues = []localstack.Queue{{Name: "jobs"}}
				o.Tables = []string{"records"}
			})
			defer closeStack(t, s)
			wantInMemory(t, s, tt.sqs, tt.dynamoDB)
			if s.URL != "" {
				t.Errorf("URL %q, want none in common", s.URL)
			}
			_, err := server.SQS.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("jobs")})
			if _, missing := errors.AsType[*sqstypes.QueueDoesNotExist](err); missing != (tt.sqs == "") {
				t.Errorf("queue at the endpoint: got %v", err)
			}
			_, err = server.DynamoDB.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("records")})
			if _, missing := errors.AsType[*ddbtypes.ResourceNotFoundException](err); missing != (tt.dynamoDB == "") {
				t.Errorf("table at the endpoint: got %v", err)
			}
		})
	}
}

// If Start fails, it deletes what it created.
func TestStartUndoesItself(t *testing.T) {
	noEndpoint(t)
	server := start(t, func(o *localstack.Options) { o.HTTP = true })
	defer closeStack(t, server)
	_, err := localstack.Start(t.Context(), func(o *localstack.Options) {
		o.Endpoint = server.URL
		o.Queues = []localstack.Queue{{Name: "fine"}, {Name: "not a legal name"}}
	})
	if err == nil || !strings.Contains(err.Error(), "not a legal name") {
		t.Errorf("got %v, want an error with the name of the queue", err)
	}
	out := must.Get(server.SQS.ListQueues(t.Context(), &sqs.ListQueuesInput{}))(t)
	if len(out.QueueUrls) != 0 {
		t.Errorf("queues after the failure: %v", out.QueueUrls)
	}
}

// InMemory is stronger than the environment.
func TestInMemoryOption(t *testing.T) {
	t.Setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
	s := start(t, func(o *localstack.Options) { o.InMemory, o.Tables = true, []string{"records"} })
	defer closeStack(t, s)
	wantInMemory(t, s, "", "")
	if _, err := localstack.Start(t.Context(), func(o *localstack.Options) { o.InMemory, o.Endpoint = true, "http://127.0.0.1:1" }); err == nil || !strings.Contains(err.Error(), "Options.Endpoint") {
		t.Errorf("got %v, want a refused Options.Endpoint", err)
	}
}
