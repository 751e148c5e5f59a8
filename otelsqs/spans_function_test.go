package otelsqs_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/sqsonce/sqsonce"
	need "github.com/sqsonce/sqsonce/internal/must" // must is in the examples
	"github.com/sqsonce/sqsonce/lambda"
	"github.com/sqsonce/sqsonce/localstack/esm"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// mapped has an event source mapping invoke a function for a while.
func (f *fixture) mapped(d time.Duration, h sqsonce.Handler, optFns ...func(*lambda.Options)) {
	f.Helper()
	call := need.Get(lambda.Wrap(h, append([]func(*lambda.Options){f.tel.Lambda, func(o *lambda.Options) {
		o.Client, o.Logger, o.Backoff = f.sqs, f.quiet, backoff
	}}, optFns...)...))(f)
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	err := esm.Run(ctx, f.sqs, esm.Config{
		QueueURL: f.url, FunctionTimeout: 10 * time.Second, Wait: time.Second, ReportBatchItemFailures: true, Logger: f.quiet,
	}, func(ctx context.Context, event []byte) ([]byte, error) {
		var e events.SQSEvent
		if err := json.Unmarshal(event, &e); err != nil {
			return nil, err
		}
		answer, err := call(ctx, e)
		text, jsonErr := json.Marshal(answer)
		return text, errors.Join(err, jsonErr)
	})
	if err != nil {
		f.Error(err)
	}
}

// What the spans of a handler say does not depend on its host, and is in [TestSpans]: here is what a function has besides.
func TestSpansOfAFunction(t *testing.T) {
	t.Parallel()
	quick := 50 * time.Millisecond
	testSpans(t, "function-", map[string]func(f *fixture){
		"first": func(f *fixture) { f.publish("1"); f.mapped(5*time.Second, f.once().Handler(takes(quick))) },
		"retry.fifo": func(f *fixture) {
			f.publish("1")
			f.mapped(30*time.Second, f.once().Handler(takes(quick, sqsonce.RetryAfter(2*time.Second, errCard))))
		},
		"duplicate": func(f *fixture) {
			h := f.once().Handler(takes(quick))
			for range 2 {
				f.publish("1")
				f.mapped(5*time.Second, h)
			}
		},
		"shutdown": func(f *fixture) { f.publish("1"); f.mapped(5*time.Second, f.once().Handler(takes(time.Hour))) },
		"abandoned": func(f *fixture) {
			f.publish("1")
			f.mapped(5*time.Second, f.once().Handler(func(context.Context, *sqsonce.Message) error { time.Sleep(time.Hour); return nil }))
			time.Sleep(2 * time.Hour) // the handler returns, and changes nothing
		},
		"rejected": func(f *fixture) {
			f.publish("1")
			dead := f.create("orders-dlq", nil)
			f.mapped(5*time.Second, f.once().Handler(takes(quick, sqsonce.Reject(errCard))), func(o *lambda.Options) { o.DeadLetterQueue = dead })
		},
		"rejected and not sent": func(f *fixture) {
			f.publish("1")
			dead := f.create("orders-dlq", nil)
			f.server.Set(fault.Plan{Rules: []fault.Rule{{Op: "SendMessage", Prob: 1, Do: fault.Error, Code: "AccessDenied"}}})
			reject := sqsonce.Reject(errCard)
			f.mapped(30*time.Second, f.once().Handler(takes(quick, reject, reject)), func(o *lambda.Options) { o.DeadLetterQueue = dead })
		},
		"batch": func(f *fixture) {
			f.publish("1")
			f.mapped(5*time.Second, f.once().Handler(sqsonce.Batch(func(context.Context, []*sqsonce.Message) []error {
				time.Sleep(quick)
				return []error{errCard}
			}, f.tel.Batch)))
		},
	})
}
