package sqsworker

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
)

func TestFailuresComeBack(t *testing.T) {
	for name, fail := range map[string]sqsonce.Handler{
		"error":       func(context.Context, *sqsonce.Message) error { return errTest },
		"panic":       func(context.Context, *sqsonce.Message) error { panic("boom") },
		"panic nil":   func(context.Context, *sqsonce.Message) error { panic(nil) },
		"panic error": func(context.Context, *sqsonce.Message) error { panic(errTest) },
		"goexit":      func(context.Context, *sqsonce.Message) error { runtime.Goexit(); return nil },
		"timeout": func(ctx context.Context, _ *sqsonce.Message) error {
			<-ctx.Done()
			return ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, setup{}, func(x *fixture) {
				x.send("bad", "good")
				var r runs
				j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
					defer r.begin(m.Body)()
					if m.Body == "bad" && m.ReceiveCount < 3 {
						return fail(ctx, m)
					}
					return nil
				}, func(o *Options) { o.HandlerTimeout = time.Second })
				time.Sleep(time.Minute)
				j.stopClean()
				x.wantEmpty()
				if s := j.Stats(); r.count("bad") != 3 || r.count("good") != 1 || s.Failed != 2 || s.Retried != 2 || s.Done != 2 {
					t.Errorf("%v; %+v", r.list(), s)
				}
			})
		})
	}
}

func TestPanicError(t *testing.T) {
	t.Parallel()
	w, err := New(stubClient{}, "https://sqs.us-east-1.amazonaws.com/1/q", func(context.Context, *sqsonce.Message) error { panic(errTest) })
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan result, 1)
	w.invoke(t.Context(), &delivery{m: &sqsonce.Message{}}, 1, func(v result) { got <- v })
	v := <-got
	p, is := errors.AsType[*sqsonce.PanicError](v.err)
	if !is || !strings.Contains(string(p.Stack), "handle_test.go") || !errors.Is(v.err, errTest) {
		t.Errorf("got %v, want a PanicError with the handler's stack", v.err)
	}
}

func TestRetryAfterAndBackoff(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want time.Duration
	}{
		"asked":     {sqsonce.RetryAfter(90*time.Second, errTest), 90 * time.Second},
		"asked 0":   {sqsonce.RetryAfter(0, errTest), 0},
		"rounds up": {sqsonce.RetryAfter(1500*time.Millisecond, errTest), 2 * time.Second},
		"backoff":   {errTest, 7 * time.Second},
		"capped":    {sqsonce.RetryAfter(100*time.Hour, errTest), 12 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, setup{}, func(x *fixture) {
				x.send("a")
				again := make(chan time.Time, 2)
				j := x.start(func(_ context.Context, m *sqsonce.Message) error {
					again <- time.Now()
					if m.ReceiveCount == 1 {
						return tc.err
					}
					return nil
				}, func(o *Options) {
					o.Backoff = func(n int) time.Duration { return time.Duration(n) * 7 * time.Second }
				})
				first, second := <-again, <-again
				if got := second.Sub(first); got < tc.want-3*time.Second || got > tc.want+time.Second {
					t.Errorf("came back after %s, want %s", got, tc.want)
				}
				j.stopClean()
			})
		})
	}
}

func TestPanickingBackoff(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		x.send("a")
		j := x.start(func(_ context.Context, m *sqsonce.Message) error {
			if m.ReceiveCount == 1 {
				return errTest
			}
			return nil
		}, func(o *Options) { o.Backoff = func(int) time.Duration { panic("backoff") } })
		time.Sleep(10 * time.Second)
		j.stopClean()
		x.wantEmpty()
	})
}

// TestStuckHandlerGivesItsSlotBack: it ignores the end of its context; others go on, and its message stays its own.
func TestStuckHandlerGivesItsSlotBack(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		x.send("stuck", "other")
		var r runs
		j := x.start(func(_ context.Context, m *sqsonce.Message) error {
			defer r.begin(m.Body)()
			if m.Body == "stuck" {
				time.Sleep(10 * time.Minute)
			}
			return nil
		}, func(o *Options) { o.Concurrency, o.HandlerTimeout = 1, 5*time.Second })
		time.Sleep(6 * time.Second)
		if got := r.count("other"); got != 0 {
			t.Error("two handlers at once before the grace is over")
		}
		time.Sleep(3 * time.Second)
		if got, s := r.count("other"), j.Stats(); got != 1 || s.Stuck != 1 {
			t.Errorf("other ran %d times, want 1; %+v", got, s)
		}
		time.Sleep(11 * time.Minute)
		if s := j.Stats(); s.Stuck != 0 {
			t.Errorf("Stuck: got %d after it returned, want 0", s.Stuck)
		}
		j.stopClean()
		if r.count("stuck") != 1 {
			t.Errorf("runs: %v", r.list())
		}
	})
}

func TestConcurrencyIsKept(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		for range 50 {
			x.send("m")
		}
		var r runs
		j := x.start(r.take(time.Second), func(o *Options) { o.Concurrency = 7 })
		time.Sleep(30 * time.Second)
		j.stopClean()
		x.wantEmpty()
		if r.most != 7 {
			t.Errorf("%d handlers at once, want 7", r.most)
		}
	})
}

func TestContextValuesReachTheHandler(t *testing.T) {
	type key struct{}
	bubble(t, setup{}, func(x *fixture) {
		x.send("a")
		got := make(chan any, 1)
		w, err := New(x.c, x.url, func(ctx context.Context, _ *sqsonce.Message) error {
			got <- ctx.Value(key{})
			return nil
		}, func(o *Options) { o.Wait = time.Second })
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.WithValue(x.Context(), key{}, "v"), time.Second)
		defer cancel()
		if err := w.Run(ctx); err != nil {
			t.Error(err)
		}
		if v := <-got; v != "v" {
			t.Errorf("got %v, want v", v)
		}
	})
}
