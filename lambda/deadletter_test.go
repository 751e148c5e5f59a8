package lambda

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// rejects is a handler that rejects, and records how the host settles the message.
func rejects(s *settlements) sqsonce.Handler {
	return func(ctx context.Context, _ *sqsonce.Message) error {
		sqsonce.OnSettled(ctx, s.note)
		return sqsonce.Reject(errTest)
	}
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

// broken applies a fault to every send after the two that fill the queue.
func broken(do fault.Rule) []fault.Rule {
	do.Op, do.Nth, do.Times = opSend, 3, 1000
	return []fault.Rule{do}
}

// TestDroppedAttributesAreLogged: a copy that the dead-letter queue has no room for goes there without the host's attributes.
func TestDroppedAttributesAreLogged(t *testing.T) {
	withQueue(t, false, nil, func(x *fixture) {
		x.set(x.dlq, "MaximumMessageSize", "2048")
		x.send(strings.Repeat("x", 2048))
		if got := x.failed(x.wrap(fails(sqsonce.Reject(errTest))), 30*time.Second, x.receive()); got != "" || len(x.srv.Messages(x.dlq)) != 1 {
			t.Errorf("failed %.10q, want none, and the message in the dead-letter queue", got)
		}
		if x.log.count("attributes dropped") != 1 {
			t.Errorf("not logged:\n%s", &x.log)
		}
	})
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

// With Options.DeadLetterQueue a rejected message is sent at once: the queue's attributes are not read for it.
func TestRejectedIsSentAtOnce(t *testing.T) {
	t.Parallel()
	withQueue(t, true, nil, func(x *fixture) {
		x.send("a1", "a2")
		f := x.wrap(byBody(handlers{"a1": fails(sqsonce.Reject(errTest)), "a2": fails(nil)}))
		if got := x.failed(f, 30*time.Second, x.receive()); got != "" || x.calls(opURL)+x.calls(opAttributes) != 0 {
			t.Errorf("failed %q, %d reads; want none", got, x.calls(opURL)+x.calls(opAttributes))
		}
	})
}

func TestRejectWithoutAUsableQueue(t *testing.T) {
	for name, set := range map[string]func(*Options, *fixture){
		"set Options.DeadLetterQueue":       func(o *Options, _ *fixture) { o.DeadLetterQueue = "" },
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
