package dedup_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/internal/granted"
	"github.com/sqsonce/sqsonce/internal/settle"
)

func completed(t testing.TB, s dedup.Store, id string) bool {
	t.Helper()
	_, err := other(t, s, recordKey(id))
	return errors.Is(err, granted.ErrCompleted)
}

// The receipt handle is lost, or the host stops, and the handler succeeds: the record is completed.
func TestCompleteHasItsOwnContext(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{sqsonce.ErrLeaseLost, sqsonce.ErrShutdown, context.DeadlineExceeded} {
		for _, isHost := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				f := newFaults()
				ctx, cancel := context.WithCancelCause(t.Context())
				if isHost {
					ctx, _ = settle.New(ctx)
				}
				err := newOnce(t, f).Handler(func(context.Context, *sqsonce.Message) error { cancel(cause); return nil })(ctx, message("1"))
				if err != nil || !completed(t, f.Store, "1") || f.seen("complete") != 1 {
					t.Errorf("cancelled with %v, a host %t: got error %v after calls %s, want nil after one complete", cause, isHost, err, f.log())
				}
			})
		}
	}
}

func TestCompleteIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]func(*faults){
		"nothing written": func(f *faults) {
			f.before = failing("complete", errStore, 1, 2)
		},
		"answer lost": func(f *faults) {
			f.after = failing("complete", errStore, 1, 2)
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
		must.Run(t, name, func(t *testing.T) {
			f := newFaults()
			broken(f)
			var e effects
			o := newOnce(t, f)
			start := time.Now()
			must.Do(t, o.Handler(e.handler)(t.Context(), message("1")))
			if took := time.Since(start); took > 6*time.Second {
				t.Errorf("took %s, want the call timeout or a few short pauses", took)
			}
			if !completed(t, f.Store, "1") || e.got() != 1 || f.seen("release") != 0 {
				t.Errorf("completed %t, %d runs, calls %s", completed(t, f.Store, "1"), e.got(), f.log())
			}
		})
	}
}

// The event has had its effect. Whatever the store answers, the record is not released: the next delivery would repeat the
// effect at once. Without a host the tries end with the lease.
func TestNoReleaseAfterSuccess(t *testing.T) {
	t.Parallel()
	for policy, tried := range map[dedup.CompletePolicy]time.Duration{dedup.OnCompleteFailedRedeliver: 30 * time.Second, dedup.OnCompleteFailedAcknowledge: 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			f := newFaults()
			f.fail("complete", errStore)
			o := newOnce(t, f, func(o *dedup.Options) { o.OnCompleteFailed = policy })
			start := time.Now()
			err := o.Handler(hang(0))(t.Context(), message("1"))
			if policy == dedup.OnCompleteFailedAcknowledge && err != nil {
				t.Errorf("Acknowledge: got error %v, want nil", err)
			}
			if policy == dedup.OnCompleteFailedRedeliver && (!errors.Is(err, errStore) || !errors.Is(err, sqsonce.ErrUnavailable)) {
				t.Errorf("Redeliver: got error %v, want the store's as ErrUnavailable: the handler did not fail", err)
			}
			if took := time.Since(start); took != tried {
				t.Errorf("policy %d: tried for %s, want %s", policy, took, tried)
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

// hosted is a context of a host that has the message for d.
func hosted(d time.Duration) (context.Context, func(deadLettered bool) error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	time.AfterFunc(d, func() { cancel(sqsonce.ErrShutdown) })
	return settle.New(ctx)
}

// A host has the message for longer than the lease: complete is tried for so long, a call a second at most.
func TestCompleteIsTriedWhileTheHostHasTheMessage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		away, has time.Duration
		want      time.Duration // until the handler's host gets the outcome
		hangs     bool
	}{
		{away: 10 * time.Minute, has: time.Hour, want: 10 * time.Minute},
		{away: time.Hour, has: 10 * time.Minute, want: 10 * time.Minute},
		{away: time.Hour, has: 10 * time.Minute, want: 10 * time.Minute, hangs: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFaults()
			start := time.Now()
			f.before = func(ctx context.Context, op string, _ int) error {
				if op == "acquire" || time.Since(start) >= tt.away {
					return nil
				}
				if tt.hangs {
					<-ctx.Done()
				}
				return errStore
			}
			ctx, _ := hosted(tt.has)
			var log bytes.Buffer
			o := newOnce(t, f, func(o *dedup.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
			err := o.Handler(hang(0))(ctx, message("1"))
			synctest.Wait() // for the log
			if n := strings.Count(log.String(), "record not completed: the store is asked again"); n != 1 {
				t.Errorf("%+v: %d lines when the completes began, want one", tt, n)
			}
			if n := strings.Count(log.String(), "record not completed for as long as a lease"); n != 1 {
				t.Errorf("%+v: %d lines of the event after 30 s, want one: an operator looks for its key", tt, n)
			}
			if took := time.Since(start); took < tt.want || took > tt.want+5*time.Second || tt.away > tt.has && took != tt.want {
				t.Errorf("%+v: returned after %s", tt, took)
			}
			if back := tt.away < tt.has; back != (err == nil) || back != completed(t, f.Store, "1") || !back && !errors.Is(err, sqsonce.ErrUnavailable) {
				t.Errorf("%+v: got error %v, want nil if the store is back in time, else ErrUnavailable", tt, err)
			}
			if n, most := f.seen("complete")+f.seen("renew"), int(tt.want.Seconds()); n > most || n < most/20 {
				t.Errorf("%d calls in %s, want one a second at most", n, tt.want)
			}
		})
	}
}

// While complete is tried the lease is renewed: nobody takes the event over.
func TestLeaseIsRenewedWhileCompleting(t *testing.T) {
	withFaults(t, func(t *testing.T, f *faults) {
		start := time.Now()
		f.before = func(_ context.Context, op string, _ int) error {
			if op == "complete" && time.Since(start) < 5*time.Minute {
				return errStore
			}
			return nil
		}
		go func() {
			for range 9 {
				time.Sleep(30 * time.Second)
				if _, err := other(t, f.Store, recordKey("1")); !inProgress(err) {
					t.Errorf("after %s: got error %v, want in progress", time.Since(start), err)
				}
			}
		}()
		ctx, _ := hosted(time.Hour)
		if err := newOnce(t, f).Handler(hang(0))(ctx, message("1")); err != nil {
			t.Errorf("got error %v, want nil", err)
		}
		renewals := f.seen("renew")
		time.Sleep(5 * time.Minute)
		if f.seen("renew") != renewals {
			t.Error("renewed after the complete")
		}
	})
}

// A renewal was in flight when the handler returned, and complete failed at first: the renewals start again, once.
func TestRenewalsWhileCompletingAreOneRow(t *testing.T) {
	withFaults(t, func(t *testing.T, f *faults) {
		start := time.Now()
		var renewals []time.Duration
		f.before = func(ctx context.Context, op string, _ int) error {
			if op == "complete" {
				return errStore
			}
			if op == "renew" {
				renewals = append(renewals, time.Since(start))
				if len(renewals) == 1 {
					<-ctx.Done()
					return ctx.Err()
				}
			}
			return nil
		}
		ctx, _ := hosted(42 * time.Second)
		_ = newOnce(t, f).Handler(hang(11*time.Second))(ctx, message("1"))
		want := []time.Duration{10 * time.Second, 21 * time.Second, 31 * time.Second, 41 * time.Second}
		if diff := cmp.Diff(want, renewals); diff != "" {
			t.Errorf("renewals (-want +got):\n%s", diff)
		}
	})
}

// A renewal that is refused while complete is tried: complete is asked once more, since the record may be completed.
func TestRenewalIsRefusedWhileCompleting(t *testing.T) {
	t.Parallel()
	for _, takeover := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			f := newFaults()
			start := time.Now()
			untilRenewed := func(_ context.Context, op string, _ int) error {
				if op == "complete" && f.seen("renew") == 0 {
					return errStore
				}
				return nil
			}
			if takeover {
				f.before = untilRenewed
				time.AfterFunc(9*time.Second, func() {
					if err := f.Store.(*memstore.Store).Delete(context.Background(), recordKey("1")); err != nil {
						t.Error(err)
					}
					if _, err := other(t, f.Store, recordKey("1")); err != nil {
						t.Error(err)
					}
				})
			} else {
				f.after = untilRenewed // the record is completed, and the answers are lost
			}
			ctx, _ := hosted(time.Hour)
			o := newOnce(t, f)
			err := o.Handler(hang(5*time.Second))(ctx, message("1"))
			if took := time.Since(start); took != 15*time.Second {
				t.Errorf("took %s, want until the first renewal, 15 s", took)
			}
			if takeover != errors.Is(err, sqsonce.ErrLeaseLost) || takeover != (err != nil) {
				t.Errorf("taken over %t: got error %v", takeover, err)
			}
			if got := o.Stats().LeasesLost; takeover != (got == 1) {
				t.Errorf("taken over %t: LeasesLost %d", takeover, got)
			}
		})
	}
}

// A short lease is renewed often. While the store is away it gets a renewal a second.
func TestFailedRenewalsOfAShortLease(t *testing.T) {
	withFaults(t, func(t *testing.T, f *faults) {
		f.fail("renew", errStore)
		_ = newOnce(t, f, func(o *dedup.Options) { o.LeaseDuration = 6 * time.Second }).Handler(hang(time.Minute))(context.Background(), message("1"))
		if n := f.seen("renew"); n < 50 || n > 60 {
			t.Errorf("%d renewals in a minute, want one each second", n)
		}
	})
}

// What a refused renewal says holds while complete is not answered: another owner may run.
func TestRefusedRenewalEndsTheCompletes(t *testing.T) {
	withFaults(t, func(t *testing.T, f *faults) {
		f.before = func(_ context.Context, op string, _ int) error {
			switch op {
			case "complete":
				return errStore
			case "renew":
				return sqsonce.ErrLeaseLost
			}
			return nil
		}
		ctx, _ := hosted(time.Hour)
		start := time.Now()
		err := newOnce(t, f).Handler(hang(0))(ctx, message("1"))
		if took := time.Since(start); !errors.Is(err, sqsonce.ErrLeaseLost) || took != 10*time.Second {
			t.Errorf("got error %v after %s, want ErrLeaseLost at the renewal, after 10 s", err, took)
		}
	})
}

func TestCompleteRefused(t *testing.T) {
	withFaults(t, func(t *testing.T, f *faults) {
		f.fail("complete", sqsonce.ErrLeaseLost)
		o := newOnce(t, f, func(o *dedup.Options) { o.OnCompleteFailed = dedup.OnCompleteFailedAcknowledge })
		err := o.Handler(hang(0))(t.Context(), message("1"))
		if s := o.Stats(); !errors.Is(err, sqsonce.ErrLeaseLost) || f.log() != "[acquire complete]" || s.LeasesLost != 1 || s.CompleteFailed != 0 {
			t.Errorf("got error %v, calls %s, %+v; want ErrLeaseLost under every policy, and no release", err, f.log(), s)
		}
	})
}

// The lease is over and nobody took over: the owner may still complete.
func TestCompleteAfterTheLeaseWithoutTakeover(t *testing.T) {
	withFaults(t, func(t *testing.T, f *faults) {
		f.fail("renew", errStore)
		err := newOnce(t, f).Handler(hang(time.Hour/2))(t.Context(), message("1"))
		if err != nil || !completed(t, f.Store, "1") {
			t.Errorf("got error %v, completed %t, want nil and true", err, completed(t, f.Store, "1"))
		}
	})
}

// Completes that the store carried out, and whose answers were lost, are told from others by a complete each: a renewal is refused then.
func TestLostAnswersOfSuccesses(t *testing.T) {
	withFaults(t, func(t *testing.T, f *faults) {
		start := time.Now()
		f.after = func(_ context.Context, op string, _ int) error {
			if op == "complete" && time.Since(start) < 10*time.Second {
				return errStore
			}
			return nil
		}
		var log bytes.Buffer
		h := newOnce(t, f, func(o *dedup.Options) {
			o.PayloadHash = func(*sqsonce.Message) string { return "hash" }
			o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		}).Handler(hang(0))
		for n := range 50 {
			ctx, _ := hosted(time.Second)
			go func() { _ = h(ctx, message(strconv.Itoa(n))) }()
		}
		time.Sleep(15 * time.Second)
		synctest.Wait()
		if n := strings.Count(log.String(), "record of an earlier success completed"); n != 50 {
			t.Errorf("%d of 50 records are known to be completed 5 s after the last lost answer", n)
		}
	})
}
