package lambda

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
)

type hookKey string

// hookBook writes down what hooks are told.
type hookBook struct {
	mu      sync.Mutex
	steps   []string // "Begin 2", "Start a", "End a done", "Finish"
	starts  []sqsonce.Delivery
	ends    map[string]sqsonce.Return // by message ID
	reports []Report
}

func (b *hookBook) step(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.steps = append(b.steps, fmt.Sprintf(format, args...))
}

func (b *hookBook) option(o *Options) {
	var h Hooks
	h.Begin = func(ctx context.Context, messages []*sqsonce.Message) context.Context {
		b.step("Begin %d", len(messages))
		return context.WithValue(ctx, hookKey("begin"), true)
	}
	h.Start = func(ctx context.Context, d sqsonce.Delivery) context.Context {
		b.step("Start %s", d.Message.ID)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.starts = append(b.starts, d)
		return context.WithValue(ctx, hookKey("start"), d.Message.ID)
	}
	h.End = func(ctx context.Context, d sqsonce.Delivery, r sqsonce.Return) {
		b.step("End %v %v", ctx.Value(hookKey("start")), r.Outcome)
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.ends == nil {
			b.ends = map[string]sqsonce.Return{}
		}
		b.ends[d.Message.ID] = r
	}
	h.Finish = func(ctx context.Context, r Report) {
		b.step("Finish")
		b.mu.Lock()
		defer b.mu.Unlock()
		if ctx.Value(hookKey("begin")) == nil {
			b.steps = append(b.steps, "without Begin's context")
		}
		b.reports = append(b.reports, r)
	}
	o.Hooks = append(o.Hooks, h)
}

// wantOutcomes checks the last report, and that each start had one end.
func (b *hookBook) wantOutcomes(t *testing.T, sent int, want map[sqsonce.OutcomeKind]int) Report {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	started, ended := map[string]int{}, map[string]int{}
	for _, s := range b.steps {
		if what := strings.Fields(s); what[0] == "Start" {
			started[what[1]]++
		} else if what[0] == "End" {
			ended[what[1]]++
		}
	}
	if diff := cmp.Diff(started, ended); diff != "" {
		t.Errorf("starts and ends (-+):\n%s", diff)
	}
	if len(b.reports) == 0 {
		t.Fatal("Finish was not called")
	}
	r := b.reports[len(b.reports)-1]
	sum := 0
	for _, n := range r.Outcomes {
		sum += n
	}
	if diff := cmp.Diff(want, r.Outcomes); diff != "" || sum != r.Records || r.Sent != sent {
		t.Errorf("%d records, %d sent, want %d sent; outcomes (-want +got):\n%s", r.Records, r.Sent, sent, diff)
	}
	return r
}

// TestEndOfEveryHandler: however a handler ends, Start and End are called once, End before the message is settled; and the report
// has it.
func TestEndOfEveryHandler(t *testing.T) {
	for name, tc := range map[string]struct {
		h        sqsonce.Handler
		want     sqsonce.Return
		text     string                      // of the error
		sent     int                         // to the dead-letter queue
		outcomes map[sqsonce.OutcomeKind]int // default: want.Outcome
		set      func(*Options)
	}{
		"nil":   {h: takes(time.Second), want: sqsonce.Return{Elapsed: time.Second, Delay: -1}},
		"error": {h: fails(errTest), want: sqsonce.Return{Outcome: sqsonce.OutcomeFailed, Delay: 10 * time.Second}, text: "it failed"},
		"retry after": {
			h: fails(sqsonce.RetryAfter(time.Minute, errTest)), want: sqsonce.Return{Outcome: sqsonce.OutcomeFailed, Delay: time.Minute},
			text: "sqsonce: retry after 1m0s: it failed",
		},
		"panic": {
			h:    func(context.Context, *sqsonce.Message) error { panic("boom") },
			want: sqsonce.Return{Outcome: sqsonce.OutcomeFailed, Delay: 10 * time.Second}, text: "sqsonce: handler panicked: boom",
		},
		"goexit": {
			h:    func(context.Context, *sqsonce.Message) error { runtime.Goexit(); return nil },
			want: sqsonce.Return{Outcome: sqsonce.OutcomeFailed, Delay: 10 * time.Second}, text: "sqsonce: handler called runtime.Goexit",
		},
		"reject": {
			h: fails(sqsonce.Reject(errTest)), want: sqsonce.Return{Outcome: sqsonce.OutcomeRejected, Delay: -1},
			text: "sqsonce: rejected: it failed", sent: 1,
		},
		"reject, not sent": {
			h: fails(sqsonce.Reject(errTest)), want: sqsonce.Return{Outcome: sqsonce.OutcomeRejected, Delay: -1},
			text: "sqsonce: rejected: it failed", outcomes: map[sqsonce.OutcomeKind]int{sqsonce.OutcomeFailed: 1},
			set: func(o *Options) { o.DeadLetterQueue = "" },
		},
		"in progress": {
			h: fails(sqsonce.ErrInProgress), want: sqsonce.Return{Outcome: sqsonce.OutcomeInProgress, Delay: -1}, text: sqsonce.ErrInProgress.Error(),
		},
		"lease lost": {
			h: fails(sqsonce.ErrLeaseLost), want: sqsonce.Return{Outcome: sqsonce.OutcomeLeaseLost, Delay: -1}, text: sqsonce.ErrLeaseLost.Error(),
		},
		"shutdown of something else": {
			h: fails(sqsonce.ErrShutdown), want: sqsonce.Return{Outcome: sqsonce.OutcomeFailed, Delay: 10 * time.Second}, text: sqsonce.ErrShutdown.Error(),
		},
		"shutdown": {
			h: takes(time.Hour), want: sqsonce.Return{Outcome: sqsonce.OutcomeShutdown, Elapsed: 18 * time.Second, Delay: 10 * time.Second},
			text: sqsonce.ErrShutdown.Error(),
		},
		"fails at the margin": {
			h: func(ctx context.Context, _ *sqsonce.Message) error { <-ctx.Done(); return errTest }, text: "it failed",
			want: sqsonce.Return{Outcome: sqsonce.OutcomeFailed, Elapsed: 18 * time.Second, Delay: 10 * time.Second},
		},
		"succeeds at the margin": {h: ignores(18500 * time.Millisecond), want: sqsonce.Return{Elapsed: 18500 * time.Millisecond, Delay: -1}},
		"abandoned": { // and returns in a later invocation
			h: ignores(time.Hour), want: sqsonce.Return{Outcome: sqsonce.OutcomeAbandoned, Elapsed: 19 * time.Second, Delay: -1},
		},
		"abandoned while its message is settled": {
			h: func(ctx context.Context, _ *sqsonce.Message) error {
				sqsonce.OnSettled(ctx, func(bool) { time.Sleep(time.Hour) })
				return nil
			},
			want: sqsonce.Return{Delay: -1}, outcomes: map[sqsonce.OutcomeKind]int{sqsonce.OutcomeAbandoned: 1},
		},
	} {
		runWithQueue(t, name, false, nil, func(x *fixture) {
			x.send("a", "ok")
			var book hookBook
			f := x.wrap(func(ctx context.Context, m *sqsonce.Message) error {
				if m.Body == "ok" {
					return nil
				}
				sqsonce.OnSettled(ctx, func(bool) { book.step("settled") })
				return tc.h(ctx, m)
			}, book.option, func(o *Options) {
				o.Margin = 2 * time.Second
				if tc.set != nil {
					tc.set(o)
				}
			})
			e := x.receive()
			id := e.Records[0].MessageId
			begun := time.Now()
			x.failed(f, 20*time.Second, e)
			want := tc.outcomes
			if want == nil {
				want = map[sqsonce.OutcomeKind]int{tc.want.Outcome: 1}
			}
			want[sqsonce.OutcomeDone]++
			r := book.wantOutcomes(x.T, tc.sent, want)
			if r.QueueARN != standardARN || r.Elapsed != time.Since(begun) || r.Remaining != 20*time.Second-r.Elapsed || r.Err != nil {
				x.Errorf("report %+v", r)
			}
			time.Sleep(2 * time.Hour) // what was abandoned returns
			book.wantOutcomes(x.T, tc.sent, want)

			got, text := book.ends[id], ""
			if got.Err != nil {
				text = got.Err.Error()
			}
			if got.Err = nil; got != tc.want || text != tc.text {
				x.Errorf("got %+v with error %q, want %+v with %q", got, text, tc.want, tc.text)
			}
			if end, settled := slices.Index(book.steps, "End "+id+" "+got.Outcome.String()), slices.Index(book.steps, "settled"); end < 0 || settled < end {
				x.Errorf("steps: %q, want the end before the message is settled", book.steps)
			}
			if i := slices.IndexFunc(book.starts, func(d sqsonce.Delivery) bool { return d.Message.ID == id }); !book.starts[i].Received.Equal(begun) || book.starts[i].Run != 1 {
				x.Errorf("Start got %+v", book.starts[i])
			}
		})
	}
}

// TestEndAfterTheResultsWereClosed: a handler that returns while the answer is made was abandoned, for the hooks too.
func TestEndAfterTheResultsWereClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var book hookBook
		h := handlers{"failed": fails(errTest), "late": ignores(19300 * time.Millisecond)}
		f := wrap(t, h.handle, book.option, func(o *Options) {
			o.Client, o.Margin = &stubClient{before: hangs(opChange, 400*time.Millisecond)}, 2*time.Second // from 19 s on
		})
		invoke(t, f, timeout(t, 20*time.Second), batch("failed", "late"))
		book.wantOutcomes(t, 0, map[sqsonce.OutcomeKind]int{sqsonce.OutcomeFailed: 1, sqsonce.OutcomeAbandoned: 1})
		want := sqsonce.Return{Outcome: sqsonce.OutcomeAbandoned, Elapsed: 19300 * time.Millisecond, Delay: -1}
		if got := book.ends["late"]; got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
}

// TestReportOfUnavailable: the invocation returns an error, and the report has it.
func TestReportOfUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var book hookBook
		f := wrap(t, fails(sqsonce.ErrUnavailable), book.option)
		_, err := f(timeout(t, 20*time.Second), batch("a", "b"))
		r := book.wantOutcomes(t, 0, map[sqsonce.OutcomeKind]int{sqsonce.OutcomeUnavailable: 2})
		if err == nil || !errors.Is(r.Err, sqsonce.ErrUnavailable) {
			t.Errorf("got error %v, and %v in the report", err, r.Err)
		}
	})
}

// TestReportOfGroups: what is behind a failed message was not started. One that failed at its last receive was sent.
func TestReportOfGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var book hookBook
		h := handlers{"a1": fails(errTest), "b2": fails(sqsonce.ErrMisconfigured)}
		f := wrap(t, h.handle, book.option, func(o *Options) { o.Client = &stubClient{} }) // with a maxReceiveCount of 1
		got := invoke(t, f, timeout(t, 20*time.Second), fifoBatch("a1", "a2", "a3", "b1", "b2", "b3", "b4"))
		book.wantOutcomes(t, 1, map[sqsonce.OutcomeKind]int{
			sqsonce.OutcomeFailed: 1, sqsonce.OutcomeDone: 3, sqsonce.OutcomeUnavailable: 1, sqsonce.OutcomeNotStarted: 2,
		})
		if got != "b2 b3 b4" {
			t.Errorf("failed %q", got)
		}
	})
}

// TestReportOfAnAbandonedHead: it is sent to the dead-letter queue, and its End is called before Finish.
func TestReportOfAnAbandonedHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var book hookBook
		f := wrap(t, handlers{"a1": ignores(time.Hour)}.handle, book.option, func(o *Options) {
			o.Client, o.AllOrNothing = &stubClient{}, true // with a maxReceiveCount of 1
		})
		if got := invoke(t, f, timeout(t, 20*time.Second), fifoBatch("a1", "a2")); got != "" {
			t.Errorf("failed %q", got)
		}
		book.wantOutcomes(t, 1, map[sqsonce.OutcomeKind]int{sqsonce.OutcomeAbandoned: 1, sqsonce.OutcomeDone: 1})
		if got := book.ends["a1"].Outcome; got != sqsonce.OutcomeAbandoned {
			t.Errorf("ended as %v", got)
		}
		time.Sleep(time.Hour)
	})
}

// TestHooksOfAnInvocation nest: those that begin something in order, those that end it in reverse. The handler has the context.
func TestHooksOfAnInvocation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var book hookBook
		second := func(o *Options) {
			h := Hooks{
				Begin: func(ctx context.Context, _ []*sqsonce.Message) context.Context {
					book.step("Begin again, %v", ctx.Value(hookKey("begin")))
					return ctx
				},
				Finish: func(context.Context, Report) { book.step("Finish first") },
			}
			h.End = func(ctx context.Context, _ sqsonce.Delivery, _ sqsonce.Return) { book.step("End first") }
			o.Hooks = append(o.Hooks, h)
		}
		var given []Hooks
		h := func(ctx context.Context, m *sqsonce.Message) error {
			book.step("handler %v %v", ctx.Value(hookKey("begin")), ctx.Value(hookKey("start")))
			return nil
		}
		f := wrap(t, h, book.option, second, func(o *Options) { given = o.Hooks })
		clear(given) // Wrap keeps the hooks, and not the slice
		invoke(t, f, timeout(t, 20*time.Second), batch("a"))
		want := []string{"Begin 1", "Begin again, true", "Start a", "handler true a", "End first", "End a done", "Finish first", "Finish"}
		if diff := cmp.Diff(want, book.steps); diff != "" {
			t.Error(diff)
		}
		if _, err := f(timeout(t, time.Second), events.SQSEvent{}); err == nil || len(book.steps) != len(want) {
			t.Errorf("an event that is refused: error %v, %q", err, book.steps[len(want):])
		}
	})
}

// TestHooksThatPanic change nothing of the answer, and are one line each.
func TestHooksThatPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var book logBook
		f := wrap(t, handlers{"b": fails(errTest)}.handle, func(o *Options) {
			o.Logger = book.logger()
			o.Hooks = []Hooks{{
				Hooks: sqsonce.Hooks{
					Start: func(context.Context, sqsonce.Delivery) context.Context { panic("boom") },
					End:   func(context.Context, sqsonce.Delivery, sqsonce.Return) { panic("boom") },
				},
				Begin:  func(context.Context, []*sqsonce.Message) context.Context { panic("boom") },
				Finish: func(context.Context, Report) { panic("boom") },
			}}
		})
		for range 3 {
			if got := invoke(t, f, timeout(t, 20*time.Second), batch("a", "b")); got != "b" {
				t.Errorf("failed %q, want b", got)
			}
		}
		for _, hook := range []string{"Begin", "Start", "End", "Finish"} {
			if n := book.count(`hook="lambda: Hooks.` + hook + `"`); n != 1 {
				t.Errorf("%s: %d lines, want 1", hook, n)
			}
		}
	})
}

// TestHookThatHangs costs no success of another message: the answer comes before the deadline.
func TestHookThatHangs(t *testing.T) {
	hang := func() { time.Sleep(time.Hour) }
	for name, tc := range map[string]struct {
		hooks Hooks
		want  string // failed
		lines int
	}{
		"Start": {Hooks{Hooks: sqsonce.Hooks{Start: func(ctx context.Context, d sqsonce.Delivery) context.Context {
			if d.Message.ID == "b" {
				hang()
			}
			return ctx
		}}}, "b c", 0},
		"End": {Hooks{Hooks: sqsonce.Hooks{End: func(_ context.Context, d sqsonce.Delivery, _ sqsonce.Return) {
			if d.Message.ID == "b" {
				hang()
			}
		}}}, "b c", 0},
		"End of an abandoned handler": {Hooks{Hooks: sqsonce.Hooks{End: func(_ context.Context, d sqsonce.Delivery, r sqsonce.Return) {
			if r.Outcome == sqsonce.OutcomeAbandoned {
				hang()
			}
		}}}, "c", 1},
		"Begin": {Hooks{Begin: func(ctx context.Context, _ []*sqsonce.Message) context.Context {
			hang()
			return context.WithValue(ctx, hookKey("begin"), true)
		}}, "a b c d", 1},
		"Begin, for a while": {Hooks{Begin: func(ctx context.Context, _ []*sqsonce.Message) context.Context {
			time.Sleep(10 * time.Second)
			return ctx
		}}, "c", 0},
		"Finish":                         {Hooks{Finish: func(context.Context, Report) { hang() }}, "c", 1},
		"Finish, until its context ends": {Hooks{Finish: func(ctx context.Context, _ Report) { <-ctx.Done() }}, "c", 0},
		"Finish, until the deadline": {Hooks{Finish: func(ctx context.Context, _ Report) {
			<-ctx.Done()
			time.Sleep(time.Second / 10)
		}}, "c", 1},
	} {
		must.Run(t, name, func(t *testing.T) {
			var book logBook
			h := handlers{"c": ignores(30 * time.Minute)}
			f := wrap(t, h.handle, func(o *Options) { o.Hooks, o.Logger = []Hooks{tc.hooks}, book.logger() })
			begun := time.Now()
			if got := invoke(t, f, timeout(t, 20*time.Second), batch("a", "b", "c", "d")); got != tc.want {
				t.Errorf("failed %q, want %q", got, tc.want)
			}
			if took := time.Since(begun); took > 20*time.Second-time.Second/8+logFlush {
				t.Errorf("answered after %s: no more than an eighth of the margin of 1 s may remain before the deadline", took)
			}
			if n := book.count("lambda: hook abandoned"); n != tc.lines {
				t.Errorf("%d lines of abandoned hooks, want %d", n, tc.lines)
			}
			time.Sleep(2 * time.Hour) // all goroutines return
		})
	}
}

// TestContextOfFinish: what exports in it has until a sixteenth of the margin before the answer, also when the handlers' context
// has ended.
func TestContextOfFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var calls int
		f := wrap(t, handlers{"b": takes(time.Hour)}.handle, func(o *Options) {
			o.Margin = 1600 * time.Millisecond
			o.Hooks = []Hooks{{Finish: func(ctx context.Context, _ Report) {
				calls++
				if end, ok := ctx.Deadline(); ok != (calls == 1) || ok && end.Sub(begun) != 20*time.Second-300*time.Millisecond || ctx.Err() != nil {
					t.Errorf("call %d: ends after %s, %t; error %v", calls, end.Sub(begun), ok, ctx.Err())
				}
			}}}
		})
		invoke(t, f, timeout(t, 20*time.Second), batch("a", "b"))
		invoke(t, f, context.Background(), batch("a"))
		if calls != 2 {
			t.Errorf("%d calls, want one for each invocation", calls)
		}
	})
}

// TestAbandonedHooksAreCounted: a Finish that never returns counts as what else was abandoned, and in the reports.
func TestAbandonedHooksAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var book logBook
		reports := make(chan Report, 3)
		f := wrap(t, takes(0), func(o *Options) {
			o.Logger, o.Abandoned = book.logger(), 1
			o.Hooks = []Hooks{{Finish: func(_ context.Context, r Report) {
				reports <- r
				time.Sleep(time.Hour)
			}}}
		})
		for range 2 {
			if got := invoke(t, f, timeout(t, 20*time.Second), batch("a")); got != "" {
				t.Errorf("failed %q", got)
			}
		}
		if _, err := f(timeout(t, 20*time.Second), batch("a")); err == nil {
			t.Error("with two abandoned hooks, and Options.Abandoned of 1, the function starts a handler")
		}
		time.Sleep(2 * time.Hour)
		invoke(t, f, timeout(t, 20*time.Second), batch("a"))
		for i, want := range []int64{0, 1, 0} {
			if r := <-reports; r.Abandoned != want {
				t.Errorf("report %d: %d abandoned, want %d", i, r.Abandoned, want)
			}
		}
		if n := book.count("lambda: hook abandoned"); n != 3 {
			t.Errorf("%d lines of abandoned hooks, want 3", n)
		}
		time.Sleep(2 * time.Hour)
	})
}
