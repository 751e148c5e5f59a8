package dedup_test

import (
	"context"
	"errors"
	"testing"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/host"
)

// A panic of the store is an error with an unknown outcome: nothing that must follow the call is skipped.
func TestStoreThatPanics(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"acquire", "renew", "complete", "release"} {
		must.Run(t, op, func(t *testing.T) {
			f := newFaults()
			panics := true
			f.before = func(_ context.Context, called string, _ int) error {
				if called == op && panics {
					panic("the store is broken")
				}
				return nil
			}
			o := newOnce(t, f)
			handler := o.Handler(func(ctx context.Context, _ *sqsonce.Message) error {
				if op == "renew" && panics {
					<-ctx.Done()
				}
				if op == "release" && panics {
					return errors.New("failed")
				}
				return nil
			})
			_ = handler(t.Context(), message("1")) // whatever it returns, it returns
			panics = false
			if err := handler(t.Context(), message("2")); err != nil {
				t.Errorf("the next event: got %v, want nil", err)
			}
			if o.Stats().StoreErrors == 0 {
				t.Error("the panic is not counted as an error of the store")
			}
		})
	}
}

// A store that answers without a verdict, or with an error in place of one, is misconfigured, and what it may have stored is
// released. No handler runs because of it, whatever the policy is.
func TestStoreWithoutAVerdict(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(dedup.Grant, error) (dedup.Grant, error){
		"none":    func(g dedup.Grant, _ error) (dedup.Grant, error) { return dedup.Grant{Lease: g.Lease}, nil },
		"unknown": func(g dedup.Grant, _ error) (dedup.Grant, error) { g.Verdict = 99; return g, nil },
		"crashed, of a claim that takes over": func(dedup.Grant, error) (dedup.Grant, error) {
			return dedup.Grant{Verdict: dedup.VerdictCrashed}, nil
		},
		"an error of a lost lease": func(dedup.Grant, error) (dedup.Grant, error) {
			return dedup.Grant{}, sqsonce.Unavailable(sqsonce.ErrLeaseLost)
		},
		"an error in progress": func(dedup.Grant, error) (dedup.Grant, error) {
			return dedup.Grant{}, sqsonce.Unavailable(&dedup.InProgressError{})
		},
	} {
		must.Run(t, name, func(t *testing.T) {
			f := newFaults()
			f.answer = answer
			var e effects
			o := newOnce(t, f, func(o *dedup.Options) { o.OnStoreDown = dedup.OnStoreDownRunAnyway })
			err := o.Handler(e.handler)(t.Context(), message("1"))
			if !errors.Is(err, sqsonce.ErrMisconfigured) || !errors.Is(err, dedup.ErrOutcomeUnknown) || e.got() != 0 {
				t.Errorf("got error %v and %d runs, want ErrMisconfigured with ErrOutcomeUnknown and none", err, e.got())
			}
			if kind := sqsonce.OutcomeOf(err).Kind; kind != sqsonce.OutcomeUnavailable {
				t.Errorf("got outcome %s, want unavailable", kind)
			}
			if f.log() != "[acquire release]" || o.Stats().StoreErrors != 1 {
				t.Errorf("calls: got %s and %d errors of the store, want an acquire, a release and 1", f.log(), o.Stats().StoreErrors)
			}
		})
	}
}

// A verdict beside an error is none: nothing is remembered of it.
func TestVerdictWithAnError(t *testing.T) {
	withFaults(t, func(t *testing.T, f *faults) {
		f.answer = func(dedup.Grant, error) (dedup.Grant, error) {
			return dedup.Grant{Verdict: dedup.VerdictCompleted}, errStore
		}
		var e effects
		handler := newOnce(t, f).Handler(e.handler)
		for range 2 {
			if err := handler(t.Context(), message("1")); !errors.Is(err, errStore) || e.got() != 0 {
				t.Errorf("got error %v and %d runs, want the store's error and none", err, e.got())
			}
		}
	})
}

// An acquire's context may end because another lease was lost. The store says so, and has not answered by that.
func TestAcquireEndsWithALostLease(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	f := newFaults()
	f.before = func(ctx context.Context, _ string, _ int) error {
		cancel(sqsonce.ErrLeaseLost)
		return context.Cause(ctx)
	}
	err := newOnce(t, f).Handler(hang(0))(ctx, message("1"))
	if !errors.Is(err, sqsonce.ErrLeaseLost) || errors.Is(err, sqsonce.ErrMisconfigured) {
		t.Errorf("got error %v, want ErrLeaseLost and not ErrMisconfigured", err)
	}
}

// Options.Key and Options.PayloadHash are the user's. A panic fails the delivery before anything is written.
func TestKeyAndValidateThatPanic(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]func(*dedup.Options){
		"Key":      func(o *dedup.Options) { o.Key = func(*sqsonce.Message) (string, error) { panic("boom") } },
		"Validate": func(o *dedup.Options) { o.PayloadHash = func(*sqsonce.Message) string { panic("boom") } },
	} {
		f := newFaults()
		var e effects
		handler := newOnce(t, f, opt).Handler(e.handler)
		host.Run(func() error { return handler(t.Context(), message("1")) }, func(err error) {
			if _, ok := errors.AsType[*sqsonce.PanicError](err); !ok {
				t.Errorf("%s: got %v, want a PanicError", name, err)
			}
		})
		if e.got() != 0 || f.log() != "[]" {
			t.Errorf("%s: %d runs and calls %s, want none", name, e.got(), f.log())
		}
	}
}
