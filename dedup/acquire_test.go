package dedup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// crash leaves the record of message(id) as a crashed owner does: its lease is over, and it was not released.
func crash(t testing.TB, f *faults, id string) {
	t.Helper()
	must.Get(other(t, f.Store, recordKey(id)))(t)
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
		{"Rerun", dedup.OnCrashRerun, 1, false},
		{"Block", dedup.OnCrashBlock, 0, false},
		{"DeadLetter", dedup.OnCrashDeadLetter, 0, true},
	} {
		must.Run(t, tt.name, func(t *testing.T) {
			f := newFaults()
			crash(t, f, "1")
			var e effects
			o := newOnce(t, f, func(o *dedup.Options) { o.OnCrash = tt.policy })
			for range 3 {
				err := o.Handler(e.handler)(t.Context(), message("1"))
				if tt.policy == dedup.OnCrashRerun {
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
				if sqsonce.OutcomeOf(err).Reject != tt.reject {
					t.Errorf("got error %v, want a Reject: %t", err, tt.reject)
				}
				time.Sleep(10 * time.Minute)
			}
			if e.got() != tt.runs {
				t.Errorf("handler ran %d times, want %d", e.got(), tt.runs)
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
			h := newOnce(t, f, func(o *dedup.Options) {
				o.OnCrash, o.ErrorText = dedup.OnCrashDeadLetter, func(error) string { return "redacted" }
			}).Handler(e.handler)
			ctx, settle := settle.New(t.Context())
			if err := h(ctx, message("1")); !errors.Is(err, dedup.ErrCrashed) {
				t.Fatalf("got error %v, want ErrCrashed", err)
			}
			settle(deadLettered)
			if r := must.Get(f.Store.(dedup.Inspector).Inspect(t.Context(), recordKey("1")))(t); r.Crashes(time.Now()) != 1 || (r.State(time.Now()) == dedup.StateReleased) != deadLettered {
				t.Errorf("dead-lettered %t: %s, %d crashes, want 1, and released once it is", deadLettered, r.State(time.Now()), r.Crashes(time.Now()))
			}
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
	}{{dedup.OnStoreDownFailClosed, 0, "[acquire]", 1}, {dedup.OnStoreDownRunAnyway, 1, "[acquire complete]", 2}} {
		synctest.Test(t, func(t *testing.T) {
			f := newFaults()
			f.before = func(context.Context, string, int) error { return errStore }
			var e effects
			var lines bytes.Buffer
			o := newOnce(t, f, func(o *dedup.Options) {
				o.OnStoreDown, o.Logger = tt.policy, slog.New(slog.NewTextHandler(&lines, nil))
			})
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
			synctest.Wait() // for the log
			if got := strings.Contains(lines.String(), "handler succeeded without a record"); got != (tt.runs == 1) {
				t.Errorf("policy %d: the log says that no record was completed: %t\n%s", tt.policy, got, lines.String())
			}
		})
	}
}

// Under OnStoreDownRunAnyway the acquire may have been granted, and only its answer lost: then the record is completed. Where another
// owner has it, it stays as it is.
func TestRunAnywayCompletesItsOwnRecord(t *testing.T) {
	t.Parallel()
	void := sqsonce.Skip("void")
	for _, c := range []struct {
		owned   bool
		outcome error
	}{{true, nil}, {true, void}, {false, nil}} {
		owned := c.owned
		synctest.Test(t, func(t *testing.T) {
			f := newFaults()
			f.after = failing("acquire", errStore)
			if !owned {
				must.Get(other(t, f.Store, recordKey("1")))(t)
			}
			var e effects
			var lines bytes.Buffer
			o := newOnce(t, f, func(o *dedup.Options) {
				o.OnStoreDown, o.Logger = dedup.OnStoreDownRunAnyway, slog.New(slog.NewTextHandler(&lines, nil))
				o.PayloadHash = func(*sqsonce.Message) string { return "hash" }
			})
			h := func(ctx context.Context, m *sqsonce.Message) error { must.Do(t, e.handler(ctx, m)); return c.outcome }
			if err := o.Handler(h)(t.Context(), message("1")); err != c.outcome || e.got() != 1 {
				t.Errorf("got error %v and %d runs, want %v and 1", err, e.got(), c.outcome)
			}
			synctest.Wait() // for the log
			if strings.Contains(lines.String(), "handler succeeded without a record") {
				t.Errorf("owned %t: the log says that no record was completed:\n%s", owned, lines.String())
			}
			if r := must.Get(f.Store.(dedup.Inspector).Inspect(t.Context(), recordKey("1")))(t); r.Completed != owned || (r.Result.Validation == "hash") != owned {
				t.Errorf("got %+v, want it completed with the hash: %t", r, owned)
			}
		})
	}
}

// told is a store whose leases say what another store's acquire found out.
type told struct {
	dedup.Store
	ownRetry, foreign bool
}

func (s told) Acquire(ctx context.Context, c dedup.Claim) (dedup.Grant, error) {
	g, err := s.Store.Acquire(ctx, c)
	g.Lease.OwnRetry, g.Foreign = s.ownRetry, s.foreign
	return g, err
}

func TestRunAnywayIsNotForEveryError(t *testing.T) {
	t.Parallel()
	runAnyway := func(o *dedup.Options) { o.OnStoreDown = dedup.OnStoreDownRunAnyway }
	synctest.Test(t, func(t *testing.T) {
		var e effects
		f := newFaults()
		f.before = func(context.Context, string, int) error {
			return &sqsonce.OptionError{Package: "store", Field: "table", Problem: "missing"}
		}
		if err := newOnce(t, f, runAnyway).Handler(e.handler)(t.Context(), message("1")); err == nil || e.got() != 0 {
			t.Errorf("unusable store: got error %v and %d runs, want an error and none", err, e.got())
		}
		f.before = func(context.Context, string, int) error { return dedup.ErrRecord }
		if err := newOnce(t, f, runAnyway).Handler(e.handler)(t.Context(), message("1")); !errors.Is(err, dedup.ErrRecord) || e.got() != 0 {
			t.Errorf("foreign record: got error %v and %d runs, want ErrRecord and none", err, e.got())
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
				o.PayloadHash = func(m *sqsonce.Message) string { return m.Body }
			}).Handler(e.handler)
			for _, body := range []string{`{"amount":1}`, `{"amount":1}`} {
				m := message("1")
				m.Body = body
				must.Do(t, h(t.Context(), m))
			}
			before := f.log()
			changed := message("1")
			changed.Body = `{"amount":1000}`
			err := h(t.Context(), changed)
			if !sqsonce.OutcomeOf(err).Reject || !errors.Is(err, dedup.ErrPayloadMismatch) || e.got() != 1 {
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

func TestClaim(t *testing.T) {
	t.Parallel()
	m := message("1")
	m.ReceiveCount = 4
	owners := make(map[string]bool)
	for range 50 {
		c, _ := claimFor(t, m, func(o *dedup.Options) {
			o.LeaseDuration, o.Retention, o.OnCrash = 2e9, 3600e9, dedup.OnCrashBlock
		})
		// 26 base32 characters carry 130 bits.
		if len(c.Owner) < 26 || owners[c.Owner] {
			t.Fatalf("owner %q: want 128 random bits, never twice", c.Owner)
		}
		owners[c.Owner] = true
		c.Owner = ""
		want := dedup.Claim{Key: recordKey("1"), Lease: 2e9, Retention: 3600e9, ReceiveCount: 4, NoTakeover: true}
		if diff := cmp.Diff(want, c); diff != "" {
			t.Fatalf("claim (-want +got):\n%s", diff)
		}
	}
}
