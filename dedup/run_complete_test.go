package dedup_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

func completed(t testing.TB, s dedup.Store, id string) bool {
	t.Helper()
	_, err := other(t, s, recordKey(id))
	_, ok := errors.AsType[*dedup.CompletedError](err)
	return ok
}

// The receipt handle is lost, or the host stops, and the handler succeeds: the record is completed.
func TestCompleteHasItsOwnContext(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{sqsonce.ErrLeaseLost, sqsonce.ErrShutdown, context.DeadlineExceeded} {
		synctest.Test(t, func(t *testing.T) {
			f := newFaults()
			ctx, cancel := context.WithCancelCause(t.Context())
			err := newOnce(t, f).Handler(func(context.Context, *sqsonce.Message) error { cancel(cause); return nil })(ctx, message("1"))
			if err != nil || !completed(t, f.Store, "1") {
				t.Errorf("cancelled with %v: got error %v, completed %t, want nil and true", cause, err, completed(t, f.Store, "1"))
			}
		})
	}
}

func TestCompleteIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]func(*faults){
		"nothing written": func(f *faults) {
			f.before = func(_ context.Context, op string, n int) error {
				if op == "complete" && n <= 4 {
					return errStore
				}
				return nil
			}
		},
		"answer lost": func(f *faults) {
			f.after = func(_ context.Context, op string, n int) error {
				if op == "complete" && n <= 4 {
					return errStore
				}
				return nil
			}
		},
		"hangs": func(f *faults) {
			f.before = func(ctx context.Context, op string, n int) error {
				if op == "complete" && n == 1 {
					<-ctx.Done()
					return ctx.Err()
				}
				return nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFaults()
				broken(f)
				var e effects
				o := newOnce(t, f)
				start := time.Now()
				if err := o.Handler(e.handler)(t.Context(), message("1")); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took > 6*time.Second {
					t.Errorf("took %s, want the call timeout or a few short pauses", took)
				}
				if !completed(t, f.Store, "1") || e.got() != 1 || f.seen("release") != 0 {
					t.Errorf("completed %t, %d runs, calls %s", completed(t, f.Store, "1"), e.got(), f.log())
				}
			})
		})
	}
}

// The event has had its effect. Whatever the store answers, the record is not released: the next delivery would repeat the
// effect at once.
func TestNoReleaseAfterSuccess(t *testing.T) {
	t.Parallel()
	for _, policy := range []dedup.CompletePolicy{dedup.Redeliver, dedup.Acknowledge} {
		synctest.Test(t, func(t *testing.T) {
			f := newFaults()
			f.fail("complete", errStore)
			o := newOnce(t, f, func(o *dedup.Options) { o.OnCompleteFailed = policy })
			start := time.Now()
			err := o.Handler(hang(time.Second))(t.Context(), message("1"))
			if policy == dedup.Acknowledge && err != nil {
				t.Errorf("Acknowledge: got error %v, want nil", err)
			}
			if policy == dedup.Redeliver && !errors.Is(err, errStore) {
				t.Errorf("Redeliver: got error %v, want the store's", err)
			}
			if took := time.Since(start); took < 27*time.Second || took > 30*time.Second {
				t.Errorf("tried for %s, want until the lease ends, 30 s", took)
			}
			if f.seen("release") != 0 {
				t.Errorf("calls: got %s, want no release", f.log())
			}
			if s := o.Stats(); s.CompleteFailed != 1 {
				t.Errorf("CompleteFailed: got %d, want 1", s.CompleteFailed)
			}
		})
	}
}

// A complete that can never succeed is not retried.
func TestUnusableCompleteIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFaults()
		f.fail("complete", &sqsonce.FieldError{Package: "store", Field: "table", Problem: "has another key"})
		err := newOnce(t, f).Handler(hang(0))(t.Context(), message("1"))
		if _, ok := errors.AsType[*sqsonce.FieldError](err); !ok || f.seen("complete") != 1 {
			t.Errorf("got error %v after %d calls, want *sqsonce.FieldError after 1", err, f.seen("complete"))
		}
	})
}

func TestCompleteRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFaults()
		f.fail("renew", errStore)
		o := newOnce(t, f, func(o *dedup.Options) { o.OnCompleteFailed = dedup.Acknowledge })
		err := o.Handler(func(context.Context, *sqsonce.Message) error {
			time.Sleep(40 * time.Second)
			if _, err := other(t, f.Store, recordKey("1")); err != nil {
				t.Errorf("takeover: %v", err)
			}
			return nil
		})(t.Context(), message("1"))
		want := "sqsonce: lease lost: record taken over by another owner, or deleted (consumer billing, key billing#orders|1)"
		if !errors.Is(err, sqsonce.ErrLeaseLost) || err.Error() != want {
			t.Errorf("got error %v, want %q under every policy", err, want)
		}
		if f.seen("complete") != 1 || f.seen("release") != 0 {
			t.Errorf("calls: got %s, want one complete and no release", f.log())
		}
		if s := o.Stats(); s.LeasesLost != 1 || s.CompleteFailed != 0 {
			t.Errorf("stats: got %+v, want LeasesLost 1 and CompleteFailed 0", s)
		}
	})
}

// The lease is over and nobody took over: the owner may still complete.
func TestCompleteAfterTheLeaseWithoutTakeover(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFaults()
		f.fail("renew", errStore)
		err := newOnce(t, f).Handler(hang(time.Hour/2))(t.Context(), message("1"))
		if err != nil || !completed(t, f.Store, "1") {
			t.Errorf("got error %v, completed %t, want nil and true", err, completed(t, f.Store, "1"))
		}
	})
}
