package sqsworker

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// policy is a redrive policy with the dead-letter queue of that name.
func policy(dlq string, maxReceives int) string {
	return fmt.Sprintf(`{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:%s","maxReceiveCount":%d}`, dlq, maxReceives)
}

func (x *fixture) setPolicy(text string) { x.setAttribute("RedrivePolicy", text) }

func (x *fixture) setAttribute(name, value string) {
	x.Helper()
	must.Get(x.c.SetQueueAttributes(x.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &x.url, Attributes: map[string]string{name: value}}))(x)
}

// rejects returns a handler that rejects bodies with "bad".
func rejects(_ context.Context, m *sqsonce.Message) error {
	if strings.Contains(m.Body, "bad") {
		return sqsonce.Reject(errTest)
	}
	return nil
}

// A redrive policy that changes while a worker runs is used within 5 min, without a restart.
func TestPolicyChanges(t *testing.T) {
	t.Parallel()
	second := func(o *Options) { o.Backoff = func(int) time.Duration { return time.Second } }
	for name, c := range map[string]struct {
		before int // maxReceiveCount
		after  string
		runs   int // of a FIFO message that always fails; 0: given back again and again
		dead   string
	}{
		"attached": {after: policy("jobs-dlq.fifo", 4), runs: 4, dead: "jobs-dlq.fifo"},
		"changed":  {before: 3, after: policy("jobs-dlq.fifo", 7), runs: 7, dead: "jobs-dlq.fifo"},
		"replaced": {before: 3, after: policy("other.fifo", 3), runs: 3, dead: "other.fifo"},
		"removed":  {before: 3},
	} {
		runParallel(t, name, setup{fifo: true, maxReceives: c.before}, func(x *fixture) {
			other := x.create("other.fifo", map[string]string{"FifoQueue": "true"})
			p := &poison{}
			j := x.start(p.handle, second)
			time.Sleep(time.Minute)
			x.setPolicy(c.after)
			time.Sleep(5 * time.Minute)
			x.send("g:1bad", "g:2")
			time.Sleep(time.Minute)
			j.stopClean()
			if c.runs == 0 {
				if q := x.queued(); len(q) != 2 || len(x.dead()) > 0 {
					x.Errorf("%d left in the queue, %d dead-lettered; want 2 and none", len(q), len(x.dead()))
				}
				return
			}
			dead := x.dead()
			if c.dead == "other.fifo" {
				dead = x.srv.Messages(other)
			}
			if n := p.count("g:1bad"); n != c.runs || len(dead) != 1 || !slices.Equal(p.handled(), []string{"g:2"}) {
				x.Errorf("%d runs, %d in %s, done %v; want %d, one, and the other message", n, len(dead), c.dead, p.handled(), c.runs)
			}
		})
	}
}

// A dead-letter queue that is deleted, replaced or made again is found at the first send that SQS refuses.
func TestDeadLetterQueueReplaced(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"jobs-dlq", "other"} {
		runParallel(t, name, setup{maxReceives: 5}, func(x *fixture) {
			j := x.start(rejects)
			time.Sleep(time.Minute)
			must.Get(x.c.DeleteQueue(x.Context(), &sqs.DeleteQueueInput{QueueUrl: &x.dlq}))(x)
			time.Sleep(time.Minute)
			dlq := x.create(name, nil)
			x.setPolicy(policy(name, 5))
			x.send("bad")
			time.Sleep(90 * time.Second)
			j.stopClean()
			if dead := x.srv.Messages(dlq); len(dead) != 1 || dead[0].ReceiveCount > 3 {
				x.Errorf("dead-lettered: %+v, want the message after two or three receives", dead)
			}
		})
	}
}

// While nothing contradicts what was read, the attributes are read every 5 min, and a read that fails changes nothing. A count above
// maxReceiveCount has them read at once.
func TestAttributesAreReadAgain(t *testing.T) {
	t.Parallel()
	bubble(t, setup{maxReceives: 7}, func(x *fixture) {
		j := x.start(rejects)
		time.Sleep(time.Hour + time.Minute)
		if n, d := x.calls(opAttributes), x.calls("GetQueueUrl"); n != 14 || d != 13 {
			t.Errorf("attributes read %d times (the dead-letter queue's once), its URL %d times; want 14 and 13", n, d)
		}
		if n := x.log.count("queue attributes read"); n > 0 {
			t.Errorf("%d lines say that the attributes were read, want none", n)
		}
		before := x.calls(opAttributes)
		x.srv.Set(fault.Plan{Rules: []fault.Rule{{Op: opAttributes, Prob: 1, Do: fault.Reset}, {Op: "GetQueueUrl", Prob: 1, Do: fault.Reset}}})
		time.Sleep(10 * time.Minute)
		if n := x.calls(opAttributes) - before; n < 6 || n > 11 {
			t.Errorf("%d reads that failed in 10 min, want one a minute", n)
		}
		x.send("bad")
		time.Sleep(10 * time.Second)
		if len(x.dead()) != 1 {
			t.Error("the dead-letter queue is not known any more after reads that failed")
		}
		x.srv.Set(fault.Plan{Rules: []fault.Rule{{Op: "GetQueueUrl", Prob: 1, Do: fault.Reset}}})
		time.Sleep(10 * time.Minute)
		if n := x.log.count("queue attributes read"); n > 0 {
			t.Errorf("%d lines say that the attributes were read, where the queue's URL was not answered", n)
		}
		must.Get(x.c.DeleteQueue(x.Context(), &sqs.DeleteQueueInput{QueueUrl: &x.dlq}))(t)
		j.stopClean()
	})
	bubble(t, setup{maxReceives: 1}, func(x *fixture) {
		j := x.start(func(context.Context, *sqsonce.Message) error { return sqsonce.RetryAfter(time.Second, errTest) })
		time.Sleep(time.Minute)
		must.Get(x.c.DeleteQueue(x.Context(), &sqs.DeleteQueueInput{QueueUrl: &x.dlq}))(t)
		before := x.calls(opAttributes)
		x.send("a")
		time.Sleep(10 * time.Second)
		if n := x.calls(opAttributes) - before; n == 0 || n > 4 {
			t.Errorf("read %d times after a receive that contradicts the policy", n)
		}
		time.Sleep(2 * time.Minute)
		if n := x.log.count("SQS moves the message"); n > 1 {
			t.Errorf("%d lines say that SQS moves the message, whose dead-letter queue does not exist", n)
		}
		j.stopClean()
	})
}

// withoutAttributes is a client whose answers have no attributes while empty says so.
type withoutAttributes struct {
	Client
	empty *atomic.Bool
}

func (c withoutAttributes) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, o ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	if c.empty.Load() {
		return &sqs.GetQueueAttributesOutput{}, nil
	}
	return c.Client.GetQueueAttributes(ctx, in, o...)
}

// An answer without attributes is none: a proxy's `{}` does not say that the policy was removed.
func TestAnswerWithoutAttributes(t *testing.T) {
	t.Parallel()
	bubble(t, setup{maxReceives: 7}, func(x *fixture) {
		var empty atomic.Bool
		j := x.startWith(withoutAttributes{x.c, &empty}, rejects)
		time.Sleep(time.Minute)
		empty.Store(true)
		time.Sleep(10 * time.Minute)
		x.send("bad")
		j.stopEmptyAfter(10 * time.Second)
		if len(x.dead()) != 1 || x.log.has("queue attributes read") {
			t.Errorf("%d dead-lettered, want one: the policy is still known", len(x.dead()))
		}
	})
}

// One answer that the queue does not exist ends nothing, in whichever call it comes: no lease is lost.
func TestOneAnswerThatTheQueueIsMissing(t *testing.T) {
	for op, times := range map[string]int{opReceive: 2, opDelete: 2, opChange: 2, opAttributes: 1} { // 2: within 5 s
		run(t, op, setup{maxReceives: 5}, func(x *fixture) {
			var r runs
			j := x.start(r.take(40 * time.Second))
			time.Sleep(time.Minute)
			for range 3 {
				x.srv.Set(fault.Plan{Rules: []fault.Rule{{Op: op, Nth: 1, Times: times, Do: fault.Error, Code: "QueueDoesNotExist"}}})
				x.sendMany(20)
				time.Sleep(5 * time.Minute)
			}
			if got := j.Stats(); got.LeasesLost > 0 || got.Done != 60 {
				x.Errorf("stats: %+v, want no lost lease", got)
			}
			j.stopEmptyAfter(0)
		})
	}
}

// A worker that does not receive, since it is paused or full or its store is down, learns within 5 min of a policy that has changed, and
// that its dead-letter queue or its queue is gone. One answer that the queue does not exist has it read once more.
func TestReadsWithoutReceives(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]sqsonce.Handler{
		"paused": ok,
		"full":   func(ctx context.Context, _ *sqsonce.Message) error { until(ctx, 24*time.Hour); return nil },
		"outage": func(context.Context, *sqsonce.Message) error { return sqsonce.UnavailableUntil(errRefused, refused) },
	} {
		runParallel(t, name, setup{maxReceives: 5}, func(x *fixture) {
			x.send("a")
			j := x.start(h, func(o *Options) { o.Concurrency, o.MaxInFlight = 1, 1 })
			time.Sleep(time.Minute)
			if name == "paused" {
				j.Pause()
			}
			time.Sleep(time.Minute)
			before := x.calls(opAttributes)
			x.srv.Set(fault.Plan{Rules: []fault.Rule{{Op: opAttributes, Nth: 1, Do: fault.Error, Code: "QueueDoesNotExist"}}})
			time.Sleep(10 * time.Minute)
			if n := x.calls(opAttributes) - before; n < 3 || n > 4 {
				x.Errorf("%d reads in 10 min, want one after each 5 min, and one after the answer that the queue does not exist", n)
			}
			x.setPolicy(policy("jobs-dlq", 7))
			time.Sleep(5*time.Minute + time.Second)
			if !x.log.has("max_receive_count=7") {
				x.Error("the new policy is not known after 5 min")
			}
			must.Get(x.c.DeleteQueue(x.Context(), &sqs.DeleteQueueInput{QueueUrl: &x.dlq}))(x)
			time.Sleep(5*time.Minute + time.Second)
			if !x.log.has("the dead-letter queue of the redrive policy does not exist") {
				x.Error("that the dead-letter queue is gone is not known after 5 min")
			}
			must.Get(x.c.DeleteQueue(x.Context(), &sqs.DeleteQueueInput{QueueUrl: &x.url}))(x)
			began := time.Now()
			if err := j.wait(); !isMissing(err) || time.Since(began) > 6*time.Minute {
				x.Errorf("Run: got %v after %s, want that the queue does not exist", err, time.Since(began))
			}
		})
	}
}

// The receive count of a message that SQS has moved from another queue counts the receives there: it says nothing about the last one here,
// and no group overtakes its head.
func TestRetryQueue(t *testing.T) {
	t.Parallel()
	bubble(t, setup{fifo: true, maxReceives: 4}, func(x *fixture) {
		x.send("g:1bad", "g:2")
		for range 4 {
			x.receive(time.Second)
			time.Sleep(2 * time.Second)
		}
		x.receive(time.Second)
		retry := x.dlq
		last := x.create("last.fifo", map[string]string{"FifoQueue": "true"})
		x.url = retry
		x.setPolicy(policy("last.fifo", 6))
		x.srv.Set(fault.Plan{Rules: []fault.Rule{{Op: opSend, Prob: 1, Do: fault.Error, Code: "AccessDenied"}}})
		p := &poison{}
		j := x.start(p.handle, func(o *Options) {
			o.MaxAttempts = 1
			o.Backoff = func(int) time.Duration { return time.Second }
		})
		time.Sleep(10 * time.Minute)
		if len(p.handled()) > 0 || len(x.queued()) != 2 || x.log.has("SQS moves the message") {
			t.Errorf("done %v, %d in the queue; want the group behind its head", p.handled(), len(x.queued()))
		}
		if n := x.calls(opAttributes); n > 25 {
			t.Errorf("the attributes were read %d times", n)
		}
		x.srv.Set(fault.Plan{})
		time.Sleep(10 * time.Minute)
		j.stopClean()
		if !slices.Equal(p.handled(), []string{"g:2"}) || len(x.srv.Messages(last)) != 1 {
			t.Errorf("done %v, %d dead-lettered", p.handled(), len(x.srv.Messages(last)))
		}
	})
}

// TestShortRetention: with a retention of 10 min or an hour nothing that a worker has disappears, whatever handlers return: it is in the
// dead-letter queue with the reason. Where there is none a line says so.
func TestShortRetention(t *testing.T) {
	t.Parallel()
	works := func(context.Context) error { return nil }
	down := func(context.Context) error { return errRefused }
	for name, c := range map[string]struct {
		err         error
		maxReceives int
		takes       time.Duration // so that some wait for a slot when their time is over
	}{
		"fails":        {err: errTest, maxReceives: 100},
		"retry after":  {err: sqsonce.RetryAfter(3*time.Hour, errTest), maxReceives: 100},
		"aside":        {err: sqsonce.UnavailableUntil(errRefused, works), maxReceives: 100},
		"aside slowly": {err: sqsonce.UnavailableUntil(errRefused, works), maxReceives: 100, takes: 70 * time.Second},
		"claims":       {err: sqsonce.Unavailable(errRefused), maxReceives: 2}, // with more receives left they are given back for other workers
		"an outage":    {err: sqsonce.UnavailableUntil(errRefused, down), maxReceives: 2},
		"nowhere":      {err: sqsonce.RetryAfter(3*time.Hour, errTest)},
	} {
		for _, retention := range []time.Duration{10 * time.Minute, time.Hour} {
			for _, fifo := range []bool{false, true} {
				if c.takes > 0 && (fifo || retention == time.Hour) {
					continue // a message that begins in its last minute takes longer than that
				}
				runParallel(t, fmt.Sprintf("%s/%s/fifo=%t", name, retention, fifo), setup{fifo: fifo, maxReceives: c.maxReceives}, func(x *fixture) {
					x.shortRetention(retention, func(context.Context, *sqsonce.Message) error { time.Sleep(c.takes); return c.err }, c.maxReceives == 0)
				})
			}
		}
	}
}

func (x *fixture) shortRetention(retention time.Duration, h sqsonce.Handler, nowhere bool) {
	x.setAttribute("MessageRetentionPeriod", strconv.Itoa(int(retention/time.Second)))
	const messages = 8 // fewer than fill what is held
	for n := range messages {
		x.send(fmt.Sprintf("g%d:%d", n%3, n))
	}
	j := x.start(h)
	time.Sleep(2 * retention)
	j.stopClean()
	if questionable := x.log.has("setting=queue.MessageRetentionPeriod"); questionable != (retention < time.Hour) {
		x.Errorf("a retention of %s is questionable: %t", retention, questionable)
	}
	if said := x.log.has("SQS deletes the message soon"); said != nowhere {
		x.Errorf("a line about messages that SQS deletes: %t, want %t", said, nowhere)
	}
	if nowhere {
		return
	}
	dead := x.dead()
	if len(dead) != messages || len(x.queued()) > 0 {
		x.Errorf("%d of %d in the dead-letter queue, %d left", len(dead), messages, len(x.queued()))
	}
	for _, m := range dead {
		if reason := m.Attributes[sqsonce.AttrRejectReason]; !strings.Contains(reason, "retention ends") && !strings.Contains(reason, errTest.Error()) {
			x.Errorf("%s has the reason %q", m.Body, reason)
		}
	}
}

// A copy of an event in progress elsewhere waits for it for as long as its retention allows, and is not dead-lettered after that.
func TestRetentionOfHeldCopy(t *testing.T) {
	t.Parallel()
	bubble(t, setup{maxReceives: 5}, func(x *fixture) {
		x.setAttribute("MessageRetentionPeriod", "600")
		x.send("ends", "goes on")
		begun := time.Now()
		j := x.start(func(_ context.Context, m *sqsonce.Message) error {
			if m.Body == "goes on" || time.Since(begun) < 5*time.Minute {
				return sqsonce.RetryAfter(time.Hour, sqsonce.ErrInProgress)
			}
			return nil
		})
		time.Sleep(20 * time.Minute)
		j.stopClean()
		if s := j.Stats(); s.Done != 1 || len(x.dead())+len(x.queued()) > 0 {
			t.Errorf("%d of 1 done, %d dead-lettered, %d left", s.Done, len(x.dead()), len(x.queued()))
		}
	})
}
