package esm_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce/localstack/esm"
)

// The messages of a batch of a, b and c that were not deleted; nil: all were deleted.
var (
	allFailed = []string{"a", "b", "c"}
	onlyB     = []string{"b"}
)

// TestResponse has the table of how Lambda handles a result of the function.
func TestResponse(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		response string // B stands for the message ID of b
		err      error
		on, off  []string // messages not deleted with and without ReportBatchItemFailures
		warn     string   // in the log with it
		warnOff  string   // in the log without it
	}{
		{name: "function error", err: errors.New("boom"), on: allFailed, off: allFailed, warn: "boom", warnOff: "boom"},
		{name: "error and response", response: `{"batchItemFailures":[]}`, err: errors.New("boom"), on: allFailed, off: allFailed},
		{name: "no body", response: ``},
		{name: "blank body", response: " \n"},
		{name: "null", response: `null`},
		{name: "empty object", response: `{}`},
		{name: "no failures", response: `{"batchItemFailures":[]}`},
		{name: "null failures", response: `{"batchItemFailures":null}`},
		{name: "one failure", response: `{"batchItemFailures":[{"itemIdentifier":"B"}]}`, on: onlyB, warnOff: "response ignored because ReportBatchItemFailures is off"},
		{name: "one failure twice", response: `{"batchItemFailures":[{"itemIdentifier":"B"},{"itemIdentifier":"B"}]}`, on: onlyB, warnOff: "response ignored"},
		{name: "other keys beside", response: `{"x":1,"batchItemFailures":[{"itemIdentifier":"B","why":"x"}]}`, on: onlyB, warnOff: "response ignored"},
		{name: "empty ID", response: `{"batchItemFailures":[{"itemIdentifier":""}]}`, on: allFailed, warn: "has no itemIdentifier", warnOff: "response ignored"},
		{name: "null ID", response: `{"batchItemFailures":[{"itemIdentifier":null}]}`, on: allFailed, warn: "invalid response", warnOff: "response ignored"},
		{name: "number for ID", response: `{"batchItemFailures":[{"itemIdentifier":123}]}`, on: allFailed, warn: "invalid response", warnOff: "response ignored"},
		{name: "wrong item key", response: `{"batchItemFailures":[{"badKey":"B"}]}`, on: allFailed, warn: "invalid response", warnOff: "response ignored"},
		{name: "item key in other case", response: `{"batchItemFailures":[{"ItemIdentifier":"B"}]}`, on: allFailed, warn: "invalid response", warnOff: "response ignored"},
		{name: "empty item", response: `{"batchItemFailures":[{}]}`, on: allFailed, warn: "invalid response", warnOff: "response ignored"},
		{name: "null item", response: `{"batchItemFailures":[null]}`, on: allFailed, warn: "invalid response", warnOff: "response ignored"},
		{name: "strings as items", response: `{"batchItemFailures":["B"]}`, on: allFailed, warn: "invalid response", warnOff: "response ignored"},
		{name: "unknown ID", response: `{"batchItemFailures":[{"itemIdentifier":"elsewhere"}]}`, on: allFailed, warn: "elsewhere", warnOff: "response ignored"},
		{name: "good and bad ID", response: `{"batchItemFailures":[{"itemIdentifier":"B"},{"itemIdentifier":"elsewhere"}]}`, on: allFailed, warn: "elsewhere", warnOff: "response ignored"},
		{name: "good and empty ID", response: `{"batchItemFailures":[{"itemIdentifier":"B"},{"itemIdentifier":""}]}`, on: allFailed, warn: "invalid response", warnOff: "response ignored"},
		{name: "not JSON", response: `{"batchItemFailures":[`, on: allFailed, warn: "not JSON", warnOff: "response ignored"},
		{name: "text", response: `done`, on: allFailed, warn: "not JSON"},
		{name: "JSON string", response: `"done"`, on: allFailed, warn: "not an object"},
		{name: "JSON number", response: `7`, on: allFailed, warn: "not an object"},
		{name: "JSON list", response: `[{"itemIdentifier":"B"}]`, on: allFailed, warn: "not an object"},
		{name: "failures are an object", response: `{"batchItemFailures":{"itemIdentifier":"B"}}`, on: allFailed, warn: "not a list", warnOff: "response ignored"},
		{name: "failures are a string", response: `{"batchItemFailures":"B"}`, on: allFailed, warn: "not a list", warnOff: "response ignored"},
		{name: "name in upper case", response: `{"BatchItemFailures":[{"itemIdentifier":"B"}]}`, warn: "has no batchItemFailures"},
		{name: "name with underscores", response: `{"batch_item_failures":[{"itemIdentifier":"B"}]}`, warn: "has no batchItemFailures"},
		{name: "API Gateway's form", response: `{"statusCode":200,"body":"{\"batchItemFailures\":[{\"itemIdentifier\":\"B\"}]}"}`, warn: "has no batchItemFailures"},
		{name: "over 6 MB", response: `{}` + strings.Repeat(" ", 6<<20), on: allFailed, off: allFailed, warn: "6 MB", warnOff: "6 MB"},
	}
	for _, tt := range tests {
		for _, report := range []bool{true, false} {
			want, warn := tt.off, tt.warnOff
			name := tt.name + "/off"
			if report {
				want, warn, name = tt.on, tt.warn, tt.name+"/on"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				onQueue(t, "jobs", func(x *fixture) {
					x.send("a", "b", "c")
					invocations := 0
					x.run(esm.Config{ReportBatchItemFailures: report}, func(_ context.Context, event []byte) ([]byte, error) {
						invocations++
						var e events.SQSEvent
						if err := json.Unmarshal(event, &e); err != nil || len(e.Records) != 3 {
							t.Errorf("event has %d records, error %v; want 3", len(e.Records), err)
							return nil, nil
						}
						return []byte(strings.ReplaceAll(tt.response, "B", e.Records[1].MessageId)), tt.err
					})
					time.Sleep(time.Second)
					x.mustStop()
					if got := x.bodies(); !cmp.Equal(got, want) {
						t.Errorf("still in the queue: %q, want %q", got, want)
					}
					if invocations != 1 {
						t.Errorf("%d invocations, want 1", invocations)
					}
					log := x.log.String()
					if warn != "" && !strings.Contains(log, warn) {
						t.Errorf("log does not contain %q:\n%s", warn, log)
					}
					if warn == "" && len(want) == 0 && strings.Contains(log, "level=WARN") {
						t.Errorf("warnings for a good result:\n%s", log)
					}
				})
			})
		}
	}
}

// A failed message returns when its visibility timeout ends, not sooner, and its receive count is one higher.
func TestFailedMessageWaitsForItsVisibility(t *testing.T) {
	onQueue(t, "jobs", func(x *fixture) {
		x.send("a", "b", "c")
		f := &function{t: t, f: func(_ context.Context, e events.SQSEvent) (any, error) {
			if len(e.Records) == 3 {
				return failing(e.Records[1]), nil
			}
			if got := e.Records[0].Attributes["ApproximateReceiveCount"]; got != "2" {
				t.Errorf("ApproximateReceiveCount is %s, want 2", got)
			}
			return failing(), nil
		}}
		x.during(2*visibility, esm.Config{ReportBatchItemFailures: true}, f.invoke)
		f.wantBatches([]string{"a", "b", "c"}, []string{"b"})
		if got := f.at[1].Sub(f.at[0]); got != visibility {
			t.Errorf("the failed message came back after %s, want %s", got, visibility)
		}
		if got := x.calls("ChangeMessageVisibilityBatch"); got != 0 {
			t.Errorf("%d visibility changes, want none: Lambda makes none", got)
		}
	})
}

// A panic or runtime.Goexit of a Go function is a function error.
func TestFunctionThatDoesNotReturn(t *testing.T) {
	const timeout = 5 * time.Second
	tests := []struct {
		name string
		f    esm.Invoker
		warn string
	}{
		{"panic", func(context.Context, []byte) ([]byte, error) { panic("oh no") }, "function panicked: oh no"},
		{"Goexit", func(context.Context, []byte) ([]byte, error) { runtime.Goexit(); return nil, nil }, "runtime.Goexit"},
		{"ignores its deadline", func(context.Context, []byte) ([]byte, error) { time.Sleep(2 * timeout); return []byte(`{}`), nil }, "Task timed out after 5.00 seconds"},
		{"returns at its deadline", func(ctx context.Context, _ []byte) ([]byte, error) { <-ctx.Done(); return []byte(`{}`), nil }, "Task timed out after 5.00 seconds"},
		{"error at its deadline", func(ctx context.Context, _ []byte) ([]byte, error) { <-ctx.Done(); return nil, esm.ErrThrottled }, "Task timed out after 5.00 seconds"},
	}
	for _, tt := range tests {
		runOnQueue(t, tt.name, "jobs", func(x *fixture) {
			x.send("a")
			var invocations atomic.Int64 // a function still runs after its timeout
			x.run(esm.Config{FunctionTimeout: timeout}, func(ctx context.Context, e []byte) ([]byte, error) {
				invocations.Add(1)
				if d, ok := ctx.Deadline(); !ok || time.Until(d) != timeout {
					x.Errorf("deadline is in %s, want %s", time.Until(d), timeout)
				}
				return tt.f(ctx, e)
			})
			time.Sleep(timeout + time.Second)
			if got := x.bodies(); len(got) != 1 {
				x.Errorf("still in the queue: %q, want the message", got)
			}
			x.mustStop()
			if got := invocations.Load(); got != 1 {
				x.Errorf("%d invocations, want 1", got)
			}
			if !strings.Contains(x.log.String(), tt.warn) {
				x.Errorf("log does not contain %q:\n%s", tt.warn, x.log.String())
			}
		})
	}
}

// With InvokerTimesOut the mapping waits for the invoker, and the context has no deadline.
func TestInvokerTimesOut(t *testing.T) {
	onQueue(t, "jobs", func(x *fixture) {
		x.send("a")
		x.run(esm.Config{FunctionTimeout: 5 * time.Second, InvokerTimesOut: true}, func(ctx context.Context, _ []byte) ([]byte, error) {
			if _, ok := ctx.Deadline(); ok {
				t.Error("the context has a deadline")
			}
			time.Sleep(7 * time.Second) // two of them to start the process
			return nil, nil
		})
		time.Sleep(10 * time.Second)
		x.mustStop()
		x.wantEmpty()
	})
}

// A function that returns exactly at its deadline has been killed by Lambda.
func TestAnswerAtTheDeadline(t *testing.T) {
	const timeout = 5 * time.Second
	onQueue(t, "jobs", func(x *fixture) {
		x.send(numbered(300)...)
		x.run(esm.Config{BatchSize: 1, FunctionTimeout: timeout}, func(context.Context, []byte) ([]byte, error) {
			time.Sleep(timeout)
			return nil, nil
		})
		time.Sleep(timeout + time.Second)
		if got := len(x.bodies()); got != 300 {
			t.Errorf("%d messages still in the queue, want all 300", got)
		}
	})
}
