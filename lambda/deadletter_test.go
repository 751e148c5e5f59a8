package lambda

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/settle"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// rejects is a handler that rejects, and records how the host settles the message.
func rejects(s *settlements) sqsonce.Handler {
	return func(ctx context.Context, _ *sqsonce.Message) error {
		sqsonce.OnSettled(ctx, s.note)
		return sqsonce.Reject(errTest)
	}
}

func TestRejectGoesToTheDeadLetterQueue(t *testing.T) {
	withQueue(t, false, nil, func(x *fixture) {
		in := &sqs.SendMessageInput{QueueUrl: &x.url, MessageBody: aws.String("2"), MessageAttributes: map[string]sqstypes.MessageAttributeValue{
			"tenant": {DataType: aws.String("String"), StringValue: aws.String("acme")},
		}}
		if _, err := x.c.SendMessage(context.Background(), in); err != nil {
			t.Fatal(err)
		}
		x.send("1")
		var settled settlements
		e := x.receive()
		if got := x.failed(x.wrap(withKey(byBody(handlers{"2": rejects(&settled)}))), 30*time.Second, e); got != "" {
			t.Errorf("failed: got %q, want none: Lambda deletes the rejected message", got)
		}
		dead := x.srv.Messages(x.dlq)
		if len(dead) != 1 || dead[0].Body != "2" {
			t.Fatalf("dead-letter queue: got %v, want the message", dead)
		}
		id := e.Records[0].MessageId
		want := map[string]string{
			"tenant": "acme", "reject-reason": "sqsonce: rejected: it failed", "event-key": "sqs-message|" + standardARN + "|" + id,
			"dead-letter-source": standardARN,
		}
		if diff := cmp.Diff(want, dead[0].Attributes); diff != "" {
			t.Errorf("attributes (-want +got):\n%s", diff)
		}
		settled.want(x, true)
		if x.log.count("attributes dropped") > 0 {
			t.Errorf("the log says that attributes were dropped:\n%s", &x.log)
		}
		if got := x.calls(opChange); got != 0 {
			t.Errorf("%d visibility changes, want none", got)
		}
	})
}

func TestErrorTextIsTheReason(t *testing.T) {
	withQueue(t, false, nil, func(x *fixture) {
		x.send("1")
		x.failed(x.wrap(fails(sqsonce.Reject(errTest)), func(o *Options) {
			o.ErrorText = func(err error) string { return fmt.Sprint("private: ", errors.Is(err, errTest)) }
		}), 30*time.Second, x.receive())
		if dead := x.srv.Messages(x.dlq); len(dead) != 1 || dead[0].Attributes[sqsonce.AttrRejectReason] != "private: true" {
			t.Errorf("dead-letter queue: %+v", dead)
		}
	})
}

func TestRejectOnFIFO(t *testing.T) {
	withQueue(t, true, nil, func(x *fixture) {
		x.send("a1", "a2", "a3")
		var r runs
		e := x.receive()
		h := byBody(handlers{"a1": fails(sqsonce.Reject(errTest)), "a3": fails(errTest)})
		// The group goes on after a message that is in the dead-letter queue.
		if got := x.failed(x.wrap(r.wrap(h)), 30*time.Second, e); got != "a3" || r.count() != 3 {
			t.Errorf("failed %q, %d ran; want a3, 3", got, r.count())
		}
		dead := x.srv.Messages(x.dlq)
		if len(dead) != 1 || dead[0].Group != "a" || dead[0].DedupID != e.Records[0].MessageId {
			t.Errorf("dead-letter queue: got %+v, want a1 with its group and its message ID as dedup ID", dead)
		}
	})
}

// broken applies a fault to every send after the two that fill the queue.
func broken(do fault.Rule) []fault.Rule {
	do.Op, do.Nth, do.Times = opSend, 3, 1000
	return []fault.Rule{do}
}

// TestRejectNeedsAConfirmation: a rejected message whose send is not confirmed is a failure as any other.
func TestRejectNeedsAConfirmation(t *testing.T) {
	for name, rule := range map[string]fault.Rule{
		"refused":    {Do: fault.Error, Code: "AccessDenied"},
		"reply lost": {Do: fault.LoseReply},
		"connection": {Do: fault.Reset},
		"hangs":      {Do: fault.Delay, Delay: time.Hour},
	} {
		for _, fifo := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				withQueue(t, fifo, broken(rule), func(x *fixture) {
					x.send("a1", "a2")
					var settled settlements
					var r runs
					want := "a1"
					if fifo {
						want = "a1 a2"
					}
					if got := x.failed(x.wrap(r.wrap(byBody(handlers{"a1": rejects(&settled)}))), 60*time.Second, x.receive()); got != want {
						t.Errorf("failed: got %q, want %q", got, want)
					}
					settled.want(x, false)
					if x.log.count("not sent to the dead-letter queue") != 1 {
						t.Errorf("not logged:\n%s", &x.log)
					}
					if got := x.visibleIn()["a1"]; got > 10*time.Second {
						t.Errorf("visible in %v, want the backoff", got)
					}
					time.Sleep(2 * time.Hour)
				})
			})
		}
	}
}

// TestRejectFitsASmallerDLQ: the attributes that the host adds never make a message too large for the dead-letter queue.
func TestRejectFitsASmallerDLQ(t *testing.T) {
	for body, want := range map[int]struct {
		failed      string
		key, reason bool
	}{
		1024:        {key: true, reason: true},
		2048 - 120:  {key: true}, // the key is about 110 bytes, the reason 40
		2048:        {},
		2048 + 1:    {failed: "yes"},
		256<<10 - 1: {failed: "yes"},
	} {
		withQueue(t, false, nil, func(x *fixture) {
			if _, err := x.c.SetQueueAttributes(context.Background(), &sqs.SetQueueAttributesInput{
				QueueUrl: &x.dlq, Attributes: map[string]string{"MaximumMessageSize": "2048"},
			}); err != nil {
				t.Fatal(err)
			}
			x.send(strings.Repeat("x", body))
			var settled settlements
			failed := x.failed(x.wrap(withKey(rejects(&settled))), 30*time.Second, x.receive())
			settled.want(x, want.failed == "")
			dead := x.srv.Messages(x.dlq)
			if want.failed != "" {
				if failed == "" || len(dead) != 0 {
					t.Errorf("%d bytes: in the dead-letter queue %d, want it delivered again", body, len(dead))
				}
				return
			}
			if failed != "" || len(dead) != 1 || len(dead[0].Body) != body {
				t.Fatalf("%d bytes: failed %.10q, %d in the dead-letter queue; want the message there", body, failed, len(dead))
			}
			_, key := dead[0].Attributes[sqsonce.AttrEventKey]
			_, reason := dead[0].Attributes[sqsonce.AttrRejectReason]
			if key != want.key || reason != want.reason {
				t.Errorf("%d bytes: key %t, reason %t; want %t, %t", body, key, reason, want.key, want.reason)
			}
			if logged := x.log.count("attributes dropped"); logged != 1 && !want.reason {
				t.Errorf("%d bytes: logged %d times", body, logged)
			}
		})
	}
}

// TestRejectIsConfirmedFirst: dedup releases the record, and Lambda deletes the message, after the dead-letter queue has it
// and not before.
func TestRejectIsConfirmedFirst(t *testing.T) {
	withQueue(t, false, []fault.Rule{{Op: opSend, Nth: 2, Do: fault.Delay, Delay: 3 * time.Second}}, func(x *fixture) {
		x.send("1")
		begun := time.Now()
		f := x.wrap(func(ctx context.Context, _ *sqsonce.Message) error {
			sqsonce.OnSettled(ctx, func(dead bool) {
				if took := time.Since(begun); !dead || took != 3*time.Second || len(x.srv.Messages(x.dlq)) != 1 {
					t.Errorf("settled with %t after %v, want true after 3s", dead, took)
				}
			})
			return sqsonce.Reject(errTest)
		})
		if got := x.failed(f, 30*time.Second, x.receive()); got != "" {
			t.Errorf("failed: got %q, want none", got)
		}
	})
}

// TestRejectAtTheDeadline: a send that is not confirmed when the results are closed is a failure, even if SQS accepted it:
// the message may be in both queues, but never in none.
func TestRejectAtTheDeadline(t *testing.T) {
	withQueue(t, false, []fault.Rule{{Op: opSend, Nth: 2, Do: fault.Delay, Delay: time.Minute}}, func(x *fixture) {
		x.send("1")
		var settled settlements
		e, begun := x.receive(), time.Now()
		if got := x.failed(x.wrap(rejects(&settled)), 6*time.Second, e); got != "1" {
			t.Errorf("failed: got %q, want 1", got)
		}
		time.Sleep(time.Hour)
		settled.want(x, false)
		if took := settled.last().Sub(begun); took != 5812500*time.Microsecond {
			t.Errorf("the send ended after %v, want 5.8125s: when the results were closed", took)
		}
	})
}

// uncancelledClient sends also after its context has ended.
type uncancelledClient struct {
	Client
	sends atomic.Int64
}

func (c *uncancelledClient) SendMessage(ctx context.Context, in *sqs.SendMessageInput, optFns ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	c.sends.Add(1)
	return c.Client.SendMessage(context.WithoutCancel(ctx), in, optFns...)
}

// TestAbandonedRejectSendsNothing: the result of an abandoned handler does not count.
func TestAbandonedRejectSendsNothing(t *testing.T) {
	withQueue(t, false, nil, func(x *fixture) {
		x.send("1")
		c := &uncancelledClient{Client: x.c}
		f := x.wrap(func(context.Context, *sqsonce.Message) error {
			time.Sleep(time.Minute)
			return sqsonce.Reject(errTest)
		}, func(o *Options) { o.Client = c })
		if got := x.failed(f, 20*time.Second, x.receive()); got != "1" {
			t.Errorf("failed: got %q, want 1", got)
		}
		time.Sleep(time.Hour)
		if n := c.sends.Load(); n > 0 {
			t.Errorf("%d sends, want none", n)
		}
	})
}

func TestRejectWithoutAUsableQueue(t *testing.T) {
	for name, set := range map[string]func(*Options, *fixture){
		"no Options.DeadLetterQueue":        func(o *Options, _ *fixture) { o.DeadLetterQueue = "" },
		"is Options.DeadLetterQueue itself": func(o *Options, x *fixture) { o.DeadLetterQueue = x.url },
	} {
		withQueue(t, false, nil, func(x *fixture) {
			x.send("1", "2")
			f := x.wrap(fails(sqsonce.Reject(errTest)), func(o *Options) { set(o, x) })
			if got := x.failed(f, 30*time.Second, x.receive()); got != "1 2" {
				t.Errorf("%s: failed: got %q, want both", name, got)
			}
			if got := x.visibleIn()["1"]; got != 10*time.Second {
				t.Errorf("%s: visible in %v, want the backoff", name, got)
			}
			if x.log.count(name) != 1 || x.calls(opSend) != 2 {
				t.Errorf("%s: %d sends, log:\n%s", name, x.calls(opSend)-2, &x.log)
			}
		})
	}
}

// TestRejectIsNotTheOutcome: after a lost lease, or when the event is in progress elsewhere, a Reject does not count.
func TestRejectIsNotTheOutcome(t *testing.T) {
	for _, err := range []error{sqsonce.Reject(sqsonce.ErrLeaseLost), sqsonce.Reject(sqsonce.ErrInProgress)} {
		withQueue(t, false, nil, func(x *fixture) {
			x.send("1")
			if got := x.failed(x.wrap(fails(err)), 30*time.Second, x.receive()); got != "1" || x.calls(opSend) != 1 {
				t.Errorf("%v: failed %q, %d sends; want 1, none", err, got, x.calls(opSend)-1)
			}
		})
	}
}

// TestCopyHasTheKeyOfMiddleware: middleware knows a key that the copy would not have by itself.
func TestCopyHasTheKeyOfMiddleware(t *testing.T) {
	withQueue(t, true, nil, func(x *fixture) {
		x.send("a1")
		h := func(ctx context.Context, _ *sqsonce.Message) error {
			settle.KeepKey(ctx, "kept")
			return sqsonce.Reject(errTest)
		}
		if got := x.failed(x.wrap(h), 30*time.Second, x.receive()); got != "" {
			t.Errorf("failed: got %q, want none", got)
		}
		if dead := x.srv.Messages(x.dlq); len(dead) != 1 || dead[0].Attributes[sqsonce.AttrEventKey] != "kept" {
			t.Errorf("dead-letter queue: got %+v, want the message with middleware's key", dead)
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
