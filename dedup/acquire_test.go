package dedup_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// crash leaves the record of message(id) as a crashed owner does: its lease is over, and it was not released.
func crash(t testing.TB, f *faults, id string) {
	t.Helper()
	if _, err := other(t, f.Store, recordKey(id)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute)
}

func TestOnCrash(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		policy dedup.CrashPolicy
		runs   int
		reject bool
	}{
		{"Rerun", dedup.Rerun, 1, false},
		{"Block", dedup.Block, 0, false},
		{"DeadLetter", dedup.DeadLetter, 0, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFaults()
				crash(t, f, "1")
				var e effects
				o := newOnce(t, f, func(o *dedup.Options) { o.OnCrash = tt.policy })
				for range 3 {
					err := o.Handler(e.handler)(t.Context(), message("1"))
					if tt.policy == dedup.Rerun {
						if err != nil {
							t.Fatal(err)
						}
						continue
					}
					if !errors.Is(err, dedup.ErrCrashed) {
						t.Errorf("got error %v, want ErrCrashed", err)
					}
					if inProgress(err) {
						t.Errorf("error %v matches ErrInProgress: a host would wait for an owner that crashed", err)
					}
					if _, reject := host.Asked(err); (reject != nil) != tt.reject {
						t.Errorf("got error %v, want a Reject: %t", err, tt.reject)
					}
					time.Sleep(10 * time.Minute)
				}
				if e.got() != tt.runs {
					t.Errorf("handler ran %d times, want %d", e.got(), tt.runs)
				}
			})
		})
	}
}

// A live lease is in progress under every policy, and a released record is not a crash.
func TestOnCrashAppliesToCrashesOnly(t *testing.T) {
	t.Parallel()
	for _, policy := range []dedup.CrashPolicy{dedup.Rerun, dedup.Block, dedup.DeadLetter} {
		synctest.Test(t, func(t *testing.T) {
			f := newFaults()
			o := newOnce(t, f, func(o *dedup.Options) { o.OnCrash = policy })
			l, err := other(t, f.Store, recordKey("1"))
			if err != nil {
				t.Fatal(err)
			}
			var e effects
			err = o.Handler(e.handler)(t.Context(), message("1"))
			retry, _ := host.Asked(err)
			if !inProgress(err) || retry == nil || retry.After != time.Minute+time.Second {
				t.Errorf("policy %d: got error %v, want in progress, back a second after the owner's minute", policy, err)
			}
			if in, ok := errors.AsType[*dedup.InProgressError](err); !ok || !in.Until.Equal(l.Until) {
				t.Errorf("policy %d: got error %v, want *InProgressError until %s", policy, err, l.Until)
			}
			if err := f.Store.Release(t.Context(), l, errors.New("failed")); err != nil {
				t.Fatal(err)
			}
			if err := o.Handler(e.handler)(t.Context(), message("1")); err != nil || e.got() != 1 {
				t.Errorf("policy %d: after the owner's release: got error %v and %d runs, want nil and 1", policy, err, e.got())
			}
		})
	}
}

// Policy DeadLetter: the event runs after a redrive, and not before the dead-letter queue has confirmed the message.
func TestDeadLetterReleasesWhenConfirmed(t *testing.T) {
	t.Parallel()
	for _, deadLettered := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			f := newFaults()
			crash(t, f, "1")
			var e effects
			h := newOnce(t, f, func(o *dedup.Options) { o.OnCrash = dedup.DeadLetter }).Handler(e.handler)
			ctx, settle := settle.New(t.Context())
			if err := h(ctx, message("1")); !errors.Is(err, dedup.ErrCrashed) {
				t.Fatalf("got error %v, want ErrCrashed", err)
			}
			settle(deadLettered)
			err := h(t.Context(), message("1"))
			if deadLettered && (err != nil || e.got() != 1) {
				t.Errorf("redrive: got error %v and %d runs, want nil and 1", err, e.got())
			}
			if !deadLettered && (!errors.Is(err, dedup.ErrCrashed) || e.got() != 0) {
				t.Errorf("not dead-lettered: got error %v and %d runs, want ErrCrashed and none", err, e.got())
			}
		})
	}
}

func TestOnStoreDown(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		policy dedup.StorePolicy
		runs   int
		calls  string
		errors int64
	}{{dedup.FailClosed, 0, "[acquire]", 1}, {dedup.RunAnyway, 1, "[acquire complete]", 2}} {
		synctest.Test(t, func(t *testing.T) {
			f := newFaults()
			f.before = func(context.Context, string, int) error { return errStore }
			var e effects
			o := newOnce(t, f, func(o *dedup.Options) { o.OnStoreDown = tt.policy })
			err := o.Handler(func(ctx context.Context, m *sqsonce.Message) error {
				if _, ok := dedup.FenceFrom(ctx); ok {
					t.Error("FenceFrom: got a fence without a record")
				}
				return e.handler(ctx, m)
			})(t.Context(), message("1"))
			if e.got() != tt.runs || (err == nil) != (tt.runs == 1) {
				t.Errorf("policy %d: got error %v and %d runs, want %d", tt.policy, err, e.got(), tt.runs)
			}
			if f.log() != tt.calls {
				t.Errorf("policy %d: calls %s, want %s", tt.policy, f.log(), tt.calls)
			}
			if s := o.Stats(); s.StoreErrors != tt.errors || s.First != 0 {
				t.Errorf("policy %d: stats %+v, want StoreErrors %d", tt.policy, s, tt.errors)
			}
		})
	}
}

// Under RunAnyway the acquire may have been granted, and only its answer lost: then the record is completed. Where another
// owner has it, it stays as it is.
func TestRunAnywayCompletesItsOwnRecord(t *testing.T) {
	t.Parallel()
	for _, owned := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			f := newFaults()
			f.after = func(_ context.Context, op string, _ int) error {
				if op == "acquire" {
					return errStore
				}
				return nil
			}
			if !owned {
				if _, err := other(t, f.Store, recordKey("1")); err != nil {
					t.Fatal(err)
				}
			}
			var e effects
			o := newOnce(t, f, func(o *dedup.Options) { o.OnStoreDown = dedup.RunAnyway })
			if err := o.Handler(e.handler)(t.Context(), message("1")); err != nil || e.got() != 1 {
				t.Errorf("got error %v and %d runs, want nil and 1", err, e.got())
			}
			if completed(t, f.Store, "1") != owned {
				t.Errorf("completed %t, want %t", !owned, owned)
			}
		})
	}
}

func TestRunAnywayIsNotForEveryError(t *testing.T) {
	t.Parallel()
	runAnyway := func(o *dedup.Options) { o.OnStoreDown = dedup.RunAnyway }
	synctest.Test(t, func(t *testing.T) {
		var e effects
		f := newFaults()
		f.before = func(context.Context, string, int) error {
			return &sqsonce.FieldError{Package: "store", Field: "table", Problem: "missing"}
		}
		if err := newOnce(t, f, runAnyway).Handler(e.handler)(t.Context(), message("1")); err == nil || e.got() != 0 {
			t.Errorf("unusable store: got error %v and %d runs, want an error and none", err, e.got())
		}
		f.before = func(context.Context, string, int) error { return fmt.Errorf("%w: no table", sqsonce.ErrMisconfigured) }
		if err := newOnce(t, f, runAnyway).Handler(e.handler)(t.Context(), message("1")); !errors.Is(err, sqsonce.ErrMisconfigured) || e.got() != 0 {
			t.Errorf("misconfigured store: got error %v and %d runs, want ErrMisconfigured and none", err, e.got())
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := newOnce(t, newFaults(), runAnyway).Handler(e.handler)(ctx, message("1")); err == nil || e.got() != 0 {
			t.Errorf("cancelled: got error %v and %d runs, want an error and none", err, e.got())
		}
	})
	synctest.Test(t, func(t *testing.T) {
		f := newFaults()
		f.before = func(context.Context, string, int) error { return errStore }
		err := newOnce(t, f, runAnyway).Handler(func(context.Context, *sqsonce.Message) error { panic("boom") })(t.Context(), message("1"))
		if p, ok := errors.AsType[*sqsonce.PanicError](err); !ok || p.Value != "boom" {
			t.Errorf("panic without a record: got error %v, want *PanicError", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		f := newFaults()
		f.before = func(context.Context, string, int) error { return errStore }
		if outlives(t, newOnce(t, f, runAnyway).Handler(exits)) {
			t.Error("Goexit without a record did not end the host's goroutine, as it does with one")
		}
	})
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for _, cacheSize := range []int{-1, 10} {
		synctest.Test(t, func(t *testing.T) {
			f := newFaults()
			var e effects
			h := newOnce(t, f, func(o *dedup.Options) {
				o.CacheSize = cacheSize
				o.Validate = func(m *sqsonce.Message) string { return m.Body }
			}).Handler(e.handler)
			for _, body := range []string{`{"amount":1}`, `{"amount":1}`} {
				m := message("1")
				m.Body = body
				if err := h(t.Context(), m); err != nil {
					t.Fatal(err)
				}
			}
			before := f.log()
			changed := message("1")
			changed.Body = `{"amount":1000}`
			err := h(t.Context(), changed)
			if _, reject := host.Asked(err); reject == nil || !errors.Is(err, dedup.ErrPayloadMismatch) || e.got() != 1 {
				t.Errorf("other payload: got error %v and %d runs, want a Reject of ErrPayloadMismatch and 1", err, e.got())
			}
			if after := f.log(); cacheSize > 0 && after != before {
				t.Errorf("calls: got %s, want no request", after)
			}
			if f.seen("complete") != 1 || f.seen("release") != 0 {
				t.Errorf("calls: got %s, want the record untouched", f.log())
			}
		})
	}
}

// A record that was completed without a hash, before Options.Validate was set, is not a mismatch.
func TestValidateAcceptsRecordsWithoutAHash(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFaults()
		var e effects
		if err := newOnce(t, f).Handler(e.handler)(t.Context(), message("1")); err != nil {
			t.Fatal(err)
		}
		validating := newOnce(t, f, func(o *dedup.Options) { o.Validate = func(m *sqsonce.Message) string { return m.Body } })
		if err := validating.Handler(e.handler)(t.Context(), message("1")); err != nil || e.got() != 1 {
			t.Errorf("got error %v and %d runs, want nil and 1", err, e.got())
		}
	})
}

func TestClaim(t *testing.T) {
	t.Parallel()
	m := message("1")
	m.ReceiveCount = 4
	owners := make(map[string]bool)
	for range 50 {
		c, _ := claimFor(t, m, func(o *dedup.Options) {
			o.Lease, o.Retention, o.OnCrash = 2e9, 3600e9, dedup.Block
			o.Validate = func(m *sqsonce.Message) string { return "hash of " + m.Body }
		})
		// 26 base32 characters carry 130 bits.
		if len(c.Owner) < 26 || owners[c.Owner] {
			t.Fatalf("owner %q: want 128 random bits, never twice", c.Owner)
		}
		owners[c.Owner] = true
		c.Owner = ""
		want := dedup.Claim{Key: recordKey("1"), Lease: 2e9, Retention: 3600e9, Attempt: 4, Validation: "hash of {}", NoTakeover: true}
		if diff := cmp.Diff(want, c); diff != "" {
			t.Fatalf("claim (-want +got):\n%s", diff)
		}
	}
}

// What an acquire without an answer has stored is released once, so that the event does not look like a crash. After any
// other failure nothing is stored, and nothing is released.
func TestUnknownAcquireIsReleased(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer error
		stored bool
		calls  string
	}{
		"stored":     {dedup.ErrOutcomeUnknown, true, "[acquire release]"},
		"not stored": {dedup.ErrOutcomeUnknown, false, "[acquire release]"},
		"withdrawn":  {errStore, false, "[acquire]"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFaults()
				lose := func(_ context.Context, op string, n int) error {
					if op == "acquire" && n == 1 {
						return sqsonce.Unavailable(tt.answer)
					}
					return nil
				}
				if f.before = lose; tt.stored {
					f.before, f.after = nil, lose
				}
				var e effects
				o := newOnce(t, f, func(o *dedup.Options) { o.OnCrash = dedup.Block })
				err := o.Handler(e.handler)(context.Background(), message("1"))
				if host.OutcomeOf(err) != host.Unavailable || f.log() != tt.calls {
					t.Errorf("got error %v, calls %s; want ErrUnavailable, %s", err, f.log(), tt.calls)
				}
				if s := o.Stats(); s.StoreErrors != 1 || s.LeasesLost != 0 {
					t.Errorf("stats %+v: want one store error", s)
				}
				if err := o.Handler(e.handler)(context.Background(), message("1")); err != nil || e.got() != 1 {
					t.Errorf("next delivery: got error %v and %d runs, want nil and 1", err, e.got())
				}
			})
		})
	}
}

// A store that does not answer the release either delays the delivery by a moment only, also where the host has cancelled it.
func TestUnknownAcquireIsReleasedInTheBackground(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFaults()
		ctx, cancel := context.WithCancel(context.Background())
		f.before = func(_ context.Context, op string, _ int) error {
			if op == "release" {
				time.Sleep(3 * time.Second)
			}
			return nil
		}
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
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFaults()
		f.after = func(_ context.Context, op string, _ int) error {
			if op == "acquire" {
				return dedup.ErrOutcomeUnknown
			}
			return nil
		}
		why := errors.New("why")
		o := newOnce(t, f, func(o *dedup.Options) { o.OnStoreDown = dedup.RunAnyway })
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

// A store that never answers leaves the handler of RunAnyway two thirds of an invocation. Under FailClosed the acquire has
// all the time that it may need.
func TestPatienceWithAnAcquire(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		policy       dedup.StorePolicy
		killAt, want time.Duration
	}{
		{dedup.RunAnyway, 0, 6 * time.Second},
		{dedup.RunAnyway, time.Minute, 6 * time.Second},
		{dedup.RunAnyway, 9 * time.Second, 3 * time.Second},
		{dedup.FailClosed, 9 * time.Second, 6 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFaults()
			f.before = func(ctx context.Context, op string, _ int) error {
				if op == "acquire" {
					<-ctx.Done()
					return ctx.Err()
				}
				return nil
			}
			start := time.Now()
			m := message("1")
			if tt.killAt > 0 {
				m.KillAt = start.Add(tt.killAt)
			}
			err := newOnce(t, f, func(o *dedup.Options) { o.OnStoreDown = tt.policy }).Handler(hang(0))(context.Background(), m)
			if took := time.Since(start); (err == nil) != (tt.policy == dedup.RunAnyway) || took != tt.want {
				t.Errorf("policy %d, process ends in %s: got error %v after %s, want %s", tt.policy, tt.killAt, err, took, tt.want)
			}
		})
	}
}
