package dedup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// A release is tried while the lease lasts and the host has the message. If the lease ends without an answer, another owner
// may run, and the delivery is no try of its message.
func TestReleaseIsTriedAgain(t *testing.T) {
	t.Parallel()
	why := errors.New("why")
	for name, tt := range map[string]struct {
		away, has   time.Duration
		want        time.Duration // until the host gets the outcome
		unavailable bool
		failure     error
		hangs       bool
	}{
		"back at once":                  {0, time.Hour, 0, false, why, false},
		"back in the lease":             {20 * time.Second, time.Hour, 20 * time.Second, false, why, false},
		"away for longer":               {time.Hour, time.Hour, 30 * time.Second, true, why, false},
		"away, a lost lease":            {time.Hour, time.Hour, 30 * time.Second, true, sqsonce.ErrLeaseLost, false},
		"the host stops":                {time.Hour, 12 * time.Second, 12 * time.Second, false, why, false},
		"the host stops while it hangs": {time.Hour, 12 * time.Second, 12 * time.Second, false, why, true},
	} {
		must.Run(t, name, func(t *testing.T) {
			f := newFaults()
			start := time.Now()
			f.before = func(ctx context.Context, op string, _ int) error {
				if op == "release" && time.Since(start) < tt.away {
					if tt.hangs {
						<-ctx.Done()
					}
					return errStore
				}
				return nil
			}
			ctx, _ := hosted(tt.has)
			var lines bytes.Buffer
			o := newOnce(t, f, func(o *dedup.Options) { o.Logger = slog.New(slog.NewTextHandler(&lines, nil)) })
			err := o.Handler(func(context.Context, *sqsonce.Message) error { return tt.failure })(ctx, message("1"))
			synctest.Wait() // for the log
			if got := strings.Count(lines.String(), "record not released"); (got == 1) != (tt.away == time.Hour) || got > 1 {
				t.Errorf("the log says %d times that the record is not released:\n%s", got, lines.String())
			}
			if took := time.Since(start); took < tt.want || took > tt.want+5*time.Second || tt.away > time.Minute && took != tt.want {
				t.Errorf("returned after %s, want %s", took, tt.want)
			}
			if tt.failure == why && !errors.Is(err, why) {
				t.Errorf("got error %v, want it to match the handler's own", err)
			}
			if outcome := sqsonce.OutcomeOf(err).Kind; tt.unavailable != (outcome == sqsonce.OutcomeUnavailable) || !tt.unavailable && err != why {
				t.Errorf("got error %v, outcome %d; want ErrUnavailable: %t, else the handler's own", err, outcome, tt.unavailable)
			}
			if time.Sleep(30*time.Second - time.Since(start)); tt.away == time.Hour { // it delays the event, and nothing else
				if l, err := other(t, f.Store, recordKey("1")); err != nil || !l.Takeover {
					t.Errorf("after the lease: got %+v, %v, want a takeover", l, err)
				}
			}
			if n := f.seen("release"); n > 35 || f.seen("renew") > 0 {
				t.Errorf("%d releases and %d renewals, want about one call a second", n, f.seen("renew"))
			}
		})
	}
}

// A handler rejects its message under a lease that ended before a renewal was answered. The message goes to the
// dead-letter queue only if the store says that no other owner took over.
func TestRejectUnderAnUnprovenLease(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer error // to the renewal after the handler
		want   sqsonce.OutcomeKind
	}{
		"renewed":    {nil, sqsonce.OutcomeRejected},
		"taken over": {sqsonce.ErrLeaseLost, sqsonce.OutcomeLeaseLost},
		"unanswered": {errStore, sqsonce.OutcomeUnavailable},
	} {
		must.Run(t, name, func(t *testing.T) {
			f := newFaults()
			var returned atomic.Bool
			f.before = func(_ context.Context, op string, _ int) error {
				switch {
				case op != "renew":
					return nil
				case returned.Load():
					return tt.answer
				}
				return errStore
			}
			ctx, settle := settle.New(context.Background())
			err := newOnce(t, f).Handler(func(ctx context.Context, _ *sqsonce.Message) error {
				<-ctx.Done()
				returned.Store(true)
				return sqsonce.Reject(errors.New("bad order"))
			})(ctx, message("1"))
			if got := sqsonce.OutcomeOf(err).Kind; got != tt.want {
				t.Errorf("got error %v, outcome %d, want %d", err, got, tt.want)
			}
			before := f.seen("release")
			if settle(true) != nil || f.seen("release")-before != 1 && tt.want == sqsonce.OutcomeRejected {
				t.Errorf("%d releases when settled, want one after a Reject that is obeyed", f.seen("release")-before)
			}
			if tt.want != sqsonce.OutcomeRejected && f.seen("release") > 0 {
				t.Error("released a record that may have another owner")
			}
		})
	}
}

// A holder whose record was taken over decides nothing about its event, whatever its handler returned: not even that it
// failed, when it learns of the loss only by its release.
func TestReleaseThatIsRefused(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{"error": errors.New("why"), "cancelled": context.Canceled, "asks for a delay": sqsonce.RetryAfter(time.Hour, errors.New("why"))} {
		must.Run(t, name, func(t *testing.T) {
			f := newFaults()
			f.fail("renew", errStore)
			o := newOnce(t, f)
			err := o.Handler(func(context.Context, *sqsonce.Message) error {
				time.Sleep(31 * time.Second) // its lease is over, and it is cut off from the store
				l, err := other(t, f.Store, recordKey("1"))
				if err != nil {
					t.Error(err)
				}
				if err := f.Store.Complete(context.Background(), l, dedup.Result{}); err != nil {
					t.Error(err)
				}
				return failure
			})(context.Background(), message("1"))
			if got := sqsonce.OutcomeOf(err).Kind; got != sqsonce.OutcomeLeaseLost || errors.Is(err, failure) {
				t.Errorf("got error %v, outcome %d, want ErrLeaseLost and the handler's error as text only", err, got)
			}
			if f.seen("release") != 1 || o.Stats().LeasesLost != 1 || o.Stats().StoreErrors != int64(f.seen("renew")) {
				t.Errorf("calls %s, stats %+v: want one release, one lost lease, and no error of the store but the renewals", f.log(), o.Stats())
			}
		})
	}
}

// A handler's error with the lost lease of another record is a failure, which keeps its delay and a panic's stack. Protocol, 7.12a.
func TestLostLeaseOfAnotherRecord(t *testing.T) {
	lost := fmt.Errorf("ledger: %w", sqsonce.ErrLeaseLost)
	for name, tt := range map[string]struct {
		handler sqsonce.Handler
		after   time.Duration
		panics  bool
	}{
		"plain":    {handler: func(context.Context, *sqsonce.Message) error { return lost }},
		"rejected": {handler: func(context.Context, *sqsonce.Message) error { return sqsonce.Reject(lost) }},
		"delayed": {handler: func(context.Context, *sqsonce.Message) error {
			return fmt.Errorf("later: %w", sqsonce.RetryAfter(time.Hour, lost))
		}, after: time.Hour},
		"postponed": {handler: func(context.Context, *sqsonce.Message) error { return sqsonce.Postpone(time.Hour, lost) }, after: time.Hour},
		"panic":     {handler: func(context.Context, *sqsonce.Message) error { panic(lost) }, panics: true},
	} {
		t.Run(name, func(t *testing.T) {
			store := memstore.New()
			once := must.Get(dedup.New(store, "billing"))(t)
			ctx, settled := settle.New(t.Context())
			err := once.Handler(tt.handler)(ctx, message("e"))
			p, panicked := errors.AsType[*sqsonce.PanicError](err)
			if o := sqsonce.OutcomeOf(err); o.Kind != sqsonce.OutcomeFailed || o.After != tt.after || panicked != tt.panics || panicked && len(p.Stack) == 0 ||
				!strings.Contains(fmt.Sprint(err), lost.Error()) {
				t.Errorf("got %+v, %v", o, err)
			}
			if r := must.Get(store.Inspect(t.Context(), recordKey("e")))(t); r.State(time.Now()) != dedup.StateReleased {
				t.Errorf("record %+v is not released", r)
			}
			_ = settled(false)
		})
	}
}
