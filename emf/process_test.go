package emf_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/emf"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/lambda"
	"github.com/sqsonce/sqsonce/localstack/esm"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
	"github.com/sqsonce/sqsonce/localstack/runtimeapi"
)

// isFunction is the environment variable that makes the test binary a Lambda function.
const isFunction = "SQSONCE_TEST_EMF"

func TestMain(m *testing.M) {
	if os.Getenv(isFunction) == "" {
		os.Exit(m.Run())
	}
	slog.SetDefault(lambdacontext.NewLogger())
	metrics, err := emf.New() // writes to standard output, as the log does
	if err != nil {
		panic(err)
	}
	lambda.Start(func(ctx context.Context, m *sqsonce.Message) error {
		for range 20 {
			slog.InfoContext(ctx, "handling", "message_id", m.ID)
		}
		if m.Body == "kills" && m.ReceiveCount == 1 {
			p, err := os.FindProcess(os.Getpid())
			if err := errors.Join(err, p.Kill()); err != nil {
				return err
			}
			select {}
		}
		return nil
	}, metrics.Lambda, func(o *lambda.Options) { o.Client = lambda.NoClient })
}

// TestProcess: a process that is killed loses the line of its invocation and nothing else. Every line in the output of a process,
// of the log and of invocations that run at the same time, is whole.
func TestProcess(t *testing.T) {
	t.Parallel()
	const messages = 24
	for perProcess, kills := range map[int]int{1: 2, 4: 0} {
		t.Run(fmt.Sprintf("%d invocations at once", perProcess), func(t *testing.T) {
			t.Parallel()
			r := newRun(t, perProcess)
			for i := range messages {
				body := "handled"
				if i%10 == 1 && i/10 < kills {
					body = "kills"
				}
				must.Get(r.client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &r.queueURL, MessageBody: &body}))(t)
			}
			r.untilEmpty()

			begun, records, done, redelivered := map[string]bool{}, []int{}, 0, 0
			for text := range strings.Lines(r.out.String()) {
				var line struct {
					RequestID                  string
					AWS                        any `json:"_aws"`
					Records, Done, Redelivered int
				}
				if err := json.Unmarshal([]byte(text), &line); err != nil || line.RequestID == "" {
					t.Errorf("not a line: %s", text)
				}
				ended, known := begun[line.RequestID]
				if line.AWS == nil {
					begun[line.RequestID] = ended
					continue
				}
				if problems := check(text); problems != nil || !known || ended {
					t.Errorf("%s%v; invocation known %t, has another line %t", text, problems, known, ended)
				}
				begun[line.RequestID] = true
				records = append(records, line.Records)
				done += line.Done
				redelivered += line.Redelivered
			}
			if n := len(begun) - len(records); n != kills || len(r.failed) != kills {
				t.Errorf("%d invocations of %d have no line, %d failed; want %d", n, len(begun), len(r.failed), kills)
			}
			if slices.Sort(records); !slices.Equal(records, slices.Sorted(slices.Values(r.succeeded))) {
				t.Errorf("the lines have %d records, want %d", records, r.succeeded)
			}
			again := 0
			for _, n := range r.failed {
				again += n
			}
			if done != messages || redelivered != again {
				t.Errorf("%d messages done, %d of them redelivered; want %d and %d", done, redelivered, messages, again)
			}
			if t.Failed() {
				t.Log(r.out.String())
			}
		})
	}
}

// run is a process of the function behind a mapping.
type run struct {
	*testing.T
	srv      *memsqs.Server
	client   *sqs.Client
	queueURL string
	function *runtimeapi.Function
	out      bytes.Buffer // written until the function is closed

	mu                sync.Mutex
	succeeded, failed []int // records of each invocation
}

const functionTimeout = time.Minute

func newRun(t *testing.T, perProcess int) *run {
	srv := memsqs.New()
	t.Cleanup(srv.Close)
	r := &run{T: t, srv: srv, client: sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://sqs.local"), HTTPClient: &http.Client{Transport: srv},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, nil
		}),
	})}
	queue, err := r.client.CreateQueue(t.Context(), &sqs.CreateQueueInput{
		QueueName: aws.String("orders"), Attributes: map[string]string{"VisibilityTimeout": strconv.Itoa(int(functionTimeout.Seconds()))},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.queueURL = *queue.QueueUrl
	r.function, err = runtimeapi.Start(context.Background(), os.Args[0], func(o *runtimeapi.Options) {
		o.Env, o.Stdout, o.Stderr = []string{isFunction + "=1", "AWS_LAMBDA_LOG_FORMAT=JSON"}, &r.out, &r.out
		o.Timeout, o.Processes, o.PerProcess = functionTimeout, 1, perProcess
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// untilEmpty runs the mapping until the queue is empty, and ends the process.
func (r *run) untilEmpty() {
	ctx, cancel := context.WithTimeout(r.Context(), functionTimeout)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- esm.Run(ctx, r.client, esm.Config{
			QueueURL: r.queueURL, BatchSize: 3, MaximumConcurrency: 4, FunctionTimeout: functionTimeout, InvokerTimesOut: true,
			ReportBatchItemFailures: true, Wait: time.Second, Logger: slog.New(slog.DiscardHandler),
		}, r.invoke)
	}()
	for len(r.srv.Messages("orders")) > 0 && ctx.Err() == nil {
		time.Sleep(20 * time.Millisecond)
	}
	if n := len(r.srv.Messages("orders")); n > 0 {
		r.Errorf("%d messages are still in the queue", n)
	}
	cancel()
	must.Do(r, errors.Join(<-ended, r.function.Close(context.Background())))
}

// invoke counts an invocation. The messages of one that failed become visible, as they would after their visibility timeout.
func (r *run) invoke(ctx context.Context, payload []byte) ([]byte, error) {
	var e events.SQSEvent
	if err := json.Unmarshal(payload, &e); err != nil {
		return nil, err
	}
	response, err := r.function.Invoke(ctx, payload)
	if errors.Is(err, runtimeapi.ErrThrottled) {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.succeeded = append(r.succeeded, len(e.Records))
		return response, nil
	}
	r.failed = append(r.failed, len(e.Records))
	for _, m := range e.Records {
		_, visible := r.client.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{QueueUrl: &r.queueURL, ReceiptHandle: &m.ReceiptHandle})
		err = errors.Join(err, visible)
	}
	return nil, err
}
