package sqsworker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// hookBook writes down what hooks are told.
type hookBook struct {
	mu       sync.Mutex
	starts   []sqsonce.Delivery
	ends     []sqsonce.Return
	extended []sqsonce.Extension
	calls    []Call // with answers at the same places
	answers  []CallResult
	attached []string
}

// locked writes something down.
func (b *hookBook) locked(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

func (b *hookBook) option(o *Options) {
	var h Hooks
	h.Start = func(ctx context.Context, d sqsonce.Delivery) context.Context {
		b.locked(func() { b.starts = append(b.starts, d) })
		return ctx
	}
	h.End = func(_ context.Context, _ sqsonce.Delivery, r sqsonce.Return) {
		b.locked(func() { b.ends = append(b.ends, r) })
	}
	h.Extended = func(_ context.Context, _ sqsonce.Delivery, e sqsonce.Extension) {
		b.locked(func() { b.extended = append(b.extended, e) })
	}
	h.Call = func(ctx context.Context, c Call) (context.Context, func(CallResult)) {
		return ctx, func(r CallResult) { b.locked(func() { b.calls, b.answers = append(b.calls, c), append(b.answers, r) }) }
	}
	h.Attach = func(w *Worker) func() {
		b.locked(func() { b.attached = append(b.attached, fmt.Sprint("attached, receives ", w.Stats().Receives > 0)) })
		return func() {
			b.locked(func() { b.attached = append(b.attached, fmt.Sprint("detached, receives ", w.Stats().Receives > 0)) })
		}
	}
	o.Hooks = append(o.Hooks, h)
}

// outcomes returns those of the ends, and checks that there is one for each start.
func (b *hookBook) outcomes(t *testing.T) (kinds []string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.starts) != len(b.ends) {
		t.Errorf("%d starts and %d ends", len(b.starts), len(b.ends))
	}
	for _, r := range b.ends {
		kinds = append(kinds, r.Outcome.String())
	}
	return kinds
}

// purposes returns the answers of calls for a purpose that had entries or failed.
func (b *hookBook) purposes(p string) (calls []Call, answers []CallResult) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, c := range b.calls {
		if r := b.answers[i]; c.Purpose == p && (r.Entries > 0 || r.Failed > 0 || r.Err != nil) {
			r.Elapsed = 0
			calls, answers = append(calls, c), append(answers, r)
		}
	}
	return calls, answers
}

// ignores is a handler that takes d, ignores its context, and returns err.
func ignores(d time.Duration, err error) sqsonce.Handler {
	return func(context.Context, *sqsonce.Message) error {
		time.Sleep(d)
		return err
	}
}

// waits is a handler that returns when its context ends: with the context's error, or with nil.
func waits(fails bool) sqsonce.Handler {
	return func(ctx context.Context, _ *sqsonce.Message) error {
		<-ctx.Done()
		if fails {
			return ctx.Err()
		}
		return nil
	}
}

// TestEndOfEveryHandler: however a handler ends, Start and End are called once, End before the message is settled.
func TestEndOfEveryHandler(t *testing.T) {
	const backoff = 7 * time.Second
	refused := fault.Plan{Rules: []fault.Rule{{Op: opChange, Nth: 1, Do: fault.FailEntries, Code: "ReceiptHandleIsInvalid"}}}
	for name, tc := range map[string]struct {
		h      sqsonce.Handler
		faults fault.Plan
		set    func(*Options)
		stopAt time.Duration // default: 5 s, before the next try
		want   sqsonce.Return
		text   string // of the error
	}{
		"nil":   {h: ok, want: sqsonce.Return{Delay: -1}},
		"error": {h: ignores(time.Second, errTest), want: sqsonce.Return{Outcome: sqsonce.OutcomeFailed, Elapsed: time.Second, Delay: backoff}, text: "it failed"},
		"retry after": {
			h:    ignores(0, sqsonce.RetryAfter(time.Minute, errTest)),
			want: sqsonce.Return{Outcome: sqsonce.OutcomeFailed, Delay: time.Minute}, text: "sqsonce: retry after 1m0s: it failed",
		},
		"panic": {
			h:    func(context.Context, *sqsonce.Message) error { panic("boom") },
			want: sqsonce.Return{Outcome: sqsonce.OutcomeFailed, Delay: backoff}, text: "sqsonce: handler panicked: boom",
		},
		"goexit": {
			h:    func(context.Context, *sqsonce.Message) error { runtime.Goexit(); return nil },
			want: sqsonce.Return{Outcome: sqsonce.OutcomeFailed, Delay: backoff}, text: "sqsonce: handler called runtime.Goexit",
		},
		"cancelled by itself": {
			h: ignores(0, context.Canceled), want: sqsonce.Return{Outcome: sqsonce.OutcomeFailed, Delay: backoff}, text: "context canceled",
		},
		"timeout": {
			h: waits(true), set: func(o *Options) { o.Timeout = timeoutOf(2 * time.Second) },
			want: sqsonce.Return{Outcome: sqsonce.OutcomeFailed, Elapsed: 2 * time.Second, Delay: backoff}, text: "context deadline exceeded",
		},
		"reject": {
			h: ignores(0, sqsonce.Reject(errTest)), want: sqsonce.Return{Outcome: sqsonce.OutcomeRejected, Delay: -1}, text: "sqsonce: rejected: it failed",
		},
		"in progress": {
			h:    ignores(0, sqsonce.RetryAfter(time.Minute, sqsonce.ErrInProgress)),
			want: sqsonce.Return{Outcome: sqsonce.OutcomeInProgress, Delay: time.Minute}, text: "sqsonce: retry after 1m0s: sqsonce: in progress elsewhere",
		},
		"in progress, nobody knows until when": {
			h: ignores(0, sqsonce.ErrInProgress), want: sqsonce.Return{Outcome: sqsonce.OutcomeInProgress, Delay: -1}, text: "sqsonce: in progress elsewhere",
		},
		"unavailable": {
			h: ignores(5*time.Second, sqsonce.ErrUnavailable), stopAt: 5500 * time.Millisecond,
			want: sqsonce.Return{Outcome: sqsonce.OutcomeUnavailable, Elapsed: 5 * time.Second, Delay: -1}, text: sqsonce.ErrUnavailable.Error(),
		},
		"lease of the record lost": {
			h: ignores(0, sqsonce.ErrLeaseLost), want: sqsonce.Return{Outcome: sqsonce.OutcomeLeaseLost, Delay: -1}, text: sqsonce.ErrLeaseLost.Error(),
		},
		"lease of the message lost": {
			h: waits(true), faults: refused, stopAt: 20 * time.Second,
			want: sqsonce.Return{Outcome: sqsonce.OutcomeLeaseLost, Delay: -1}, text: "context canceled",
		},
		"lease of the message lost, succeeds": {
			h: waits(false), faults: refused, stopAt: 20 * time.Second, want: sqsonce.Return{Outcome: sqsonce.OutcomeLeaseLost, Delay: -1},
		},
		"shutdown": {
			h: waits(true), set: func(o *Options) { o.StopTimeout = time.Second },
			want: sqsonce.Return{Outcome: sqsonce.OutcomeShutdown, Elapsed: 6 * time.Second}, text: "context canceled",
		},
		"succeeds at the shutdown": {
			h: waits(false), set: func(o *Options) { o.StopTimeout = time.Second }, want: sqsonce.Return{Elapsed: 6 * time.Second, Delay: -1},
		},
		"fails at the shutdown": {
			h: ignores(5500*time.Millisecond, errTest), set: func(o *Options) { o.StopTimeout = -1 },
			want: sqsonce.Return{Outcome: sqsonce.OutcomeFailed, Elapsed: 5500 * time.Millisecond, Delay: backoff}, text: "it failed",
		},
		"stuck, and returns": { // late, and as any other
			h: ignores(time.Minute, nil), set: func(o *Options) { o.Timeout = timeoutOf(time.Second) }, stopAt: 2 * time.Minute,
			want: sqsonce.Return{Elapsed: time.Minute, Delay: -1},
		},
		"abandoned": { // and returns after Run
			h: ignores(time.Hour, errTest), set: func(o *Options) { o.StopTimeout, o.StopGrace = -1, 2*time.Second },
			want: sqsonce.Return{Outcome: sqsonce.OutcomeAbandoned, Elapsed: 7 * time.Second, Delay: -1},
		},
	} {
		run(t, name, setup{maxReceives: 5}, func(x *fixture) {
			x.srv.Set(tc.faults)
			var book hookBook
			var steps []string
			step := func(s string) { book.locked(func() { steps = append(steps, s) }) }
			begun := time.Now()
			x.send("a")
			first := true
			j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
				if !first {
					return nil
				}
				first = false
				sqsonce.OnSettled(ctx, func(bool) { step("settled") })
				return tc.h(ctx, m)
			}, book.option, func(o *Options) {
				o.Hooks[0].End = func(end func(context.Context, sqsonce.Delivery, sqsonce.Return)) func(context.Context, sqsonce.Delivery, sqsonce.Return) {
					return func(ctx context.Context, d sqsonce.Delivery, r sqsonce.Return) {
						step("end")
						end(ctx, d, r)
					}
				}(o.Hooks[0].End)
				o.VisibilityTimeout, o.Backoff = 20*time.Second, func(int) time.Duration { return backoff }
				if tc.set != nil {
					tc.set(o)
				}
			})
			if time.Sleep(5 * time.Second); tc.stopAt > 0 {
				time.Sleep(tc.stopAt - 5*time.Second)
			}
			_ = j.stop()
			time.Sleep(2 * time.Hour)
			book.outcomes(t)
			got := book.ends[0]
			if tc.want.Outcome == sqsonce.OutcomeLeaseLost {
				got.Elapsed = 0 // an extension's time is drawn
			}
			text := ""
			if got.Err != nil {
				text = got.Err.Error()
			}
			if got.Err = nil; got != tc.want || text != tc.text {
				x.Errorf("got %+v with error %q, want %+v with %q", got, text, tc.want, tc.text)
			}
			if len(steps) < 2 || steps[0] != "end" || steps[1] != "settled" {
				x.Errorf("steps: %v, want the end before the message is settled", steps)
			}
			if d := book.starts[0]; d.Message.Body != "a" || d.QueueURL != x.url || d.Run != 1 || !d.Received.Equal(begun) {
				x.Errorf("Start got %+v", d)
			}
		})
	}
}

// TestHooksOfCalls: each call of SQS has its purpose, its entries, and what SQS refused of them. New keeps the hooks, and not the
// slice.
func TestHooksOfCalls(t *testing.T) {
	bubble(t, setup{maxReceives: 5}, func(x *fixture) {
		var book hookBook
		x.srv.Set(fault.Plan{Rules: []fault.Rule{
			{Op: opReceive, Nth: 1, Do: fault.Error, Code: "InternalError"},
			{Op: opDelete, Nth: 1, Do: fault.FailEntries, Code: "InternalError"},
			{Op: opChange, Nth: 1, Do: fault.Error, Code: "InternalError"},
		}})
		x.send("done", "slow", "bad", "failing")
		var given []Hooks
		j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
			switch {
			case m.Body == "slow":
				time.Sleep(20 * time.Second)
			case m.Body == "bad":
				return sqsonce.Reject(errTest)
			case m.Body == "failing" && m.ReceiveCount == 1:
				return errTest
			}
			return nil
		}, book.option, func(o *Options) { o.WaitTime, given = time.Second, o.Hooks })
		clear(given)
		j.stopEmptyAfter(time.Minute)

		for purpose, want := range map[string]struct {
			url     string
			entries int  // of all calls
			failed  bool // some entries
			whole   int  // calls that failed
		}{
			"receive": {x.url, 5, false, 1},
			"delete":  {x.url, 4, true, 0},
			"extend":  {x.url, 1, false, 0},
			"release": {x.url, 1, true, 1},
			"reject":  {x.dlq, 1, false, 0},
		} {
			calls, answers := book.purposes(purpose)
			entries, failed, whole := 0, 0, 0
			for i, c := range calls {
				r := answers[i]
				entries, failed = entries+r.Entries, failed+r.Failed
				if r.Err != nil {
					whole++
				}
				if c.QueueURL != want.url {
					t.Errorf("%s: to %s", purpose, c.QueueURL)
				}
				if purpose == "receive" {
					if c.Messages != nil || c.Entries < r.Entries {
						t.Errorf("receive: asked for %d, got %d, messages %v", c.Entries, r.Entries, c.Messages)
					}
				} else if len(c.Messages) != c.Entries || r.Entries+r.Failed != c.Entries {
					t.Errorf("%s: %d messages, %d entries; %d changed, %d failed", purpose, len(c.Messages), c.Entries, r.Entries, r.Failed)
				}
			}
			if entries != want.entries || failed > 0 != want.failed || whole != want.whole {
				t.Errorf("%s: %d entries, %d failed, %d calls failed; want %+v", purpose, entries, failed, whole, want)
			}
		}
		if len(book.extended) != 1 || book.extended[0].Err != nil || book.extended[0].Until.IsZero() {
			t.Errorf("extensions: %+v, want one of the slow message", book.extended)
		}
	})
}

// TestAttach: once, in order, and undone in reverse when Run returns.
func TestAttach(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		var book hookBook
		second := Hooks{Attach: func(*Worker) func() {
			book.attached = append(book.attached, "second")
			return func() { book.attached = append(book.attached, "second detached") }
		}}
		without := Hooks{Attach: func(*Worker) func() { return nil }}
		j := x.start(ok, book.option, func(o *Options) { o.Hooks = append(o.Hooks, without, second) })
		time.Sleep(time.Minute)
		if err := j.Run(context.Background()); !errors.Is(err, ErrAlreadyRun) {
			t.Errorf("second Run: %v", err)
		}
		j.stopClean()
		want := []string{"attached, receives false", "second", "second detached", "detached, receives true"}
		if diff := cmp.Diff(want, book.attached); diff != "" || x.log.has("Hooks.") {
			t.Error(diff, x.log.String())
		}
		if r := book.answers[0]; r.Elapsed != shortReceive {
			t.Errorf("the first receive took %s, want %s", r.Elapsed, shortReceive)
		}
	})
}

// TestHooksOfACallNest: the context of the first is that of the second, and the answer comes in reverse.
func TestHooksOfACallNest(t *testing.T) {
	t.Parallel()
	type key string
	var steps []string
	hook := func(name string) Hooks {
		return Hooks{Call: func(ctx context.Context, _ Call) (context.Context, func(CallResult)) {
			steps = append(steps, fmt.Sprint(name, " after ", ctx.Value(key("name"))))
			return context.WithValue(ctx, key("name"), name), func(CallResult) { steps = append(steps, fmt.Sprint("answer of ", name, ", ended: ", ctx.Err())) }
		}}
	}
	l := newTestLoop(t, func(o *Options) { o.Hooks = []Hooks{hook("a"), hook("b")} })
	ctx, done := l.hooks.begin(t.Context(), Call{})
	steps = append(steps, fmt.Sprint("call after ", ctx.Value(key("name"))))
	done(CallResult{})
	steps = append(steps, fmt.Sprint("ended: ", ctx.Err()))
	want := []string{
		"a after <nil>", "b after a", "call after b", "answer of b, ended: <nil>", "answer of a, ended: <nil>", "ended: context canceled",
	}
	if diff := cmp.Diff(want, steps); diff != "" {
		t.Error(diff)
	}
}

// TestHooksThatPanic change nothing, and are one line each.
func TestHooksThatPanic(t *testing.T) {
	bubble(t, setup{maxReceives: 5}, func(x *fixture) {
		x.send("a", "b", "slow", "bad")
		var r runs
		panics := func(o *Options) {
			o.Hooks = append(o.Hooks, Hooks{
				Hooks: sqsonce.Hooks{
					Start:    func(context.Context, sqsonce.Delivery) context.Context { panic("boom") },
					End:      func(context.Context, sqsonce.Delivery, sqsonce.Return) { panic("boom") },
					Extended: func(context.Context, sqsonce.Delivery, sqsonce.Extension) { panic("boom") },
				},
				Call:   func(context.Context, Call) (context.Context, func(CallResult)) { panic("boom") },
				Attach: func(*Worker) func() { panic("boom") },
			}, Hooks{
				Call: func(ctx context.Context, _ Call) (context.Context, func(CallResult)) {
					return ctx, func(CallResult) { panic("boom") }
				},
				Attach: func(*Worker) func() { return func() { panic("boom") } },
			})
		}
		j := x.start(func(_ context.Context, m *sqsonce.Message) error {
			defer r.begin(m.Body)()
			switch m.Body {
			case "slow":
				time.Sleep(time.Minute)
			case "bad":
				return sqsonce.Reject(errTest)
			}
			return nil
		}, panics)
		j.stopEmptyAfter(2 * time.Minute)
		if s := j.Stats(); s.Done != 3 || s.Rejected != 1 || s.Received != 4 || s.LeasesLost != 0 || len(r.list()) != 4 {
			t.Errorf("%+v, runs %v", s, r.list())
		}
		for _, hook := range []string{"Start", "End", "Extended", "Call", "Call's done", "Attach", "Attach's detach"} {
			if n := x.log.count(fmt.Sprintf(`hook="sqsworker: Hooks.%s"`, hook)); n != 1 {
				t.Errorf("%s: %d lines, want 1", hook, n)
			}
		}
	})
}

// TestContextOfHooks: the handler and the calls of SQS get what the hooks return, also from a hook that calls back.
func TestContextOfHooks(t *testing.T) {
	type key struct{}
	bubble(t, setup{}, func(x *fixture) {
		x.send("a")
		var mu sync.Mutex
		seen := map[any]bool{}
		c := x.through(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			seen[r.Context().Value(key{})] = true
			mu.Unlock()
			return x.srv.RoundTrip(r)
		})
		settled := 0
		var w *Worker
		option := func(o *Options) {
			h := Hooks{
				Call: func(ctx context.Context, c Call) (context.Context, func(CallResult)) {
					w.Stats()
					return context.WithValue(ctx, key{}, c.Purpose), func(CallResult) { w.Stats() }
				},
				Attach: func(attached *Worker) func() { w = attached; return func() { w.Stats() } },
			}
			h.Start = func(ctx context.Context, d sqsonce.Delivery) context.Context {
				w.Stats()
				sqsonce.OnSettled(ctx, func(bool) { settled++ })
				return context.WithValue(ctx, key{}, "started "+d.Message.Body)
			}
			h.End = func(ctx context.Context, _ sqsonce.Delivery, _ sqsonce.Return) {
				w.Stats()
				if v := ctx.Value(key{}); v != "started a" || ctx.Err() != nil {
					t.Errorf("End's context has %v, error %v", v, ctx.Err())
				}
				sqsonce.OnSettled(ctx, func(bool) { settled++ })
			}
			o.Hooks = append(o.Hooks, h)
		}
		var got any
		j := x.startWith(c, func(ctx context.Context, _ *sqsonce.Message) error { got = ctx.Value(key{}); return nil }, option)
		time.Sleep(time.Minute)
		j.stopClean()
		if got != "started a" || settled != 2 {
			t.Errorf("the handler's context has %v, %d functions of hooks ran; want the hook's value and 2", got, settled)
		}
		if want := map[any]bool{nil: true, "receive": true, "delete": true}; !cmp.Equal(want, seen) { // nil: before the first receive
			t.Errorf("the calls' contexts had %v, want %v", seen, want)
		}
	})
}

// TestHookThatBlocks: one that takes long delays its own message or call, and no other.
func TestHookThatBlocks(t *testing.T) {
	for _, name := range []string{"Start", "End", "Call", "done"} {
		run(t, name, setup{}, func(x *fixture) {
			x.sendMany(50)
			var blocked atomic.Bool
			block := func(in string) {
				if in == name && !blocked.Swap(true) {
					time.Sleep(15 * time.Second)
				}
			}
			var h Hooks
			h.Start = func(ctx context.Context, _ sqsonce.Delivery) context.Context { block("Start"); return ctx }
			h.End = func(context.Context, sqsonce.Delivery, sqsonce.Return) { block("End") }
			h.Call = func(ctx context.Context, c Call) (context.Context, func(CallResult)) {
				if c.Purpose != "delete" {
					return ctx, nil
				}
				block("Call")
				return ctx, func(CallResult) { block("done") }
			}
			j := x.start(ok, func(o *Options) { o.Hooks, o.VisibilityTimeout = []Hooks{h}, 5*time.Minute })
			time.Sleep(4 * time.Second) // before the delete is repeated
			if n := len(x.queued()); n > 10 || !blocked.Load() {
				x.Errorf("%d of 50 messages are left while a hook blocks (%t), want those of its call at most", n, blocked.Load())
			}
			j.stopEmptyAfter(time.Minute)
		})
	}
}
