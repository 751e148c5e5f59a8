package lambda

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/question"
)

// TestQuestionThatMisbehaves: however a question ends, the invocation answers in time, its messages are hidden for a minute, and the next
// invocation does not ask while the call goes on. Where it fails no further message is started, and where it passes the others run.
func TestQuestionThatMisbehaves(t *testing.T) {
	hangs := func(context.Context) error { time.Sleep(time.Hour); return nil }
	for name, tt := range map[string]struct {
		ask     func(context.Context) error
		timeout time.Duration
		down    bool // nothing more is started
		asked   int32
	}{
		"fails":                         {func(context.Context) error { return errRefused }, 30 * time.Second, true, 2},
		"hangs":                         {hangs, 30 * time.Second, true, 1},
		"hangs, to the margin":          {hangs, 5 * time.Second, true, 1},
		"waits for its context":         {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, 30 * time.Second, true, 2},
		"waits for it, to the margin":   {func(ctx context.Context) error { <-ctx.Done(); return nil }, 5 * time.Second, false, 2},
		"panics":                        {func(context.Context) error { panic("boom") }, 30 * time.Second, true, 2},
		"Goexit":                        {func(context.Context) error { runtime.Goexit(); return nil }, 30 * time.Second, true, 2},
		"passes, and the message fails": {passes, 30 * time.Second, false, 2},
	} {
		runWithQueue(t, name, false, nil, func(x *fixture) {
			var asked, ran atomic.Int32
			f := x.wrap(func(context.Context, *sqsonce.Message) error {
				ran.Add(1)
				return sqsonce.UnavailableUntil(errRefused, func(ctx context.Context) error {
					asked.Add(1)
					return tt.ask(ctx)
				})
			}, func(o *Options) { o.Concurrency = 1 })
			x.send("1", "2")
			for n := range 2 {
				ctx, cancel := context.WithTimeout(context.Background(), tt.timeout)
				_, err := f(ctx, x.receive())
				if late := ctx.Err() != nil; late || (err == nil) != (name == "passes, and the message fails") {
					x.Errorf("late %t, error %v", late, err)
				}
				cancel()
				changed, want, most := 0, 1, time.Minute<<(2*n)
				for _, in := range x.visibleIn() {
					if in <= most && in > most-15*time.Second {
						changed++
					}
				}
				if tt.timeout == 30*time.Second {
					want = 2
				}
				if changed < want {
					x.Errorf("visible in %v, want %d hidden for %s", x.visibleIn(), want, most)
				}
				time.Sleep(5 * time.Minute)
			}
			if passes := strings.HasPrefix(name, "passes"); ran.Load() > 2 != passes || ran.Load() > 4 {
				x.Errorf("%d runs", ran.Load())
			}
			if down := x.log.count("is down") > 0; asked.Load() != tt.asked || down != tt.down {
				x.Errorf("asked %d times, want %d; down %t, want %t:\n%s", asked.Load(), tt.asked, down, tt.down, &x.log)
			}
			time.Sleep(2 * time.Hour)
		})
	}
}

// TestPatientQuestion: a question has the patience of the call that failed. A store that is slow, and works, ends no invocation.
func TestPatientQuestion(t *testing.T) {
	slow := func(ctx context.Context) error { return takes(12*time.Second)(ctx, nil) }
	for patience, want := range map[time.Duration]int{0: 1, 21 * time.Second: 2} {
		synctest.Test(t, func(t *testing.T) {
			var r runs
			f := wrap(t, r.wrap(fails(question.With(sqsonce.Unavailable(errRefused), question.Question{ID: 1, Ask: slow, Patience: patience}))),
				func(o *Options) { o.Concurrency = 1 })
			_, _ = f(timeout(t, time.Minute), batch("1", "2"))
			if r.count() != want {
				t.Errorf("patience %s: %d ran, want %d", patience, r.count(), want)
			}
		})
	}
}

// TestQuestionOfManyInvocations: the invocations of a process share a question: its calls do not overlap, and there is one a second at
// most. One that ends while it asks leaves the question to the others.
func TestQuestionOfManyInvocations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t.Setenv("AWS_LAMBDA_MAX_CONCURRENCY", "50")
		var under, most, asked atomic.Int32
		ask := func(ctx context.Context) error {
			most.Store(max(most.Load(), under.Add(1)))
			defer under.Add(-1)
			asked.Add(1)
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
			}
			return errRefused
		}
		f := wrap(t, func(context.Context, *sqsonce.Message) error {
			return sqsonce.UnavailableUntil(errRefused, ask)
		})
		begun := time.Now()
		var wg sync.WaitGroup
		for i := range 200 {
			time.Sleep(50 * time.Millisecond)
			wg.Go(func() {
				length := time.Minute
				if i%2 == 0 {
					length = 560 * time.Millisecond // it ends while it asks
				}
				ctx, cancel := context.WithTimeout(context.Background(), length)
				defer cancel()
				if _, err := f(ctx, batch("a", "b", "c")); err == nil {
					t.Error("no error of an invocation in which nothing could be handled")
				}
			})
		}
		wg.Wait()
		if limit := int32(time.Since(begun)/time.Second) + 2; most.Load() != 1 || asked.Load() > limit {
			t.Errorf("asked %d times in %s, %d at once; want %d, one at once", asked.Load(), time.Since(begun), most.Load(), limit)
		}
	})
}

// TestQuestionAfterTheFailure: an answer that passed says nothing of a message that failed after its question had begun. Once an outage has
// begun no message is taken for the only one that is unavailable. Questions stay a second apart.
func TestQuestionAfterTheFailure(t *testing.T) {
	for name, long := range map[string]time.Duration{"passed before": 0, "began before": 250 * time.Millisecond} {
		runWithQueue(t, name, true, nil, func(x *fixture) {
			begun := time.Now()
			down := func() bool { return time.Since(begun) >= time.Second && time.Since(begun) < 4*time.Second }
			var asked atomic.Int32
			ask := func(context.Context) error {
				asked.Add(1)
				fails := down()
				time.Sleep(long)
				if fails {
					return errRefused
				}
				return nil
			}
			failsAt := map[string]time.Duration{"a": 900 * time.Millisecond, "b": 1100 * time.Millisecond, "c": 1200 * time.Millisecond, "d": 6 * time.Second}
			f := x.wrap(func(_ context.Context, m *sqsonce.Message) error {
				if m.Body[1] != '1' {
					return nil
				}
				time.Sleep(failsAt[m.Group] - time.Since(begun))
				return sqsonce.UnavailableUntil(errTest, ask)
			})
			x.redrive(1)
			var wg sync.WaitGroup
			for group := range failsAt {
				x.send(group+"1", group+"2")
				e := x.receive()
				wg.Go(func() {
					_, _ = f(timeout(x.T, 30*time.Second), e)
				})
			}
			wg.Wait()
			if got := x.dead(); strings.Contains(got, "b1") || strings.Contains(got, "c1") || !strings.Contains(got, "a1") || !strings.Contains(got, "d1") {
				x.Errorf("in the dead-letter queue: %q, want a1 and d1\n%s", got, &x.log)
			}
			if asked.Load() != 3 {
				x.Errorf("%d questions, want 3", asked.Load())
			}
		})
	}
}

// TestManyQuestions: messages that are unavailable by their own fault keep no slot from the others of a batch.
func TestManyQuestions(t *testing.T) {
	runWithQueue(t, "standard", false, nil, func(x *fixture) {
		var ids []string
		for i := range 10 {
			ids = append(ids, fmt.Sprint("m", i))
		}
		x.send(ids...)
		f := x.wrap(func(context.Context, *sqsonce.Message) error {
			time.Sleep(10 * time.Millisecond)
			return sqsonce.UnavailableUntil(errTest, func(context.Context) error { return nil })
		}, func(o *Options) { o.Concurrency = 1 })
		begun := time.Now()
		_, _ = f(timeout(x.T, 30*time.Second), x.receive())
		if took := time.Since(begun); took > time.Second {
			x.Errorf("the batch took %s, want its handlers' 100 ms", took)
		}
	})
}

// refusingStore refuses acquires of the first event, and questions after some.
type refusingStore struct {
	dedup.Store
	refused, passed int
}

func (s *refusingStore) Acquire(ctx context.Context, c dedup.Claim) (dedup.Grant, error) {
	left := &s.refused
	if strings.Contains(c.Key, "##ask/") {
		left = &s.passed
	}
	*left--
	if (left == &s.refused) == (*left >= 0) {
		return dedup.Grant{}, errRefused
	}
	return s.Store.Acquire(ctx, c)
}

// TestUnavailableAtLastReceive: a message that did not run at its last receive, although the question passed, runs again in the invocation
// while that has half of its time, so that the end of an outage and a partial one lose nothing. Before its last receive it is delivered
// again. A handler that ran is not called again.
func TestUnavailableAtLastReceive(t *testing.T) {
	for _, tt := range []struct {
		fifo                  bool
		timeout               time.Duration
		refused, passed, most int
		failed                int    // -1: an error
		dead, runs, takes     string // runs: of Delivery
	}{
		{true, 30, 1, 9, 1, 0, "", "[1 2 1]", "1s"},
		{false, 30, 3, 9, 1, 0, "", "[1 2 3 4]", "7s"},
		{true, 30, 3, 9, 2, 2, "", "[1]", "0s"},
		{false, 30, 9, 9, 1, 1, "", "[1 2 3 4]", "7s"},
		{false, 600, 9, 9, 1, 1, "", "[1 2 3 4 5 6]", "31s"},
		{true, 30, 4, 9, 1, 0, "a1", "[1 2 3 4 1]", "7s"},
		{true, 30, 9, 9, 1, 1, "a1", "[1 2 3 4 1 2 3]", "10s"}, // nothing waits behind a2
		{true, 30, 9, 1, 1, -1, "", "[1 2]", "1s"},
		{true, 30, 9, 0, 1, -1, "", "[1]", "0s"},
		{false, 30, 0, 9, 1, 1, "", "[1]", "0s"}, // the handler ran
		{false, 30, 3, 9, 0, 1, "", "[1]", "0s"}, // without a redrive policy no receive is the last one
	} {
		withQueue(t, tt.fifo, nil, func(x *fixture) {
			if tt.most > 0 {
				x.redrive(tt.most)
			}
			h := fails(sqsonce.UnavailableUntil(errTest, passes))
			if tt.refused > 0 {
				h = must.Get(dedup.New(&refusingStore{memstore.New(), tt.refused, tt.passed}, "test"))(t).Handler(fails(nil))
			}
			runs, settled := []int{}, 0
			f := x.wrap(func(ctx context.Context, m *sqsonce.Message) error {
				sqsonce.OnSettled(ctx, func(bool) { settled++ })
				return h(ctx, m)
			}, func(o *Options) {
				o.Concurrency = 1
				o.Hooks = []Hooks{{Hooks: sqsonce.Hooks{Start: func(ctx context.Context, d sqsonce.Delivery) context.Context {
					runs = append(runs, d.Run)
					return ctx
				}}}}
			})
			begun := time.Now()
			x.send("a1")
			if tt.fifo {
				x.send("a2")
			}
			r, err := f(timeout(x.T, tt.timeout*time.Second), x.receive())
			failed := len(r.BatchItemFailures)
			if err != nil {
				failed = -1
			}
			took, dead := time.Since(begun).Truncate(time.Second).String(), strings.Split(x.dead(), ":")[0]
			if failed != tt.failed || dead != tt.dead || took != tt.takes || fmt.Sprint(runs) != tt.runs || settled != len(runs) {
				t.Errorf("%+v: %d failed, dead-lettered %q in %s, runs %v, %d settled\n%s", tt, failed, dead, took, runs, settled, &x.log)
			}
		})
	}
}

var errRefused = errors.New("connection refused")

// TestUnavailableDelays: while something is away that every message needs, the delay grows fourfold with each receive, up to
// an hour, so that five receives last 81 min.
func TestUnavailableDelays(t *testing.T) {
	withQueue(t, false, nil, func(x *fixture) {
		f := x.wrap(func(_ context.Context, m *sqsonce.Message) error {
			if m.Body == "other" {
				return nil
			}
			return sqsonce.Unavailable(errRefused)
		})
		x.send("1")
		for i, want := range []time.Duration{time.Minute, 4 * time.Minute, 16 * time.Minute, time.Hour, time.Hour} {
			x.send("other") // or the invocation returns an error
			time.Sleep(time.Hour)
			x.failed(f, 30*time.Second, x.receive())
			if got := x.visibleIn()["1"]; got != want {
				t.Errorf("receive %d: visible in %v, want %v\n%s", i+1, got, want, &x.log)
			}
		}
	})
}

// TestNothingHandledIsAnError: an invocation in which every message met something that is away returns an error, so that the
// function's Errors metric shows it and the mapping slows down. Any other result is a response.
func TestNothingHandledIsAnError(t *testing.T) {
	unavailable, misconfigured := sqsonce.Unavailable(errRefused), error(sqsonce.ErrMisconfigured)
	for name, c := range map[string]struct {
		errs map[string]error
		want bool
	}{
		"all unavailable":          {map[string]error{"1": unavailable, "2": unavailable}, true},
		"all misconfigured":        {map[string]error{"1": misconfigured, "2": misconfigured}, true},
		"one of each":              {map[string]error{"1": unavailable, "2": misconfigured}, true},
		"one unavailable, one nil": {map[string]error{"1": unavailable, "2": nil}, false},
		"one unavailable, one bad": {map[string]error{"1": unavailable, "2": errTest}, false},
		"none":                     {map[string]error{"1": errTest, "2": errTest}, false},
	} {
		t.Run(name, func(t *testing.T) {
			withQueue(t, false, nil, func(x *fixture) {
				x.send("1", "2")
				f := x.wrap(func(_ context.Context, m *sqsonce.Message) error { return c.errs[m.Body] })
				ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
				defer cancel()
				r, err := f(ctx, x.receive())
				if (err != nil) != c.want || err != nil && !errors.Is(err, sqsonce.ErrUnavailable) {
					t.Errorf("got %v, %v, want an error: %t", r, err, c.want)
				}
			})
		})
	}
}
