package lambda

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// withoutAttributes is a client whose answers have no attributes while empty says so.
type withoutAttributes struct {
	Client
	empty *bool
}

func (c withoutAttributes) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, o ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	if *c.empty {
		return &sqs.GetQueueAttributesOutput{}, nil
	}
	return c.Client.GetQueueAttributes(ctx, in, o...)
}

// An answer without attributes is none: a proxy's `{}` does not say that the policy was removed.
func TestAnswerWithoutAttributes(t *testing.T) {
	withQueue(t, true, nil, func(x *fixture) {
		x.redrive(1)
		empty := false
		f := x.wrap(fails(errTest), func(o *Options) { o.Client = withoutAttributes{o.Client, &empty} })
		x.send("a1")
		x.failed(f, 30*time.Second, x.receive())
		time.Sleep(6 * time.Minute)
		empty = true
		x.send("b1")
		if got := x.failed(f, 30*time.Second, x.receive()); got != "" || !strings.Contains(x.dead(), "b1: it failed") {
			t.Errorf("failed %q, dead-lettered %q; want the message dead-lettered by the policy that was read", got, x.dead())
		}
	})
}

// noAnswers is a client whose calls fail at once.
type noAnswers struct{ Client }

func (noAnswers) GetQueueUrl(context.Context, *sqs.GetQueueUrlInput, ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error) {
	return nil, errTest
}

// A read that another message contradicts meanwhile ends no process: those who wait for it have it, or read again.
func TestAttributesContradictedMeanwhile(t *testing.T) {
	a := must.Get(newAdapter(fails(nil), []func(*Options){func(o *Options) { o.Client = noAnswers{} }}, nil))(t)
	a.log = slog.New(slog.DiscardHandler)
	v := a.newInvocation(t.Context(), recordsOf(batch("m1").Records))
	v.start(t.Context())
	want := queueAttributes{maxReceives: 3}
	v.queues.Store(standardARN, knownQueue{queueAttributes: want, read: time.Now().Add(-time.Minute)})
	var asking sync.WaitGroup
	var asked atomic.Bool
	for range 4 {
		asking.Go(func() {
			for !asked.Load() {
				v.contradicted()
			}
		})
		asking.Go(func() {
			for range 100_000 {
				if got := v.attributes(t.Context()); got != want {
					t.Errorf("got %+v, want %+v", got, want)
				}
			}
			asked.Store(true)
		})
	}
	asking.Wait()
}

// A redrive policy that is attached while a process lives is used within 5 min.
func TestPolicyIsAttached(t *testing.T) {
	withQueue(t, true, []fault.Rule{{Op: opAttributes, Nth: 3, Do: fault.Error, Code: "QueueDoesNotExist"}}, func(x *fixture) {
		f := x.wrap(fails(errTest))
		x.send("a1")
		x.failed(f, 30*time.Second, x.receive())
		x.redrive(2)
		time.Sleep(5 * time.Minute)
		if got := x.failed(f, 30*time.Second, x.receive()); got != "" || x.dead() != "a1: it failed" {
			t.Errorf("failed %q, dead-lettered %q; want the message dead-lettered with its reason", got, x.dead())
		}
		if n := x.calls(opAttributes); n != 2 {
			t.Errorf("%d calls of GetQueueAttributes, want 2", n)
		}
		x.send("b1")
		x.failed(f, 30*time.Second, x.receive())
		time.Sleep(5 * time.Minute)
		if got := x.failed(f, 30*time.Second, x.receive()); got != "" || x.calls(opAttributes) != 3 {
			t.Errorf("failed %q after a read that failed; want the policy kept, and the message dead-lettered", got)
		}
	})
}

// TestContradictedAttributes: what was read of the queue is read again at once where SQS answers against it, but not sooner than 30 s
// after the last time.
func TestContradictedAttributes(t *testing.T) {
	for _, tt := range []struct {
		name    string
		change  func(*fixture) // of the queue, after it was read
		receive int            // of a message then
		after   time.Duration  // the read
		dead    int            // in the other dead-letter queue
		reads   int
	}{
		{"another dead-letter queue", func(x *fixture) { x.replaceDLQ(1) }, 1, time.Minute, 1, 2},
		{"another one, too soon", func(x *fixture) { x.replaceDLQ(1) }, 1, 20 * time.Second, 0, 1},
		{"received too often", func(x *fixture) { x.redrive(5) }, 2, time.Minute, 0, 2},
		{"received too often, too soon", func(x *fixture) { x.redrive(5) }, 2, 20 * time.Second, 0, 1},
		{"a count of another queue", func(*fixture) {}, 2, time.Minute, 0, 1},
		{"nothing", func(*fixture) {}, 1, 4 * time.Minute, 0, 1},
		{"a send without an answer", func(x *fixture) {
			x.srv.Set(fault.Plan{Rules: []fault.Rule{{Op: opSend, Nth: 2, Times: 9, Do: fault.Reset}}})
		}, 1, time.Minute, 0, 1},
	} {
		runWithQueue(t, tt.name, true, nil, func(x *fixture) {
			x.redrive(1)
			f := x.wrap(fails(errTest), func(o *Options) { o.DeadLetterQueue = "" })
			x.send("a1")
			x.failed(f, 30*time.Second, x.receive())
			tt.change(x)
			time.Sleep(tt.after)
			x.send("b1")
			e := x.receive()
			e.Records[0].Attributes["ApproximateReceiveCount"] = strconv.Itoa(tt.receive)
			if moved := tt.name == "a count of another queue"; moved {
				e.Records[0].Attributes["DeadLetterQueueSourceArn"] = standardARN
			}
			failed := x.failed(f, 30*time.Second, e)
			if got := len(x.srv.Messages(x.otherDLQ())); got != tt.dead || x.calls(opAttributes) != tt.reads {
				x.Errorf("%d in the other dead-letter queue, want %d; %d reads, want %d\n%s", got, tt.dead, x.calls(opAttributes), tt.reads, &x.log)
			}
			if spent := failed == ""; spent == slices.Contains([]string{"received too often", "another one, too soon", "a count of another queue", "a send without an answer"}, tt.name) {
				x.Errorf("failed %q\n%s", failed, &x.log)
			}
		})
	}
}

func (x *fixture) otherDLQ() string { return strings.Replace(x.dlq, "jobs-dlq", "jobs-other", 1) }

// replaceDLQ deletes the dead-letter queue and makes another one.
func (x *fixture) replaceDLQ(receives int) {
	x.Helper()
	testaws.Queue(x, x.c, "jobs-other.fifo", nil)
	x.redriveTo("jobs-other", receives)
	must.Get(x.c.DeleteQueue(context.Background(), &sqs.DeleteQueueInput{QueueUrl: &x.dlq}))(x)
}
