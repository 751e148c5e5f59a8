package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/sqsonce/sqsonce/examples/orders"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack"
	"github.com/sqsonce/sqsonce/localstack/runtimeapi"
)

// maxGrowth is how much larger the bootstrap may be than the same handler on aws-lambda-go without package lambda. A cold
// start loads the whole file.
const maxGrowth = 1.10

// TestBootstrap runs this command as Lambda does. Its output has a line of metrics for each invocation, which know what became of the
// events, and the lines of the logger, with the ID of their invocation.
func TestBootstrap(t *testing.T) {
	for _, name := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL_DYNAMODB", "POWERTOOLS_SERVICE_NAME"} {
		t.Setenv(name, "")
	}
	if testing.Short() {
		t.Skip("builds two commands")
	}
	bootstrap := build(t, ".")
	if growth := float64(size(t, bootstrap)) / float64(size(t, build(t, "./testdata/bare"))); growth > maxGrowth {
		t.Errorf("the bootstrap has %.3f times the size of testdata/bare; want at most %.2f times", growth, maxGrowth)
	}
	stack := must.Get(localstack.Start(t.Context(), func(o *localstack.Options) {
		o.Queues, o.Tables, o.HTTP = []localstack.Queue{{Name: "orders"}}, []string{"dedup"}, true
	}))(t)
	defer stack.Close(context.Background())
	must.Do(t, orders.CreateLedger(t.Context(), stack.DynamoDB, "ledger"))
	var out bytes.Buffer
	f := must.Get(runtimeapi.Start(t.Context(), bootstrap, func(o *runtimeapi.Options) {
		o.Timeout, o.Stdout = time.Minute, &out
		o.Env = []string{
			"AWS_LAMBDA_LOG_FORMAT=JSON", "DEDUP_TABLE=dedup", "LEDGER_TABLE=ledger", "DEAD_LETTER_QUEUE=" + stack.QueueURL["orders-dlq"],
			"AWS_ENDPOINT_URL_SQS=" + *stack.SQS.Options().BaseEndpoint, "AWS_ENDPOINT_URL_DYNAMODB=" + *stack.DynamoDB.Options().BaseEndpoint,
		}
	}))(t)
	for range 2 {
		event := must.Get(json.Marshal(events.SQSEvent{Records: []events.SQSMessage{
			record("1", `{"id":"ord-1/placed","account":"acct-1","amount":250}`), record("2", "not json"),
		}}))(t)
		must.Get(f.Invoke(t.Context(), event))(t)
	}
	must.Do(t, f.Close(t.Context())) // all of its output is there

	var metrics []map[string]any
	for text := range strings.Lines(out.String()) {
		var line map[string]any
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if line["requestId"] == nil {
			t.Errorf("no ID of an invocation: %s", text)
		}
		if line["_aws"] != nil {
			metrics = append(metrics, line)
		}
	}
	if len(metrics) != 2 {
		t.Fatalf("%d lines of metrics, want one for each invocation:\n%s", len(metrics), out.String())
	}
	for i, want := range []map[string]any{
		{"Records": 2.0, "Done": 1.0, "Duplicates": 0.0, "Rejected": 1.0, "DeadLettered": 1.0, "cold_start": true, "queue": "orders", "service": "function"},
		{"Records": 2.0, "Done": 1.0, "Duplicates": 1.0, "Rejected": 1.0, "DeadLettered": 1.0, "cold_start": false, "queue": "orders", "service": "function"},
	} {
		for name, value := range want {
			if got := metrics[i][name]; got != value {
				t.Errorf("invocation %d: %s is %v, want %v", i, name, got, value)
			}
		}
	}
	if !strings.Contains(out.String(), `"message":"lambda: `) {
		t.Errorf("the logger's lines are not in the output:\n%s", out.String())
	}
}

func record(id, body string) events.SQSMessage {
	return events.SQSMessage{
		MessageId: id, Body: body, ReceiptHandle: "handle-" + id, EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:us-east-1:000000000000:orders",
		Attributes: map[string]string{"SentTimestamp": strconv.FormatInt(time.Now().UnixMilli(), 10), "ApproximateReceiveCount": "1"},
	}
}

// build builds for this machine: other tests have built most of the packages.
func build(t *testing.T, pkg string) (bootstrap string) {
	t.Helper()
	bootstrap = filepath.Join(t.TempDir(), "bootstrap")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-tags", "lambda.norpc", "-ldflags", "-s -w", "-o", bootstrap, pkg)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", pkg, err, text)
	}
	return bootstrap
}

func size(t *testing.T, file string) int64 {
	t.Helper()
	info := must.Get(os.Stat(file))(t)
	return info.Size()
}
