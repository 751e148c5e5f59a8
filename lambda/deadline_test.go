package lambda

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

func TestDeadline(t *testing.T) {
	slow := takes(time.Hour)
	for _, tt := range []struct {
		name    string
		h       handlers
		set     func(*Options)
		timeout time.Duration
		ids     []string
		want    string
		took    time.Duration
	}{
		{
			name: "successes are reported", h: handlers{"2": slow}, ids: []string{"1", "2", "3"},
			timeout: 20 * time.Second, want: "2", took: 19 * time.Second,
		},
		{
			name: "nothing is started after the margin", h: handlers{"m00002": slow, "": takes(8 * time.Second)}, ids: numbered(5),
			set: func(o *Options) { o.Concurrency = 1 }, timeout: 27 * time.Second,
			want: "m00002 m00003 m00004", took: 27*time.Second - 1350*time.Millisecond,
		},
		{
			name: "done before the margin", h: handlers{"": takes(time.Second)}, ids: []string{"1"},
			timeout: 20 * time.Second, took: time.Second,
		},
		{
			name: "the smallest margin", h: handlers{"2": slow}, ids: []string{"1", "2"},
			timeout: 3 * time.Second, want: "2", took: 2500 * time.Millisecond,
		},
		{
			name: "the largest margin", h: handlers{"2": slow}, ids: []string{"1", "2"},
			timeout: 15 * time.Minute, want: "2", took: 15*time.Minute - 5*time.Second,
		},
		{
			name: "Options.Margin", h: handlers{"2": slow}, ids: []string{"1", "2"}, set: func(o *Options) { o.Margin = 10 * time.Second },
			timeout: time.Minute, want: "2", took: 50 * time.Second,
		},
		{
			name: "no more than the margin remains", h: handlers{}, ids: []string{"1", "2"},
			timeout: 500 * time.Millisecond, want: "1 2",
		},
		{
			name: "a margin above the timeout", h: handlers{}, ids: []string{"1"}, set: func(o *Options) { o.Margin = time.Minute },
			timeout: 30 * time.Second, want: "1",
		},
		{
			name: "the deadline has passed", h: handlers{}, ids: []string{"1"}, timeout: -time.Second, want: "1",
		},
		{
			name: "a success within the grace counts", ids: []string{"1"}, timeout: 20 * time.Second, took: 19*time.Second + 400*time.Millisecond,
			h: handlers{"": func(ctx context.Context, _ *sqsonce.Message) error {
				<-ctx.Done()
				time.Sleep(400 * time.Millisecond)
				return nil
			}},
		},
		{
			name: "a handler that ignores its context is abandoned at half the margin", h: handlers{"2": ignores(time.Hour)}, ids: []string{"1", "2", "3"},
			timeout: 20 * time.Second, want: "2", took: 19*time.Second + 500*time.Millisecond,
		},
		{
			name: "no deadline", h: handlers{"": takes(24 * time.Hour)}, ids: []string{"1", "2"}, took: 24 * time.Hour,
		},
	} {
		must.Run(t, tt.name, func(t *testing.T) {
			ctx := context.Background()
			if tt.timeout != 0 {
				ctx = timeout(t, tt.timeout)
			}
			set := tt.set
			if set == nil {
				set = func(*Options) {}
			}
			f := wrap(t, tt.h.handle, set)
			begun := time.Now()
			got := invoke(t, f, ctx, batch(tt.ids...))
			if took := time.Since(begun); got != tt.want || took != tt.took {
				t.Errorf("failed %q after %v, want %q after %v", got, took, tt.want, tt.took)
			}
			if tt.timeout > 0 && ctx.Err() != nil {
				t.Error("returned after the deadline")
			}
			time.Sleep(2 * time.Hour) // the abandoned handlers return
		})
	}
}

// TestNothingStartsOnceClosed: the results may be closed after a worker has checked the context and before it starts the
// handler. The message is already reported as failed.
func TestNothingStartsOnceClosed(t *testing.T) {
	t.Parallel()
	a := &adapter{log: slog.New(slog.DiscardHandler), handler: func(context.Context, *sqsonce.Message) error {
		t.Error("started")
		return nil
	}}
	v := a.newInvocation(t.Context(), recordsOf(batch("1").Records))
	v.start(t.Context())
	defer v.cancel()
	v.closeHandlers()
	r := v.closeResults()
	if v.handle([]int{0}, nil) || r.states[0] != notStarted || v.slots[0].close() != notStarted {
		t.Errorf("state: got %d, then %d; want %d", r.states[0], v.slots[0].close(), notStarted)
	}
}

// TestAbandonedChangesNothing: a handler that returns after the response, with any result, changes nothing, and its worker
// starts no other handler.
func TestAbandonedChangesNothing(t *testing.T) {
	for name, end := range map[string]sqsonce.Handler{"success": fails(nil), "error": fails(errTest), "reject": fails(sqsonce.Reject(errTest)), "panic": panics("boom"), "Goexit": exits} {
		must.Run(t, name, func(t *testing.T) {
			var book logBook
			var r runs
			var settled settlements
			h := func(ctx context.Context, m *sqsonce.Message) error {
				sqsonce.OnSettled(ctx, settled.note)
				time.Sleep(time.Minute)
				return end(ctx, m)
			}
			f := wrap(t, r.wrap(h), func(o *Options) { o.Concurrency, o.Logger = 2, book.logger() })
			resp, err := f(timeout(t, 20*time.Second), batch("1", "2", "3"))
			if err != nil || failures(resp) != "1 2 3" {
				t.Errorf("got %q, %v; want all failed", failures(resp), err)
			}
			if book.count("abandoned_running=2") != 1 || book.count("abandoned=2") != 1 || book.count("not_started=1") != 1 {
				t.Errorf("abandoned handlers are not counted:\n%s", &book)
			}
			time.Sleep(2 * time.Minute)
			if failures(resp) != "1 2 3" || r.count() != 2 {
				t.Errorf("later: failed %q, %d started; want all and 2", failures(resp), r.count())
			}
			if got := book.count("abandoned handler returned after the response"); got != 2 {
				t.Errorf("%d returns of abandoned handlers in the log, want 2", got)
			}
			settled.want(t, false, false)
			// The count of abandoned handlers is 0 again: the next invocation counts from 1.
			invoke(t, f, timeout(t, 20*time.Second), batch("4"))
			if got := book.count("abandoned_running=1"); got != 2 {
				t.Errorf("abandoned_running=1 logged %d times, want 2:\n%s", got, &book)
			}
			time.Sleep(2 * time.Minute)
		})
	}
}

// TestCancelledWithoutDeadline: a caller other than the runtime may cancel a context that has no deadline.
func TestCancelledWithoutDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(time.Second, cancel)
		f := wrap(t, handlers{"1": takes(time.Hour), "2": ignores(time.Hour)}.handle)
		begun := time.Now()
		got := invoke(t, f, ctx, batch("1", "2", "3"))
		if took := time.Since(begun); got != "1 2" || took != 1250*time.Millisecond {
			t.Errorf("failed %q after %v, want 1 2 after 1.25s", got, took)
		}
		time.Sleep(2 * time.Hour)
	})
}

func TestConcurrencyIsBounded(t *testing.T) {
	for _, tt := range []struct{ set, want int }{{0, 10}, {1, 1}, {4, 4}, {1000, 30}} {
		synctest.Test(t, func(t *testing.T) {
			var r runs
			f := wrap(t, r.wrap(takes(time.Second)), func(o *Options) { o.Concurrency = tt.set })
			if got := invoke(t, f, t.Context(), batch(numbered(30)...)); got != "" || r.most != tt.want {
				t.Errorf("Concurrency %d: failed %q, %d at once, want none and %d", tt.set, got, r.most, tt.want)
			}
		})
	}
}

const maxConcurrency = "AWS_LAMBDA_MAX_CONCURRENCY"

func TestKillAt(t *testing.T) {
	for value, want := range map[string]bool{"": true, "0": true, "1": true, " 1 ": true, "2": false, "10": false, "many": false, "1.5": false} {
		t.Setenv(maxConcurrency, value)
		deadline := time.Now().Add(time.Hour)
		ctx, cancel := context.WithDeadline(t.Context(), deadline)
		defer cancel()
		f := wrap(t, func(_ context.Context, m *sqsonce.Message) error {
			if got := m.KillAt.Equal(deadline); got != want || !want && !m.KillAt.IsZero() {
				t.Errorf("%q: KillAt is %v; want the deadline: %t", value, m.KillAt, want)
			}
			return nil
		})
		t.Setenv(maxConcurrency, "5") // Wrap reads it, not the call
		invoke(t, f, ctx, batch("1"))
	}
}

// TestRetentionEnds: no delay of a message reaches into the last part of its retention, here 6 of 60 min. What is delivered then and does
// not succeed goes to the dead-letter queue, with the reason. Without one a line says so, and the message comes back once more.
func TestRetentionEnds(t *testing.T) {
	later := sqsonce.RetryAfter(2*time.Hour, errTest)
	down := sqsonce.UnavailableUntil(errTest, func(context.Context) error { return errTest })
	for name, tt := range map[string]struct {
		err    error
		fifo   bool
		faults []fault.Rule
		first  time.Duration // the message is visible in it, after an attempt at 30 min; 0: it is in the dead-letter queue
		second time.Duration // after one at 54 min
	}{
		"fails":                    {later, false, nil, 24 * time.Minute, 0},
		"fails, FIFO":              {later, true, nil, 24 * time.Minute, 0},
		"unavailable":              {sqsonce.Unavailable(errTest), false, nil, time.Minute, 0},
		"in an outage":             {down, false, nil, time.Minute, 0},
		"rejected":                 {sqsonce.Reject(errTest), false, nil, 0, 0},
		"in progress":              {sqsonce.RetryAfter(2*time.Hour, sqsonce.ErrInProgress), false, nil, 24 * time.Minute, visibility / 2},
		"lease lost":               {sqsonce.ErrLeaseLost, false, nil, visibility, visibility},
		"the queue takes none":     {later, false, []fault.Rule{{Op: opSend, Nth: 2, Times: 1000, Do: fault.Error, Code: "AccessDenied"}}, 24 * time.Minute, visibility / 2},
		"there is no queue for it": {later, false, nil, 24 * time.Minute, visibility / 2},
		"SQS does not tell":        {later, false, []fault.Rule{{Op: opAttributes, Prob: 1, Do: fault.Error, Code: "AccessDenied"}}, 2 * time.Hour, 2 * time.Hour},
	} {
		for age, want := range map[time.Duration]time.Duration{30 * time.Minute: tt.first, 54 * time.Minute: tt.second} {
			t.Run(fmt.Sprintf("%s/%s", name, age), func(t *testing.T) {
				withQueue(t, tt.fifo, tt.faults, func(x *fixture) {
					x.set(x.url, "MessageRetentionPeriod", "3600")
					x.send("a1")
					time.Sleep(age)
					ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
					defer cancel()
					r, err := x.wrap(fails(tt.err), func(o *Options) {
						if name == "there is no queue for it" {
							o.DeadLetterQueue = ""
						}
					})(ctx, x.receive())
					dead := x.dead()
					switch expired := strings.Contains(dead, errExpires.Error()); {
					case want == 0 && (!strings.Contains(dead, "it failed") || expired != (name != "rejected")):
						t.Errorf("in the dead-letter queue: %q\n%s", dead, &x.log)
					case want == 0 && (err != nil || len(r.BatchItemFailures) > 0):
						t.Errorf("got %v, %v, want a success", r, err)
					case want != 0 && (dead != "" || x.visibleIn()["a1"] != want):
						t.Errorf("visible in %s, want %s; in the dead-letter queue: %q\n%s", x.visibleIn()["a1"], want, dead, &x.log)
					}
					if said := x.log.count("SQS deletes the message soon") > 0; said != (want == visibility/2 && name != "in progress") || x.log.count("message rejected") > 0 {
						t.Errorf("said %t:\n%s", said, &x.log)
					}
				})
			})
		}
	}
}

// TestRetentionBehindAHead: the messages of a group that were not started behind one that ran go to the dead-letter queue, in order, where
// the last part of their retention has begun, here 6 of 10 min. Where they are not sent there is a line for each.
func TestRetentionBehindAHead(t *testing.T) {
	long := func(ctx context.Context, _ *sqsonce.Message) error { <-ctx.Done(); return nil }
	for name, tt := range map[string]struct {
		head         sqsonce.Handler
		faults       []fault.Rule
		dead, failed string
		lines        int
	}{
		"succeeds in the margin": {long, nil, "a2 a3", "a4", 0},
		"hangs":                  {ignores(time.Hour), nil, "a1 a2 a3", "a4", 0},
		"fails in the margin":    {waits, nil, "a1 a2 a3", "a4", 0},
		"is in progress":         {fails(sqsonce.ErrInProgress), nil, "a2 a3", "a1 a4", 0},
		"its lease is lost":      {fails(sqsonce.ErrLeaseLost), nil, "a2 a3", "a1 a4", 0},
		"its store hangs":        {nil, nil, "a2 a3", "a1 a4", 0},
		"a copy of it":           {long, nil, "a2 a3", "a1 a4", 0},
		"there is no queue":      {long, nil, "", "a2 a3 a4", 2},
		"the queue takes none":   {long, []fault.Rule{{Op: opSend, Nth: 5, Times: 1000, Do: fault.Error, Code: "AccessDenied"}}, "", "a2 a3 a4", 2},
	} {
		runWithQueue(t, name, true, tt.faults, func(x *fixture) {
			x.set(x.url, "MessageRetentionPeriod", "600")
			x.send("a1", "a2", "a3")
			time.Sleep(4 * time.Minute)
			x.send("a4")
			e := x.receive()
			if name == "a copy of it" {
				e.Records = slices.Insert(e.Records, 1, e.Records[0])
			}
			head, report := tt.head, Report{}
			if head == nil {
				head = must.Get(dedup.New(silentStore{memstore.New(), true}, "test", byID))(x).Handler(fails(nil))
			}
			f := x.wrap(func(ctx context.Context, m *sqsonce.Message) error {
				if m.Body == "a1" {
					return head(ctx, m)
				}
				x.Errorf("%s ran", m.Body)
				return nil
			}, func(o *Options) {
				if o.Hooks = []Hooks{{Finish: func(_ context.Context, r Report) { report = r }}}; name == "there is no queue" {
					o.DeadLetterQueue = ""
				}
			})
			failed := x.failed(f, 30*time.Second, e)
			var dead []string
			for _, m := range x.srv.Messages(x.dlq) {
				if dead = append(dead, m.Body); !strings.Contains(m.Attributes[sqsonce.AttrRejectReason], errExpires.Error()) {
					x.Errorf("%s has the reason %q", m.Body, m.Attributes[sqsonce.AttrRejectReason])
				}
			}
			lines := x.log.count("SQS deletes the message soon")
			if got := strings.Join(dead, " "); got != tt.dead || failed != tt.failed || lines != tt.lines || report.Sent != len(dead) {
				x.Errorf("dead-lettered %q, failed %q, %d lines, report %+v; want %q, %q, %d\n%s", got, failed, lines, report, tt.dead, tt.failed, tt.lines, &x.log)
			}
			time.Sleep(2 * time.Hour)
		})
	}
}

// TestStartsBeforeItsRetentionEnds: a message in the last part of its retention is started while time is left, whatever the run times say.
func TestStartsBeforeItsRetentionEnds(t *testing.T) {
	withQueue(t, true, nil, func(x *fixture) {
		x.set(x.url, "MessageRetentionPeriod", "600")
		var r runs
		f := x.wrap(r.wrap(func(ctx context.Context, m *sqsonce.Message) error {
			d := 20 * time.Second
			if m.Group == "a" {
				d = 10 * time.Second
			}
			return takes(d)(ctx, m)
		}))
		x.send("b1", "c1", "d1", "e1", "f1", "g1", "h1", "i1")
		e := x.receive()
		x.deleteOthers(e, x.failed(f, 30*time.Second, e))
		x.send("a1", "a2")
		time.Sleep(4 * time.Minute)
		if got := x.failed(f, 30*time.Second, x.receive()); got != "" || r.count() != 10 || x.dead() != "" {
			x.Errorf("failed %q, dead-lettered %q, %d ran, want 10", got, x.dead(), r.count())
		}
	})
}
