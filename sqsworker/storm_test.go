package sqsworker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// meter counts calls and their entries. It fails the entries of messages that are poisoned.
type meter struct {
	Client
	mu     sync.Mutex
	counts map[string]metered
	poison map[string]bool // receipt handles
}

type metered struct{ calls, entries int }

func (m *meter) count(op string, entries int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counts == nil {
		m.counts = map[string]metered{}
	}
	c := m.counts[op]
	m.counts[op] = metered{c.calls + 1, c.entries + entries}
}

// take returns what was counted since the last call of it, of deletes and visibility changes together.
func (m *meter) take() metered {
	m.mu.Lock()
	defer m.mu.Unlock()
	var sum metered
	for _, c := range m.counts {
		sum.calls += c.calls
		sum.entries += c.entries
	}
	m.counts = nil
	return sum
}

func (m *meter) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, o ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	m.count(opDelete, len(in.Entries))
	var failed []sqstypes.BatchResultErrorEntry
	rest := *in
	rest.Entries = nil
	for _, e := range in.Entries {
		if m.poison[*e.ReceiptHandle] {
			failed = append(failed, sqstypes.BatchResultErrorEntry{Id: e.Id, Code: aws.String("InternalError")})
		} else {
			rest.Entries = append(rest.Entries, e)
		}
	}
	out := &sqs.DeleteMessageBatchOutput{}
	var err error
	if len(rest.Entries) > 0 {
		out, err = m.Client.DeleteMessageBatch(ctx, &rest, o...)
	}
	if err == nil {
		out.Failed = append(out.Failed, failed...)
	}
	return out, err
}

func (m *meter) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, o ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	m.count(opChange, len(in.Entries))
	return m.Client.ChangeMessageVisibilityBatch(ctx, in, o...)
}

// everything is a fault of all calls of a busy worker.
func everything(rule fault.Rule) fault.Plan {
	var p fault.Plan
	for _, op := range []string{opReceive, opDelete, opChange} {
		rule.Op = op
		p.Rules = append(p.Rules, rule)
	}
	return p
}

// TestOutageIsNoStorm: in an outage of SQS the worker makes at most twice as many calls in a second as before, and the first
// minute after it, with full batches.
func TestOutageIsNoStorm(t *testing.T) {
	t.Parallel()
	handlers := map[string]func() error{
		"done":   func() error { return nil },
		"failed": func() error { return sqsonce.RetryAfter(5*time.Second, errTest) },
	}
	faults := map[string]fault.Rule{
		"fails":     {Prob: 1, Do: fault.Error},
		"throttled": {Prob: 1, Do: fault.Error, Code: "RequestThrottled"},
		"breaks":    {Prob: 1, Do: fault.Reset},
		"no answer": {Prob: 1, Do: fault.LoseReply},
		"hangs":     {Prob: 1, Do: fault.Delay, Delay: time.Hour},
		"90 % fail": {Prob: 0.9, Do: fault.Error},
	}
	for name, rule := range faults {
		for end, result := range handlers {
			for _, s := range []setup{{}, {fifo: true}, {strict: true}, {fifo: true, strict: true}} {
				switch whole := rule.Do == fault.LoseReply || rule.Do == fault.Delay; {
				case s.strict && !whole: // no change arrives whose handle is old by then
					continue
				case end == "failed" && (name != "fails" && name != "hangs" || s.fifo == s.strict): // its changes are like deletes
					continue
				}
				runParallel(t, fmt.Sprintf("%s, %s fifo=%t strict=%t", name, end, s.fifo, s.strict), s, func(x *fixture) {
					healthy, outage, after := x.storm(rule, result)
					if outage.perSecond > 2*healthy.perSecond {
						x.Errorf("%.1f calls a second in the outage, %.1f before", outage.perSecond, healthy.perSecond)
					}
					if after.perSecond > 2*healthy.perSecond {
						x.Errorf("%.1f calls a second after the outage, %.1f before", after.perSecond, healthy.perSecond)
					}
					if outage.perCall < min(5, healthy.perCall) && outage.perSecond > 1 {
						x.Errorf("%.1f entries a call in the outage, %.1f before", outage.perCall, healthy.perCall)
					}
					x.Logf("healthy %+v, outage %+v, after %+v", healthy, outage, after)
				})
			}
		}
	}
}

type rate struct{ perSecond, perCall float64 }

func (m *meter) rate(d time.Duration) rate {
	c := m.take()
	return rate{float64(c.calls) / d.Seconds(), float64(c.entries) / max(1, float64(c.calls))}
}

// storm measures the calls of a worker with 300 handlers of 10 s before, in and after an outage of 10 s.
func (x *fixture) storm(rule fault.Rule, result func() error) (healthy, outage, after rate) {
	x.Helper()
	const handlers = 300
	for i := range 5 * handlers {
		x.send(fmt.Sprintf("g%d:%d", i, i))
	}
	m := &meter{Client: x.c}
	x.srv.Set(fault.Plan{Rules: []fault.Rule{{Prob: 1, Do: fault.Delay, Delay: 15 * time.Millisecond}}})
	j := x.startWith(m, func(context.Context, *sqsonce.Message) error {
		time.Sleep(5*time.Second + rand.N(10*time.Second))
		return result()
	}, func(o *Options) { o.Concurrency, o.MaxInFlight, o.MaxAttempts = handlers, handlers+100, 1 })
	time.Sleep(20 * time.Second)
	m.take()
	time.Sleep(10 * time.Second)
	healthy = m.rate(10 * time.Second)
	x.srv.Set(everything(rule))
	time.Sleep(10 * time.Second)
	outage = m.rate(10 * time.Second)
	x.srv.Set(fault.Plan{})
	time.Sleep(20 * time.Second)
	after = m.rate(20 * time.Second)
	j.cancel()
	if err := j.wait(); err != nil {
		if _, is := errors.AsType[*StopError](err); !is {
			x.Errorf("Run: %v", err)
		}
	}
	return healthy, outage, after
}

// TestSlowdown: one call at a time after a failure, then twice as many with each success. Calls that were under way together
// count as one failure.
func TestSlowdown(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var p slowdown
	want := func(when time.Time, calls, room int) {
		t.Helper()
		if got := p.room(when, calls); got != room {
			t.Errorf("room beside %d calls: got %d, want %d; %+v", calls, got, room, p)
		}
	}
	want(now, 100, math.MaxInt)
	for range 16 {
		p.fail(now.Add(-time.Second), now, 100*time.Millisecond, 5*time.Second)
	}
	if wait := p.until.Sub(now); p.failures != 1 || wait <= 0 || wait > 100*time.Millisecond {
		t.Errorf("one outage counts %d times, wait %s", p.failures, wait)
	}
	want(now, 0, 0)
	want(p.until, 0, 1)
	want(p.until, 1, 0)
	p.fail(p.until, p.until.Add(time.Second), 100*time.Millisecond, 5*time.Second)
	if p.failures != 2 {
		t.Errorf("%d failures, want 2", p.failures)
	}
	for room := 2; room <= maxWindow; room *= 2 {
		p.succeed()
		want(now, 0, room)
	}
	p.succeed()
	want(now, 100, math.MaxInt)
	if p.fail(now.Add(-time.Second), now, time.Second, time.Minute); p.failures != 1 {
		t.Error("a call that began before the last failure, and fails after a success, does not count")
	}
}

// TestFailedEntriesGoTogether: one entry in each of ten calls fails. They are sent again in one call, or in a few.
func TestFailedEntriesGoTogether(t *testing.T) {
	t.Parallel()
	for op, take := range map[string]time.Duration{opDelete: time.Second, opChange: 25 * time.Second} {
		bubble(t, setup{faults: []fault.Rule{{Op: op, Nth: 1, Times: 10, Do: fault.FailEntries, Entries: []int{0}}}}, func(x *fixture) {
			x.sendMany(100)
			var r runs
			j := x.start(r.take(take), func(o *Options) { o.Concurrency, o.MaxInFlight, o.DeleteLinger = 100, 100, time.Second })
			time.Sleep(20 * time.Second)
			if n := x.calls(op); n > 18 {
				t.Errorf("%s: %d calls for 100 messages and 10 entries that failed once", op, n)
			}
			j.stopEmptyAfter(time.Minute)
		})
	}
}

// TestPoisonedDeletesSlowNothing: deletes of a few messages always fail. The others are deleted as fast as without them, and
// the failing ones are tried again every few seconds, together.
func TestPoisonedDeletesSlowNothing(t *testing.T) {
	t.Parallel()
	took := map[bool]time.Duration{}
	for _, poisoned := range []bool{false, true} {
		bubble(t, setup{}, func(x *fixture) {
			const messages, most = 3000, 2
			x.sendMany(messages)
			x.srv.Set(fault.Plan{Rules: []fault.Rule{{Prob: 1, Do: fault.Delay, Delay: 15 * time.Millisecond}}})
			m := &meter{Client: x.c, poison: map[string]bool{}}
			var mu sync.Mutex
			j := x.startWith(m, func(_ context.Context, msg *sqsonce.Message) error {
				mu.Lock()
				defer mu.Unlock()
				if poisoned && len(m.poison) < most {
					m.poison[msg.ReceiptHandle] = true
				}
				return nil
			}, func(o *Options) { o.MaxInFlight, o.MaxReceivers = 100, 3 })
			began := time.Now()
			for left := messages; left > most; left = len(x.queued()) {
				time.Sleep(10 * time.Millisecond)
			}
			took[poisoned] = time.Since(began)
			time.Sleep(10 * time.Second)
			m.take()
			time.Sleep(time.Minute)
			if c := m.take(); poisoned && (c.calls > 60 || c.entries < 20) {
				t.Errorf("%+v in a minute for %d messages whose deletes fail", c, most)
			}
			if s := j.Stats(); s.LeasesLost > 0 {
				t.Errorf("%+v", s)
			}
			j.cancel()
			_ = j.wait() // undeleted
		})
	}
	if took[true] > took[false]*12/10 {
		t.Errorf("took %s, %s without messages whose deletes fail", took[true], took[false])
	}
}

// TestSlowDeletesDoNotBoundThroughput: also not where each takes longer than an answer is waited for at first. It is then
// waited for longer, so that few messages are deleted twice.
func TestSlowDeletesDoNotBoundThroughput(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		fifo       bool
		take, most time.Duration
	}{{false, 3 * time.Second, 15 * time.Second}, {true, 3 * time.Second, 15 * time.Second}, {false, 8 * time.Second, 40 * time.Second}} {
		runParallel(t, fmt.Sprintf("fifo=%t %s", tc.fifo, tc.take), setup{fifo: tc.fifo}, func(x *fixture) {
			const messages = 6000
			for i := range messages {
				x.send(fmt.Sprintf("g%d:%d", i%2000, i)) // groups of three, one after the other
			}
			x.srv.Set(fault.Plan{Rules: []fault.Rule{{Op: opDelete, Prob: 1, Do: fault.Delay, Delay: tc.take}}})
			j := x.start(ok, func(o *Options) { o.Concurrency, o.MaxInFlight, o.MaxReceivers = 100, messages, 64 })
			began := time.Now()
			for len(x.queued()) > 0 {
				time.Sleep(100 * time.Millisecond)
			}
			// 64 deletes at once would take 28 s, and 75 s.
			if took := time.Since(began); took > tc.most {
				x.Errorf("%d messages took %s", messages, took)
			}
			if n := j.Stats().Deletes; !tc.fifo && n > messages/10*5/4 {
				x.Errorf("%d deletes of %d messages", n, messages)
			}
			j.stopClean()
		})
	}
}
