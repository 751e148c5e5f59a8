package dedup_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/internal/inboxkit"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/settle"
)

func exits(context.Context, *sqsonce.Message) error { runtime.Goexit(); return nil }

// outlives reports whether the host's goroutine outlives its call of h.
func outlives(t *testing.T, h sqsonce.Handler) (returned bool) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = h(t.Context(), message("1"))
		returned = true
	}()
	<-ended
	return returned
}

// What is written of an error is the user's to choose; the delivery's error stays what it is.
func TestErrorText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		declined := errors.New("card 4929-1357 declined")
		f := newFaults()
		o := newOnce(t, f, func(o *dedup.Options) {
			o.ErrorText = func(err error) string { return fmt.Sprint("private: ", errors.Is(err, declined)) }
		})
		for _, want := range []error{declined, sqsonce.Skip("card 4929-1357")} {
			if err := o.Handler(func(context.Context, *sqsonce.Message) error { return want })(t.Context(), message("1")); err != want {
				t.Errorf("got error %v, want the handler's own", err)
			}
			if r := must.Get(f.Store.(dedup.Inspector).Inspect(t.Context(), recordKey("1")))(t); r.LastError != fmt.Sprint("private: ", want == declined) {
				t.Errorf("record: %+v", r)
			}
		}
	})
}

// The record of a rejected message is released when the host has the dead-letter queue's answer. Before that another
// delivery could start while the message is only on its way there.
func TestRejectReleasesWhenSettled(t *testing.T) {
	t.Parallel()
	for _, deadLettered := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			f := newFaults()
			ctx, settle := settle.New(t.Context())
			ctx, cancel := context.WithCancel(ctx)
			err := newOnce(t, f).Handler(func(context.Context, *sqsonce.Message) error {
				return sqsonce.Reject(errors.New("bad order"))
			})(ctx, message("1"))
			if !sqsonce.OutcomeOf(err).Reject {
				t.Fatalf("got error %v, want a Reject", err)
			}
			if _, err := other(t, f.Store, recordKey("1")); !inProgress(err) || f.seen("renew") > 0 { // a live lease needs no proof
				t.Fatalf("before the dead-letter queue has answered: got error %v, want in progress", err)
			}
			cancel() // the host is done with the handler
			settle(deadLettered)
			l, err := other(t, f.Store, recordKey("1"))
			if err != nil || l.LastError != "sqsonce: rejected: bad order" {
				t.Errorf("after it: got %+v, %v, want a released record with the reason", l, err)
			}
		})
	}
}

// A postponed message has not failed: its record is free for the next delivery, and has no error.
func TestPostponedRecord(t *testing.T) {
	t.Parallel()
	f := newFaults()
	h := newOnce(t, f).Handler(func(context.Context, *sqsonce.Message) error {
		return sqsonce.Postpone(time.Minute, errors.New("not due"))
	})
	if err := h(t.Context(), message("1")); sqsonce.OutcomeOf(err).Kind != sqsonce.OutcomePostponed {
		t.Errorf("got error %v, want the handler's Postpone", err)
	}
	if l, err := other(t, f.Store, recordKey("1")); err != nil || l.Takeover || l.LastError != "" {
		t.Errorf("next acquire: got %+v, %v, want a released record without an error", l, err)
	}
}

// When the host cancels the handler, the record is still released.
func TestReleaseHasItsOwnContext(t *testing.T) {
	withFaults(t, func(t *testing.T, f *faults) {
		ctx, cancel := context.WithCancelCause(t.Context())
		err := newOnce(t, f).Handler(func(ctx context.Context, _ *sqsonce.Message) error {
			cancel(sqsonce.ErrShutdown)
			<-ctx.Done()
			return context.Cause(ctx)
		})(ctx, message("1"))
		if !errors.Is(err, sqsonce.ErrShutdown) {
			t.Errorf("got error %v, want ErrShutdown", err)
		}
		if l, err := other(t, f.Store, recordKey("1")); err != nil || l.Takeover {
			t.Errorf("next acquire: got %+v, %v, want a released record", l, err)
		}
	})
}

// The lease is live when the handler starts: the answer to an acquire can come when the lease that it grants is over.
func TestLeaseIsLiveAtTheStart(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		killIn time.Duration
		delay  time.Duration
		calls  string
	}{
		{"answer after the end", 0, 31 * time.Second, "[acquire renew complete]"},
		{"answer at the end", 0, 30 * time.Second, "[acquire renew complete]"},
		{"answer before the end", 0, 29 * time.Second, "[acquire complete]"},
		{"frozen until after the lease's end", 10 * time.Second, 20 * time.Second, "[acquire renew complete]"},
		{"resumed after KillAt, before the lease's end", 10 * time.Second, 11 * time.Second, "[acquire renew complete]"},
	} {
		must.Run(t, tt.name, func(t *testing.T) {
			f := newFaults()
			f.after = slow("acquire", tt.delay)
			m := message("1")
			if tt.killIn > 0 {
				m.KillAt = time.Now().Add(tt.killIn)
			}
			err := newOnce(t, f).Handler(func(ctx context.Context, _ *sqsonce.Message) error {
				if l, _ := inboxkit.LeaseFrom(ctx); time.Until(l.Until) <= 0 {
					t.Errorf("started under a lease that ended %s ago", -time.Until(l.Until))
				}
				return nil
			})(t.Context(), m)
			if err != nil || f.log() != tt.calls {
				t.Errorf("got error %v after calls %s, want nil after %s", err, f.log(), tt.calls)
			}
		})
	}
}

func TestTakenOverBeforeTheStart(t *testing.T) {
	withFaults(t, func(t *testing.T, f *faults) {
		f.after = func(_ context.Context, op string, _ int) error {
			if op == "acquire" {
				time.Sleep(31 * time.Second)
				if _, err := other(t, f.Store, recordKey("1")); err != nil {
					t.Errorf("takeover: %v", err)
				}
			}
			return nil
		}
		var e effects
		o := newOnce(t, f)
		err := o.Handler(e.handler)(t.Context(), message("1"))
		if !errors.Is(err, sqsonce.ErrLeaseLost) || e.got() != 0 {
			t.Errorf("got error %v and %d runs, want ErrLeaseLost and none", err, e.got())
		}
		if s := o.Stats(); s.LeasesLost != 1 || s.First != 0 {
			t.Errorf("stats: got %+v, want LeasesLost 1 and First 0", s)
		}
	})
}

// A store that always answers after the lease's end starts no handler, and is not asked for ever.
func TestStoreSlowerThanTheLease(t *testing.T) {
	withFaults(t, func(t *testing.T, f *faults) {
		f.after = func(context.Context, string, int) error { time.Sleep(40 * time.Second); return nil }
		var e effects
		err := newOnce(t, f).Handler(e.handler)(t.Context(), message("1"))
		if !errors.Is(err, sqsonce.ErrUnavailable) || e.got() != 0 {
			t.Errorf("got error %v and %d runs, want ErrUnavailable and none", err, e.got())
		}
		if l, err := other(t, f.Store, recordKey("1")); err != nil || l.Takeover {
			t.Errorf("next acquire: got %+v, %v, want a released record", l, err)
		}
	})
}

// TestSkip: a skipped event is completed with the reason, and its copies are duplicates. Where the complete fails the event is not
// skipped yet: the failure decides. For Do it is an error like any other.
func TestSkip(t *testing.T) {
	withFaults(t, func(t *testing.T, f *faults) {
		o := newOnce(t, f, custom("k"), func(o *dedup.Options) { o.CacheSize = -1 })
		runs := 0
		h := o.Handler(func(context.Context, *sqsonce.Message) error { runs++; return sqsonce.Skip("order is void") })

		f.fail("complete", sqsonce.ErrLeaseLost)
		if err := h(t.Context(), message("1")); sqsonce.OutcomeOf(err).Kind != sqsonce.OutcomeLeaseLost {
			t.Errorf("complete refused: got %v, want a lost lease", err)
		}
		f.fail("complete", nil)
		records := f.Store.(*memstore.Store)
		_ = records.Delete(t.Context(), "billing#k")
		if err := h(t.Context(), message("1")); sqsonce.OutcomeOf(err).Kind != sqsonce.OutcomeSkipped {
			t.Errorf("got %v, want skipped", err)
		}
		r, err := records.Inspect(t.Context(), "billing#k")
		if err != nil || !r.Completed || r.LastError != "sqsonce: skipped: order is void" {
			t.Errorf("record: got %+v, %v, want it completed with the reason", r, err)
		}
		if err := h(t.Context(), message("2")); err != nil || runs != 2 {
			t.Errorf("a copy: got %v after %d runs, want nil after 2", err, runs)
		}
		skip := sqsonce.Skip("order is void")
		for range 2 { // it is released, and runs again
			if _, err := dedup.Do(t.Context(), o, "other", func(context.Context) (int, error) { return 0, skip }); !errors.Is(err, skip) {
				t.Errorf("Do: got %v, want its function's error", err)
			}
		}
	})
}
