package dedup_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// What an acquire without an answer has stored is released, so that the event does not look like a crash: also where the store
// does not answer the first releases either. After any other failure nothing is stored, and nothing is released.
func TestUnknownAcquireIsReleased(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer error
		stored bool
		lost   int // releases
		calls  string
	}{
		"stored":     {dedup.ErrOutcomeUnknown, true, 0, "[acquire release]"},
		"no answer":  {dedup.ErrOutcomeUnknown, true, 2, "[acquire release release release]"},
		"not stored": {dedup.ErrOutcomeUnknown, false, 0, "[acquire release]"},
		"withdrawn":  {errStore, false, 0, "[acquire]"},
	} {
		must.Run(t, name, func(t *testing.T) {
			f := newFaults()
			lose := func(_ context.Context, op string, n int) error {
				if op == "acquire" && n == 1 || op == "release" && n <= tt.lost {
					return sqsonce.Unavailable(tt.answer)
				}
				return nil
			}
			if f.before = lose; tt.stored {
				f.before, f.after = nil, lose
			}
			var e effects
			o := newOnce(t, f, func(o *dedup.Options) { o.OnCrash = dedup.OnCrashBlock })
			err := o.Handler(e.handler)(context.Background(), message("1"))
			time.Sleep(time.Duration(tt.lost) * 2 * time.Second)
			if sqsonce.OutcomeOf(err).Kind != sqsonce.OutcomeUnavailable || f.log() != tt.calls {
				t.Errorf("got error %v, calls %s; want ErrUnavailable, %s", err, f.log(), tt.calls)
			}
			if s := o.Stats(); s.StoreErrors != int64(1+tt.lost) || s.LeasesLost != 0 {
				t.Errorf("stats %+v: want %d store errors", s, 1+tt.lost)
			}
			if err := o.Handler(e.handler)(context.Background(), message("1")); err != nil || e.got() != 1 {
				t.Errorf("next delivery: got error %v and %d runs, want nil and 1", err, e.got())
			}
		})
	}
}

// A store that does not answer the release either delays the delivery by a moment only, also where the host has cancelled it.
func TestUnknownAcquireIsReleasedInTheBackground(t *testing.T) {
	withFaults(t, func(t *testing.T, f *faults) {
		ctx, cancel := context.WithCancel(context.Background())
		f.before = slow("release", 3*time.Second)
		f.after = func(_ context.Context, op string, _ int) error {
			if op == "acquire" {
				cancel()
				return dedup.ErrOutcomeUnknown
			}
			return nil
		}
		start := time.Now()
		err := newOnce(t, f).Handler(hang(0))(ctx, message("1"))
		if took := time.Since(start); err == nil || took != 200*time.Millisecond {
			t.Errorf("got error %v after %s, want an error after 200 ms", err, took)
		}
		time.Sleep(3 * time.Second)
		if l, err := other(t, f.Store, recordKey("1")); err != nil || l.Takeover {
			t.Errorf("next acquire: got %+v, %v, want a released record", l, err)
		}
	})
}

// A handler that fails without a record leaves none that looks like a crash.
func TestRunAnywayReleasesAfterAFailure(t *testing.T) {
	withFaults(t, func(t *testing.T, f *faults) {
		f.after = failing("acquire", dedup.ErrOutcomeUnknown)
		why := errors.New("why")
		o := newOnce(t, f, func(o *dedup.Options) { o.OnStoreDown = dedup.OnStoreDownRunAnyway })
		err := o.Handler(func(context.Context, *sqsonce.Message) error {
			if f.log() != "[acquire]" {
				t.Errorf("calls before the handler %s, want [acquire]", f.log())
			}
			return why
		})(context.Background(), message("1"))
		if !errors.Is(err, why) || f.log() != "[acquire release]" {
			t.Errorf("got error %v, calls %s; want the handler's, [acquire release]", err, f.log())
		}
	})
}

// A store that never answers leaves the handler of OnStoreDownRunAnyway two thirds of an invocation. Under OnStoreDownFailClosed the acquire has
// all the time that it may need, and then the store is unavailable: the delivery must not wait for it with a slot.
func TestPatienceWithAnAcquire(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		policy       dedup.StorePolicy
		killAt, want time.Duration
	}{
		{dedup.OnStoreDownRunAnyway, 0, 6 * time.Second},
		{dedup.OnStoreDownRunAnyway, time.Minute, 6 * time.Second},
		{dedup.OnStoreDownRunAnyway, 9 * time.Second, 3 * time.Second},
		{dedup.OnStoreDownFailClosed, 9 * time.Second, 6 * time.Second},
		{dedup.OnStoreDownFailClosed, 0, 6 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFaults()
			f.before = hanging("acquire")
			start := time.Now()
			m := message("1")
			if tt.killAt > 0 {
				m.KillAt = start.Add(tt.killAt)
			}
			err := newOnce(t, f, func(o *dedup.Options) { o.OnStoreDown = tt.policy }).Handler(hang(0))(context.Background(), m)
			if took := time.Since(start); errors.Is(err, sqsonce.ErrUnavailable) != (tt.policy == dedup.OnStoreDownFailClosed) || took != tt.want {
				t.Errorf("policy %d, process ends in %s: got error %v after %s, want %s", tt.policy, tt.killAt, err, took, tt.want)
			}
		})
	}
}

// The error of an acquire is the message's failure only where the message or its record causes it. A store that knows nothing
// of ErrUnavailable, and a timeout before the answer, cost no attempt.
func TestUnknownAnswerIsNoAttempt(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer error
		want   sqsonce.OutcomeKind
	}{
		"invented code":  {errors.New("SQLSTATE 55000"), sqsonce.OutcomeUnavailable},
		"refused value":  {&sqsonce.OptionError{Package: "store", Field: "key", Problem: "is too long"}, sqsonce.OutcomeFailed},
		"foreign record": {fmt.Errorf("%w: status is %q", dedup.ErrRecord, "new"), sqsonce.OutcomeFailed},
		"timeout":        {nil, sqsonce.OutcomeUnavailable},
		"panic":          {&sqsonce.PanicError{Value: "bug"}, sqsonce.OutcomeUnavailable},
	} {
		must.Run(t, name, func(t *testing.T) {
			f := newFaults()
			f.before = func(ctx context.Context, _ string, _ int) error {
				if tt.answer == nil {
					<-ctx.Done()
					return ctx.Err()
				}
				return tt.answer
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second) // less than CallTimeout
			defer cancel()
			var e effects
			err := newOnce(t, f).Handler(e.handler)(ctx, message("1"))
			if got := sqsonce.OutcomeOf(err).Kind; got != tt.want || !errors.Is(err, tt.answer) && tt.answer != nil || e.got() != 0 {
				t.Errorf("got outcome %s of error %v and %d runs, want %s", got, err, e.got(), tt.want)
			}
		})
	}
}

// A timeout that ends while the acquire is granted is no attempt either: the handler did not run. A host that stops knows that
// by itself, and its stop is no outage.
func TestEndBeforeTheStartIsNoAttempt(t *testing.T) {
	t.Parallel()
	for cause, want := range map[error]sqsonce.OutcomeKind{
		context.DeadlineExceeded: sqsonce.OutcomeUnavailable,
		sqsonce.ErrShutdown:      sqsonce.OutcomeFailed,
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			f := newFaults()
			f.after = func(_ context.Context, op string, _ int) error {
				if op == "acquire" {
					cancel(cause)
				}
				return nil
			}
			var e effects
			err := newOnce(t, f).Handler(e.handler)(ctx, message("1"))
			if got := sqsonce.OutcomeOf(err).Kind; got != want || !errors.Is(err, cause) || e.got() != 0 {
				t.Errorf("%v: got outcome %s of error %v and %d runs, want %s", cause, got, err, e.got(), want)
			}
			if l, err := other(t, f.Store, recordKey("1")); err != nil || l.Takeover {
				t.Errorf("%v: next acquire: got %+v, %v, want a released record", cause, l, err)
			}
		})
	}
}
