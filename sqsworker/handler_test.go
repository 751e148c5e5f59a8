package sqsworker

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

func TestPanicError(t *testing.T) {
	t.Parallel()
	w := must.Get(New(stubClient{}, "https://sqs.us-east-1.amazonaws.com/1/q", func(context.Context, *sqsonce.Message) error { panic(errTest) }))(t)
	l := newLoop(t.Context(), w, queue{})
	d := l.addTest("a", 1)
	l.start(d)
	<-l.events
	p, is := errors.AsType[*sqsonce.PanicError](d.result.err)
	if !is || !strings.Contains(string(p.Stack), "handler_test.go") || !errors.Is(d.result.err, errTest) {
		t.Errorf("got %v, want a PanicError with the handler's stack", d.result.err)
	}
}

func TestRetryAfterAndBackoff(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want time.Duration
	}{
		"asked":     {sqsonce.RetryAfter(90*time.Second, errTest), 90 * time.Second},
		"asked 0":   {sqsonce.RetryAfter(0, errTest), time.Second},
		"rounds up": {sqsonce.RetryAfter(1500*time.Millisecond, errTest), 2 * time.Second},
		"backoff":   {errTest, 7 * time.Second},
		"capped":    {sqsonce.RetryAfter(100*time.Hour, errTest), 12 * time.Hour},
	} {
		run(t, name, setup{}, func(x *fixture) {
			x.send("a")
			again := make(chan time.Time, 2)
			j := x.start(func(_ context.Context, m *sqsonce.Message) error {
				again <- time.Now()
				if m.ReceiveCount == 1 {
					return tc.err
				}
				return nil
			}, func(o *Options) {
				o.Backoff = func(n int) time.Duration {
					if n != 1 {
						x.Errorf("Backoff of the success at receive %d", n)
					}
					return 7 * time.Second
				}
			})
			first, second := <-again, <-again
			if got := second.Sub(first); got < max(time.Second, tc.want-3*time.Second) || got > tc.want+time.Second {
				x.Errorf("came back after %s, want %s", got, tc.want)
			}
			j.stopClean()
		})
	}
}

// A Backoff that does not return has its default take its place, and its message keeps no slot.
func TestBackoffThatDoesNotReturn(t *testing.T) {
	t.Parallel()
	for name, backoff := range map[string]func(int) time.Duration{
		"panics": func(int) time.Duration { panic("broken") }, "Goexit": func(int) time.Duration { runtime.Goexit(); return 0 },
	} {
		runParallel(t, name, setup{}, func(x *fixture) {
			x.send("a", "b")
			j := x.start(func(_ context.Context, m *sqsonce.Message) error {
				if m.Body == "a" && m.ReceiveCount == 1 {
					return errTest
				}
				return nil
			}, func(o *Options) { o.Concurrency, o.Backoff = 1, backoff })
			j.stopEmptyAfter(15 * time.Second)
		})
	}
}

func TestContextValuesReachTheHandler(t *testing.T) {
	type key struct{}
	bubble(t, setup{}, func(x *fixture) {
		x.send("a")
		got := make(chan any, 1)
		j := x.newJob(x.c, func(ctx context.Context, _ *sqsonce.Message) error {
			got <- ctx.Value(key{})
			return nil
		})
		j.ctx = context.WithValue(j.ctx, key{}, "v")
		j.run()
		if v := <-got; v != "v" {
			t.Errorf("got %v, want v", v)
		}
		j.stopClean()
	})
}

func TestStartReadyRefusesAnExpiredLease(t *testing.T) {
	t.Parallel()
	l := newTestLoop(t)
	for i, left := range []time.Duration{time.Minute, 0} {
		d := l.addTest(fmt.Sprint(i), 1)
		d.lease.span = left
		l.makeReady(d)
	}
	l.startReady()
	if l.counts[running] != 1 || l.counters.leasesLost.Load() != 1 {
		t.Errorf("%d started, %d lost, want 1 and 1", l.counts[running], l.counters.leasesLost.Load())
	}
	(<-l.events).arrive(l)
}

// elsewhere returns a handler whose event is in progress in another process until a time.
func elsewhere(r *runs, until time.Time) sqsonce.Handler {
	return func(_ context.Context, m *sqsonce.Message) error {
		defer r.begin(m.Body)()
		if left := time.Until(until); left > 0 && m.Body != "g:free" {
			return sqsonce.RetryAfter(left+time.Second, fmt.Errorf("elsewhere: %w", sqsonce.ErrInProgress))
		}
		return nil
	}
}

// TestInProgressIsNoFailure: the message is held until the lease of the other delivery has ended, costs no receive, and does
// not count as failed.
func TestInProgressIsNoFailure(t *testing.T) {
	bubble(t, setup{maxReceives: 5}, func(x *fixture) {
		x.send("a")
		var r runs
		j := x.start(elsewhere(&r, time.Now().Add(100*time.Second)))
		j.stopEmptyAfter(104 * time.Second)
		if s := j.Stats(); len(r.list()) != 2 || s.Received != 1 || s.Failed != 0 || s.Done != 1 || s.Retried != 1 {
			t.Errorf("%v; %+v", r.list(), s)
		}
	})
}

// TestInProgressAfterTheLeasesEnd: a store that still refuses after the end that it named is asked again soon, and after a
// few times less often.
func TestInProgressAfterTheLeasesEnd(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		x.send("a")
		var at []time.Time
		j := x.start(func(_ context.Context, m *sqsonce.Message) error {
			if at = append(at, time.Now()); len(at) < 14 {
				return sqsonce.RetryAfter(0, sqsonce.ErrInProgress)
			}
			return nil
		})
		j.stopEmptyAfter(10 * time.Minute)
		wait := 500 * time.Millisecond
		for i := range len(at) - 1 {
			if got := at[i+1].Sub(at[i]); got < wait || got > wait+100*time.Millisecond {
				t.Errorf("delay %d: got %s, want %s", i+1, got, wait)
			}
			if i >= 4 {
				wait = min(2*wait, 30*time.Second)
			}
		}
		if s := j.Stats(); s.Received != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// TestInProgressNearTheDLQIsHeld: one more receive would move the message to the dead-letter queue without a run.
func TestInProgressNearTheDLQIsHeld(t *testing.T) {
	bothKinds(t, setup{maxReceives: 1}, func(x *fixture) {
		fifo := host.IsFIFO(x.url)
		x.send("g:a", "h:b", "g:free")
		var r runs
		// One slot: a held message must not occupy it.
		j := x.start(elsewhere(&r, time.Now().Add(10*time.Minute)), func(o *Options) { o.Concurrency = 1 })
		time.Sleep(time.Minute)
		if !fifo && r.count("g:free") != 1 {
			x.Error("a held message occupies a slot")
		}
		j.stopEmptyAfter(12 * time.Minute)
		if n := len(x.dead()); n != 0 {
			x.Errorf("%d in the dead-letter queue", n)
		}
		if s := j.Stats(); s.Done != 3 || s.Failed != 0 || s.Received != 3 {
			x.Errorf("%v; %+v", r.list(), s)
		}
	})
}

// TestInProgressTakesNoLocalRetry: a head whose event was in progress elsewhere still has all its retries in this process.
func TestInProgressTakesNoLocalRetry(t *testing.T) {
	bubble(t, setup{fifo: true}, func(x *fixture) {
		x.send("g:0")
		n, received := 0, 0
		j := x.start(func(_ context.Context, m *sqsonce.Message) error {
			received = m.ReceiveCount
			switch n++; {
			case n <= 5:
				return sqsonce.RetryAfter(time.Second, sqsonce.ErrInProgress)
			case n <= 7:
				return errTest
			}
			return nil
		})
		j.stopEmptyAfter(2 * time.Minute)
		if n != 8 || received != 1 {
			t.Errorf("%d runs, receive %d; want 8 in one receive", n, received)
		}
	})
}

// TestTwiceInOneAnswer: one run, and one entry in the batch that deletes it.
func TestTwiceInOneAnswer(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		x.send("a", "b", "c", "d", "e")
		var r runs
		j := x.startWith(receiveFunc{x.c, func(ctx context.Context, in *sqs.ReceiveMessageInput, o ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
			in.MaxNumberOfMessages = max(1, in.MaxNumberOfMessages/2)
			out, err := x.c.ReceiveMessage(ctx, in, o...)
			if err == nil {
				out.Messages = append(out.Messages, out.Messages...)
			}
			return out, err
		}}, r.take(20*time.Second))
		j.stopEmptyAfter(time.Minute)
		if s := j.Stats(); len(r.list()) != 5 || s.LeasesLost != 0 || s.Received != 10 {
			t.Errorf("%v; %+v", r.list(), s)
		}
	})
}

// TestOrphanIsWaitedFor: the lease is lost and the handler runs on. The message, received again, starts when it has
// returned.
func TestOrphanIsWaitedFor(t *testing.T) {
	for name, result := range map[string]error{"succeeds": nil, "fails": errTest} {
		run(t, name, setup{faults: []fault.Rule{{Op: opChange, Nth: 1, Do: fault.FailEntries, Code: "ReceiptHandleIsInvalid"}}}, func(x *fixture) {
			x.send("a")
			var r runs
			j := x.start(func(_ context.Context, m *sqsonce.Message) error {
				defer r.begin(m.Body)()
				if m.ReceiveCount == 1 {
					time.Sleep(2 * time.Minute) // ignores its context
					return result
				}
				return nil
			})
			j.stopEmptyAfter(3 * time.Minute)
			want := 2
			if result == nil {
				want = 1 // done: the second delivery is deleted
			}
			if len(r.list()) != want || len(r.twice) != 0 {
				x.Errorf("%d runs, at once: %v; want %d, none", len(r.list()), r.twice, want)
			}
		})
	}
}
