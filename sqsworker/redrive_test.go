package sqsworker

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// TestDeadLetterQueueIsMissing: SQS hands out the head of a group again and again when the dead-letter queue of the redrive policy
// does not exist, also past maxReceiveCount. The group waits in the worker, in order, and goes on within a minute after the
// queue was made. So it does where the worker is told that a queue does not exist that SQS has.
func TestDeadLetterQueueIsMissing(t *testing.T) {
	t.Parallel()
	for _, maxReceives := range []int{1, 3} {
		for _, c := range []struct {
			name         string
			deletedAfter time.Duration
			received     bool   // by another worker, once before
			denied       string // the operation that says so of a queue that exists
			rejected     bool   // by the handler
		}{
			{name: "before the start"},
			{name: "before the start, received", received: true},
			{name: "before the start, rejected", rejected: true},
			{name: "while it runs", deletedAfter: 5 * time.Second},
			{name: "not found", denied: "GetQueueUrl"},
			{name: "found, but not by sends", denied: opSend},
		} {
			runParallel(t, fmt.Sprintf("%s/%d", c.name, maxReceives), setup{fifo: true, maxReceives: maxReceives}, func(x *fixture) {
				remove := func() {
					must.Get(x.c.DeleteQueue(x.Context(), &sqs.DeleteQueueInput{QueueUrl: &x.dlq}))(x)
				}
				if c.deletedAfter == 0 && c.denied == "" {
					remove()
				}
				x.send("g:1bad", "g:2", "g:3")
				if c.denied != "" {
					x.srv.Set(fault.Plan{Rules: []fault.Rule{{Op: c.denied, Do: fault.Error, Code: "QueueDoesNotExist"}}})
				}
				if c.received {
					x.receive(time.Second)
					time.Sleep(2 * time.Second)
				}
				p := &poison{took: 6 * time.Second}
				j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
					err := p.handle(ctx, m)
					if err != nil && c.rejected {
						return sqsonce.Reject(err)
					}
					return err
				})
				if c.deletedAfter > 0 {
					time.Sleep(c.deletedAfter)
					remove()
				}
				time.Sleep(time.Hour)
				if len(p.handled()) > 0 || len(x.queued()) != 3 {
					x.Errorf("done: %v, %d in the queue; want none done and all there", p.handled(), len(x.queued()))
				}
				want := 1
				if c.received {
					want++
				}
				for _, m := range x.queued() {
					if m.ReceiveCount != want {
						x.Errorf("%s was received %d times, want %d", m.Body, m.ReceiveCount, want)
					}
				}
				if n := x.log.count("a FIFO group waits"); n != 1 || x.log.has("SQS moves the message") {
					x.Errorf("%d lines say that the group waits, want one, and none that SQS moves a message", n)
				}
				x.srv.Set(fault.Plan{})
				if c.denied == "" {
					x.create("jobs-dlq.fifo", map[string]string{"FifoQueue": "true"})
				}
				j.stopEmptyAfter(time.Minute)
				if want := []string{"g:2", "g:3"}; !slices.Equal(p.handled(), want) || len(x.dead()) != 1 || x.dead()[0].Body != "g:1bad" {
					x.Errorf("done: %v, dead-lettered: %+v; want %v, and the first one", p.handled(), x.dead(), want)
				}
			})
		}
	}
}

// TestWaitingHeadSucceeds: a head that runs again while its group waits for the dead-letter queue decides by that run, also when the
// queue is made meanwhile.
func TestWaitingHeadSucceeds(t *testing.T) {
	t.Parallel()
	bubble(t, setup{fifo: true, maxReceives: 1}, func(x *fixture) {
		must.Get(x.c.DeleteQueue(x.Context(), &sqs.DeleteQueueInput{QueueUrl: &x.dlq}))(t)
		x.send("g:1", "g:2")
		var r runs
		j := x.start(func(_ context.Context, m *sqsonce.Message) error {
			defer r.begin(m.Body)()
			if r.count("g:1") == 1 {
				return errTest
			}
			time.Sleep(2 * time.Minute)
			return nil
		}, func(o *Options) { o.Backoff = func(int) time.Duration { return 2 * time.Minute } })
		time.Sleep(3 * time.Minute)
		x.create("jobs-dlq.fifo", map[string]string{"FifoQueue": "true"})
		j.stopEmptyAfter(5 * time.Minute)
		if want := []string{"g:1", "g:1", "g:2"}; !slices.Equal(r.list(), want) || len(x.dead()) > 0 {
			t.Errorf("runs: %v, want %v; %d dead-lettered, want none", r.list(), want, len(x.dead()))
		}
	})
}

// TestLeftToSQSFromAHold: the followers of a head that was held have their place in MaxInFlight again.
func TestLeftToSQSFromAHold(t *testing.T) {
	t.Parallel()
	l := newTestLoop(t)
	q := queue{maxReceives: 1, deadLetter: goodURL + "-dlq", confirmed: l.now()}
	head, next := l.addTest("head", 1), l.addTest("next", 1)
	for _, d := range []*delivery{head, next} {
		d.m.Group = "g"
		l.advance(l.joinGroup(d))
	}
	l.deadLetters = deadLetters{refuses: true, askAgain: l.now().Add(time.Minute)}
	head.attempts = 1
	l.reads.underWay, l.queue.deadLetter = true, q.deadLetter
	l.awaitDLQ(head, time.Minute)
	l.queueRead(queueRead{queue: q})
	if head.state != releasing || next.state != ready || next.parked {
		t.Errorf("head: state %d, next one: state %d, parked %t", head.state, next.state, next.parked)
	}
}

// TestNotMovedFromAStandardQueue: without its dead-letter queue SQS delivers a message again, and the log does not say otherwise.
func TestNotMovedFromAStandardQueue(t *testing.T) {
	t.Parallel()
	bubble(t, setup{maxReceives: 1}, func(x *fixture) {
		must.Get(x.c.DeleteQueue(x.Context(), &sqs.DeleteQueueInput{QueueUrl: &x.dlq}))(t)
		x.send("bad")
		j := x.start((&poison{}).handle)
		time.Sleep(20 * time.Minute)
		j.stopClean()
		if q := x.queued(); len(q) != 1 || q[0].ReceiveCount < 3 || x.log.has("SQS moves the message") {
			t.Errorf("queue: %+v, want the message, received again and again, and no line that it was moved", q)
		}
	})
}

// TestSendConfirmsTheDeadLetterQueue: a send that succeeds refutes an earlier answer that the queue does not exist, and so does the answer
// that a message is too large for it.
func TestSendConfirmsTheDeadLetterQueue(t *testing.T) {
	t.Parallel()
	for _, err := range []error{nil, &smithy.GenericAPIError{Code: "InvalidParameterValue", Message: "Reason: Message must be shorter than 1024 bytes."}} {
		l := newTestLoop(t)
		l.queue.confirmed = l.now()
		d := l.addTest("a", 1)
		l.setState(d, rejecting)
		l.deadLetters = deadLetters{missing: true}
		l.reads.waitLogged = true
		l.deadLettered(deadLettered{d: d, err: err})
		if !l.dlqConfirmed() || l.reads.waitLogged {
			t.Errorf("%v: confirmed %t, and the next group that waits is not logged: %t", err, l.dlqConfirmed(), l.reads.waitLogged)
		}
	}
}

// TestMovedNext: a head is left to SQS only at exactly its last receive, and where SQS has just shown the dead-letter queue.
func TestMovedNext(t *testing.T) {
	t.Parallel()
	l := newTestLoop(t)
	for name, c := range map[string]struct {
		count    int
		since    time.Duration
		guessed  bool
		missing  bool
		notFound bool
		want     bool
	}{
		"last receive":      {count: 3, want: true},
		"one left":          {count: 2},
		"not moved":         {count: 4},
		"seen a while ago":  {count: 3, since: askAgainAfter},
		"guessed":           {count: 3, guessed: true},
		"missing by a send": {count: 3, missing: true},
		"not found":         {count: 3, notFound: true},
	} {
		l.queue = queue{maxReceives: 3, guessed: c.guessed, confirmed: l.now().Add(-c.since)}
		if c.notFound {
			l.queue.confirmed = time.Time{}
		}
		l.deadLetters.missing = c.missing
		if got := l.movedNext(l.addTest(name, c.count)); got != c.want {
			t.Errorf("%s: got %t, want %t", name, got, c.want)
		}
	}
	l.queue, l.deadLetters = queue{maxReceives: 3, confirmed: l.now().Add(-7 * time.Minute)}, deadLetters{refuses: true}
	if l.dlqConfirmed() {
		t.Error("a dead-letter queue that was seen 7 min ago is confirmed")
	}
	if l.adopt(queue{arn: "arn", deadLetter: "another"}); l.deadLetters.refuses {
		t.Error("another dead-letter queue refuses what the one before has refused")
	}
}
