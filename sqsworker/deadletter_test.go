package sqsworker

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/settle"
)

func rejectBad(_ context.Context, m *sqsonce.Message) error {
	if strings.Contains(m.Body, "bad") {
		return sqsonce.Reject(errTest)
	}
	return nil
}

func TestRejectGoesToTheDLQ(t *testing.T) {
	bothKinds(t, setup{maxReceives: 5}, func(x *fixture) {
		fifo := host.IsFIFO(x.url)
		x.send("g:bad", "g:good")
		id := x.queued()[0].ID
		j := x.start(withKey(rejectBad), func(o *Options) {
			o.ErrorText = func(err error) string { return fmt.Sprint("private: ", errors.Is(err, errTest)) }
		})
		j.stopEmptyAfter(5 * time.Second)
		dead := x.dead()
		if len(dead) != 1 || dead[0].Body != "g:bad" {
			x.Fatalf("dead-letter queue: %+v, want the bad one", dead)
		}
		m := dead[0]
		if got := m.Attributes[sqsonce.AttrRejectReason]; got != "private: true" {
			x.Errorf("reason: %q, want what ErrorText makes of it", got)
		}
		arn := "arn:aws:sqs:us-east-1:000000000000:jobs"
		if fifo {
			arn += ".fifo"
			if m.Group != "g" || m.DedupID != id {
				x.Errorf("group %q, dedup ID %q; want g and the message ID", m.Group, m.DedupID)
			}
		}
		if got, want := m.Attributes[sqsonce.AttrEventKey], "sqs-message|"+arn+"|"+id; got != want {
			x.Errorf("event key: got %q, want %q", got, want)
		}
		if got := m.Attributes[sqsonce.AttrDeadLetterSource]; got != arn {
			x.Errorf("dead-letter-source: got %q, want the queue's ARN", got)
		}
		if s := j.Stats(); s.Rejected != 1 || s.Done != 1 || s.Failed != 1 {
			x.Errorf("stats: %+v", s)
		}
	})
}

func TestRejectWithoutDLQIsAnyOtherError(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		x.send("bad")
		j := x.start(rejectBad)
		time.Sleep(10 * time.Minute)
		j.stopClean()
		if q := x.queued(); len(q) != 1 || q[0].ReceiveCount < 3 {
			t.Errorf("queue: %+v, want the message, delivered again and again", q)
		}
		if !x.log.has("its dead-letter queue is unknown") {
			t.Error("nothing logged")
		}
	})
}

func TestRejectToTheQueueGiven(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		other := x.create("elsewhere", nil)
		x.send("bad")
		j := x.start(rejectBad, func(o *Options) { o.DeadLetterQueue = other })
		j.stopEmptyAfter(5 * time.Second)
		if n := len(x.srv.Messages("elsewhere")); n != 1 {
			t.Errorf("%d messages in the queue given, want 1", n)
		}
	})
}

// TestLeftOutIsLogged: an attribute that the copy has no place for is a line; internal/deadletter decides which.
func TestLeftOutIsLogged(t *testing.T) {
	bubble(t, setup{maxReceives: 5}, func(x *fixture) {
		in := &sqs.SendMessageInput{QueueUrl: &x.url, MessageBody: aws.String("bad"), MessageAttributes: map[string]sqstypes.MessageAttributeValue{}}
		for i := range 10 {
			in.MessageAttributes[fmt.Sprint("a", i)] = sqstypes.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String("v")}
		}
		must.Get(x.c.SendMessage(x.Context(), in))(t)
		j := x.start(rejectBad)
		time.Sleep(5 * time.Second)
		j.stopClean()
		if x.wantEmpty(); len(x.dead()) != 1 || !x.log.has("attribute not added") {
			t.Errorf("%d dead-lettered, and no line", len(x.dead()))
		}
	})
}

// A message that is too large for the dead-letter queue is refused alone: the other rejected messages leave at their first receive.
func TestTooLargeForTheDLQ(t *testing.T) {
	t.Parallel()
	bothKinds(t, setup{maxReceives: 5}, func(x *fixture) {
		must.Get(x.c.SetQueueAttributes(x.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &x.dlq, Attributes: map[string]string{"MaximumMessageSize": "1024"}}))(x)
		large := &sqs.SendMessageInput{QueueUrl: &x.url, MessageBody: aws.String("bad" + strings.Repeat("x", 2000))}
		if host.IsFIFO(x.url) {
			large.MessageGroupId, large.MessageDeduplicationId = aws.String("g"), aws.String("large")
		}
		must.Get(x.c.SendMessage(x.Context(), large))(x)
		j := x.start(rejectBad)
		time.Sleep(time.Second)
		reads := x.calls(opAttributes)
		for n := range 5 {
			x.send(fmt.Sprintf("g%d:bad", n))
		}
		time.Sleep(5 * time.Second)
		if len(x.dead()) != 5 {
			x.Errorf("%d dead-lettered after one that was too large, want 5", len(x.dead()))
		}
		time.Sleep(time.Minute)
		if q := x.queued(); len(q) != 1 || q[0].Body != *large.MessageBody || x.calls(opAttributes) != reads {
			x.Errorf("%d in the queue, want the large one; attributes read %d times more, want none", len(q), x.calls(opAttributes)-reads)
		}
		j.stopClean()
	})
}

// Behind a running handler of its group it is sent once when its retention ends, and those behind it too.
func TestTooLargeBehindARunningHead(t *testing.T) {
	t.Parallel()
	bubble(t, setup{fifo: true, maxReceives: 5}, func(x *fixture) {
		x.setAttribute("MessageRetentionPeriod", "600")
		must.Get(x.c.SetQueueAttributes(x.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &x.dlq, Attributes: map[string]string{"MaximumMessageSize": "1024"}}))(x)
		for i, body := range []string{"a", strings.Repeat("x", 2000), strings.Repeat("y", 2000), "3", strings.Repeat("z", 2000), "5"} {
			must.Get(x.c.SendMessage(x.Context(), &sqs.SendMessageInput{
				QueueUrl: &x.url, MessageBody: &body, MessageGroupId: aws.String("g"), MessageDeduplicationId: aws.String(fmt.Sprint(i)),
			}))(x)
		}
		j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
			until(ctx, 12*time.Minute)
			return context.Cause(ctx)
		})
		time.Sleep(13 * time.Minute)
		j.stopClean()
		var dead []string
		for _, m := range x.dead() {
			dead = append(dead, m.Body)
		}
		if refused := x.log.count("message not sent to the dead-letter queue"); !slices.Equal(dead, []string{"3", "5"}) || refused != 3 {
			x.Errorf("dead-lettered %v, %d refused; want the small ones, and each of the others once", dead, refused)
		}
	})
}

// slowSends is a client whose first send to a dead-letter queue takes a while.
type slowSends struct {
	Client
	slow *atomic.Bool
	took time.Duration
}

func (c slowSends) SendMessage(ctx context.Context, in *sqs.SendMessageInput, o ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	if c.slow.CompareAndSwap(true, false) {
		until(ctx, c.took)
	}
	return c.Client.SendMessage(ctx, in, o...)
}

// An answer of the dead-letter queue that the policy named before says nothing about the one that it names now.
func TestAnswerOfTheDLQBefore(t *testing.T) {
	t.Parallel()
	bubble(t, setup{maxReceives: 5}, func(x *fixture) {
		var slow atomic.Bool
		slow.Store(true)
		j := x.startWith(slowSends{x.c, &slow, 9 * time.Second}, rejectBad)
		time.Sleep(host.Believed - 5*time.Second)
		x.send("bad1")
		time.Sleep(time.Second)
		must.Get(x.c.DeleteQueue(x.Context(), &sqs.DeleteQueueInput{QueueUrl: &x.dlq}))(x)
		other := x.create("other", nil)
		x.setPolicy(policy("other", 5))
		time.Sleep(10 * time.Second) // the policy is read, and then the answer comes
		if slow.Load() || !x.log.has("not sent to the dead-letter queue") {
			x.Error("no answer of the queue before")
		}
		x.send("bad2")
		time.Sleep(time.Second)
		if dead := x.srv.Messages(other); len(dead) != 1 || dead[0].ReceiveCount != 0 {
			x.Errorf("dead-lettered at once: %+v, want the second message", dead)
		}
		j.stopClean()
	})
}

// What a handler left to OnSettled keeps no slot, and no message from its end, also where it ends its goroutine.
func TestSettlingThatEndsItsGoroutine(t *testing.T) {
	t.Parallel()
	bothKinds(t, setup{maxReceives: 5}, func(x *fixture) {
		x.send("g:bad", "g:good", "g:last")
		j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
			sqsonce.OnSettled(ctx, func(bool) { runtime.Goexit() })
			return rejectBad(ctx, m)
		}, func(o *Options) { o.Concurrency = 1 })
		j.stopEmptyAfter(5 * time.Second)
		if len(x.dead()) != 1 {
			x.Errorf("%d dead-lettered, want 1", len(x.dead()))
		}
	})
}

// withKey tells the host the message's key, as dedup does.
func withKey(h sqsonce.Handler) sqsonce.Handler {
	return func(ctx context.Context, m *sqsonce.Message) error {
		key, _, err := m.Key()
		if err != nil {
			return err
		}
		settle.KeepKey(ctx, key)
		return h(ctx, m)
	}
}
