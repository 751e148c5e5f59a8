package esm_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/esm"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// A stop does not cancel a poll in flight: SQS may already have given it messages, which would stay hidden. The messages
// of the poll are released, not invoked.
func TestStopReleasesWhatThePollBrings(t *testing.T) {
	for _, queue := range []string{"jobs", "jobs.fifo"} {
		runOnQueue(t, queue, queue, func(x *fixture) {
			f := always(x.T, nil, nil)
			x.run(esm.Config{}, f.invoke)
			time.Sleep(3 * time.Second)
			stopped := make(chan error, 1)
			go func() { stopped <- x.stop() }()
			time.Sleep(time.Second)
			if queue == "jobs" {
				x.send("a")
			} else {
				x.sendGroup("g", "a")
			}
			must.Do(x, <-stopped)
			if len(f.got()) != 0 {
				x.Errorf("invoked with %q after the stop", f.got())
			}
			m := x.srv.Messages(x.url)[0]
			if m.InFlight || m.ReceiveCount != 1 {
				x.Errorf("in flight: %t, received %d times; want it received once and released", m.InFlight, m.ReceiveCount)
			}
			if got := x.since(); got != 4*time.Second {
				x.Errorf("stopped after %s, want the end of the poll", got)
			}
		})
	}
}

// A batch that waits in its window is released.
func TestStopReleasesBuffered(t *testing.T) {
	onQueue(t, "jobs", func(x *fixture) {
		x.send(numbered(3)...)
		f := always(t, nil, nil)
		x.during(5*time.Second, esm.Config{BatchSize: 10, BatchingWindow: 300 * time.Second, Wait: 2 * time.Second}, f.invoke)
		if len(f.got()) != 0 {
			t.Errorf("invoked with %q after the stop", f.got())
		}
		for _, m := range x.srv.Messages(x.url) {
			if m.InFlight {
				t.Errorf("%s is still in flight", m.Body)
			}
		}
		if got := x.since(); got > 7*time.Second {
			t.Errorf("stopped after %s, want at most one poll later", got)
		}
	})
}

// A message that did not fit into the last event, and waits for a slot, is released too.
func TestStopReleasesTheRest(t *testing.T) {
	onQueue(t, "jobs", func(x *fixture) {
		f := &function{t: t, f: func(context.Context, events.SQSEvent) (any, error) {
			time.Sleep(10 * time.Second)
			return nil, nil
		}}
		x.run(esm.Config{MaximumConcurrency: 2, FunctionTimeout: 20 * time.Second}, f.invoke)
		x.send("other")
		time.Sleep(time.Second)
		x.send("another") // both slots are busy
		time.Sleep(time.Second)
		x.send(large(numbered(10))...)
		time.Sleep(8500 * time.Millisecond) // the first slot is free again, and took six of ten
		x.mustStop()
		inFlight := x.inFlight()
		if got := f.got(); len(got) != 3 || inFlight != 0 {
			t.Errorf("%d invocations and %d messages in flight after the stop, want 3 and none", len(got), inFlight)
		}
	})
}

// A stop does not change a running invocation, and its messages are deleted.
func TestStopWaitsForInvocations(t *testing.T) {
	onQueue(t, "jobs", func(x *fixture) {
		x.send("a")
		f := &function{t: t, f: func(ctx context.Context, _ events.SQSEvent) (any, error) {
			time.Sleep(10 * time.Second)
			return nil, ctx.Err()
		}}
		x.during(time.Second, esm.Config{FunctionTimeout: 15 * time.Second, Wait: time.Second}, f.invoke)
		if got := x.since(); got != 10*time.Second {
			t.Errorf("stopped after %s, want when the invocation ended", got)
		}
		x.wantEmpty()
	})
}

// A function error during a stop is a function error: the message was invoked, and is not released.
func TestStopDoesNotReleaseWhatFailed(t *testing.T) {
	onQueue(t, "jobs", func(x *fixture) {
		x.send("a")
		f := &function{t: t, f: func(context.Context, events.SQSEvent) (any, error) {
			time.Sleep(2 * time.Second)
			return nil, context.Canceled
		}}
		x.during(time.Second, esm.Config{Wait: time.Second}, f.invoke)
		if m := x.srv.Messages(x.url)[0]; !m.InFlight {
			t.Error("the message was released, want it hidden until its visibility timeout ends")
		}
	})
}

func TestRunWithEndedContext(t *testing.T) {
	onQueue(t, "jobs", func(x *fixture) {
		x.send("a")
		ctx, cancel := context.WithCancel(x.Context())
		cancel()
		must.Do(t, esm.Run(ctx, x.client, esm.Config{QueueURL: x.url}, always(t, nil, nil).invoke))
		if got := x.srv.Messages(x.url)[0].ReceiveCount; got != 0 {
			t.Errorf("received %d times, want none", got)
		}
	})
}

// Errors of a receive are logged; a deleted queue ends the mapping.
func TestReceiveErrors(t *testing.T) {
	onQueue(t, "jobs", func(x *fixture) {
		x.inject(fault.Rule{Op: "ReceiveMessage", Nth: 1, Times: 3, Do: fault.Error, Code: "AccessDenied"})
		x.send("a")
		f := always(t, nil, nil)
		x.run(esm.Config{}, f.invoke)
		time.Sleep(10 * time.Second)
		f.wantBatches([]string{"a"})
		if !strings.Contains(x.log.String(), "receive failed") {
			t.Errorf("log does not say that a receive failed:\n%s", x.log.String())
		}
		must.Get(x.client.DeleteQueue(x.Context(), &sqs.DeleteQueueInput{QueueUrl: aws.String(x.url)}))(t)
		time.Sleep(30 * time.Second)
		if _, deleted := errors.AsType[*sqstypes.QueueDoesNotExist](x.stop()); !deleted {
			t.Error("Run did not return QueueDoesNotExist")
		}
	})
}

// The response of a FIFO receive is lost: the retry of the SDK gets the same messages.
func TestLostReceive(t *testing.T) {
	onQueue(t, "jobs.fifo", func(x *fixture) {
		x.inject(fault.Rule{Op: "ReceiveMessage", Nth: 1, Do: fault.LoseReply})
		x.sendGroup("g", "a", "b")
		f := always(t, nil, nil)
		x.run(esm.Config{}, f.invoke)
		time.Sleep(visibility / 2)
		f.wantBatches([]string{"a", "b"})
	})
}
