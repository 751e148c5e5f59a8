package coexist

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/emf"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/lambda"
	"github.com/sqsonce/sqsonce/localstack"
	"github.com/sqsonce/sqsonce/localstack/esm"
	"github.com/sqsonce/sqsonce/localstack/runtimeapi"
	"github.com/sqsonce/sqsonce/otelsqs"
)

// hangs is the environment variable that makes the test binary a Lambda function. Its value says what never ends.
const hangs = "SQSONCE_TEST_HANGS"

func TestMain(m *testing.M) {
	what := os.Getenv(hangs)
	if what == "" {
		slog.SetDefault(slog.New(slog.DiscardHandler))
		os.Exit(m.Run())
	}
	slog.SetDefault(lambdacontext.NewLogger())
	traces := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter{what}))
	tel, errTel := otelsqs.New(func(o *otelsqs.Options) {
		o.TracerProvider = traces
		o.Flush = func(ctx context.Context) error {
			fmt.Println("flush")
			if what == "flush" {
				select {}
			}
			return traces.ForceFlush(ctx)
		}
	})
	metrics, errMetrics := emf.New()
	if err := errors.Join(errTel, errMetrics); err != nil {
		panic(err)
	}
	lambda.Start(func(_ context.Context, m *sqsonce.Message) error {
		fmt.Println("handled", m.Body)
		return nil
	}, tel.Lambda, metrics.Lambda, func(o *lambda.Options) { o.Client, o.Margin = lambda.NoClient, functionTimeout-time.Second })
}

// exporter is one whose collector does not answer.
type exporter struct{ what string }

func (e exporter) ExportSpans(ctx context.Context, _ []sdktrace.ReadOnlySpan) error {
	if e.what == "exporter" {
		select {}
	}
	<-ctx.Done()
	return ctx.Err()
}

func (exporter) Shutdown(context.Context) error { return nil }

const functionTimeout = 4 * time.Second

// TestFlushThatHangs runs a function whose process is killed at its deadline, as Lambda does it. With a collector that does not answer,
// an exporter or a Flush that ignores its context, every invocation is answered in time: each message is handled once.
func TestFlushThatHangs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		what       string
		notInTime  bool // the hook
		notFlushed int  // lines that say so
	}{
		{"collector", false, 1},
		{"exporter", false, 1}, // the SDK waits for none
		{"flush", true, 0},
	} {
		t.Run(test.what, func(t *testing.T) {
			t.Parallel()
			out, invocations := runFunction(t, test.what, 8)
			for i := range 8 {
				if n := strings.Count(out, fmt.Sprintf("handled %d\n", i)); n != 1 {
					t.Errorf("message %d was handled %d times", i, n)
				}
			}
			abandoned := 0
			if test.notInTime {
				abandoned = invocations
			}
			for line, want := range map[string]int{
				"flush\n": invocations, `"_aws"`: invocations, "hook abandoned": abandoned, "telemetry not exported": test.notFlushed,
			} {
				if n := strings.Count(out, line); n != want {
					t.Errorf("%d times %q, want %d", n, line, want)
				}
			}
			if t.Failed() {
				t.Log(out)
			}
		})
	}
}

// runFunction runs the function in one process behind a mapping until the queue is empty. It returns its output, and the number of its
// invocations, of which none failed.
func runFunction(t *testing.T, what string, messages int) (out string, invocations int) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stack := must.Get(localstack.Start(ctx, func(o *localstack.Options) { o.Queues = []localstack.Queue{{Name: "orders"}} }))(t)
	defer stack.Close(context.Background())
	url := stack.QueueURL["orders"]
	for i := range messages {
		must.Get(stack.SQS.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String(fmt.Sprint(i))}))(t)
	}
	var output bytes.Buffer // written until the function is closed
	f := must.Get(runtimeapi.Start(ctx, os.Args[0], func(o *runtimeapi.Options) {
		o.Env, o.Stdout, o.Stderr = []string{hangs + "=" + what}, &output, &output
		o.Timeout, o.Processes = functionTimeout, 1
	}))(t)
	var n atomic.Int64
	mapping, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- esm.Run(mapping, stack.SQS, esm.Config{
			QueueURL: url, BatchSize: messages / 2, MaximumConcurrency: 2, FunctionTimeout: functionTimeout, InvokerTimesOut: true,
			ReportBatchItemFailures: true, Wait: time.Second,
		}, func(ctx context.Context, payload []byte) ([]byte, error) {
			response, err := f.Invoke(ctx, payload)
			if !errors.Is(err, runtimeapi.ErrThrottled) {
				n.Add(1)
				if err != nil || string(response) != `{"batchItemFailures":[]}` {
					t.Errorf("answered %s, %v", response, err)
				}
			}
			return response, err
		})
	}()
	for len(stack.MemSQS().Messages("orders")) > 0 && ctx.Err() == nil {
		time.Sleep(20 * time.Millisecond)
	}
	stop()
	must.Do(t, errors.Join(<-ended, ctx.Err(), f.Close(context.Background())))
	return output.String(), int(n.Load())
}
