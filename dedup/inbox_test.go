package dedup_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/inboxkit"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/question"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

func guard(o *dedup.Once, ctx context.Context, m *sqsonce.Message, f func(context.Context, dedup.Lease) (bool, error)) error {
	return inboxkit.Guard(o, func(ctx context.Context, _ *sqsonce.Message, l dedup.Lease) (bool, error) { return f(ctx, l) })(ctx, m)
}

func TestGuard(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	for _, tt := range []struct {
		name      string
		completed bool
		err       error
		calls     string
	}{
		{"completed by the transaction", true, nil, "[acquire]"},
		{"completed, then an error", true, failed, "[acquire]"},
		{"not completed", false, nil, "[acquire complete]"},
		{"failed", false, failed, "[acquire release]"},
	} {
		must.Run(t, tt.name, func(t *testing.T) {
			f := newFaults()
			o := newOnce(t, f)
			err := guard(o, t.Context(), message("1"), func(ctx context.Context, l dedup.Lease) (bool, error) {
				if got, ok := inboxkit.LeaseFrom(ctx); !ok || got != l || l.Owner == "" || l.Key != recordKey("1") {
					t.Errorf("lease: got %+v, LeaseFrom %+v, want the record's", l, got)
				}
				return tt.completed, tt.err
			})
			if err != tt.err || f.log() != tt.calls {
				t.Errorf("got error %v after calls %s, want %v after %s", err, f.log(), tt.err, tt.calls)
			}
		})
	}
}

// A commit that a foreign writer's record refuses is counted, and not once more where the lease was known to be lost.
func TestForeignCommitIsCounted(t *testing.T) {
	t.Parallel()
	foreign := fmt.Errorf("%w: %w", sqsonce.ErrLeaseLost, dedup.ErrForeignWriter)
	for _, lost := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := newFaults()
			f.fail("renew", foreign)
			o := newOnce(t, f)
			err := guard(o, t.Context(), message("1"), func(context.Context, dedup.Lease) (bool, error) {
				if lost {
					time.Sleep(time.Minute)
				}
				return false, foreign
			})
			if !errors.Is(err, sqsonce.ErrLeaseLost) || o.Stats().ForeignWriters != 1 {
				t.Errorf("lease lost before: %t: got error %v, %d foreign writers counted, want ErrLeaseLost and 1", lost, err, o.Stats().ForeignWriters)
			}
		})
	}
}

func TestStopRenewal(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		after   time.Duration // of the handler
		least   time.Duration
		renewed int
		left    time.Duration
	}{
		{"enough left", 9 * time.Second, 10 * time.Second, 0, 21 * time.Second},
		{"as much left as asked for", 9 * time.Second, 21 * time.Second, 0, 21 * time.Second},
		{"just renewed", 12 * time.Second, 10 * time.Second, 1, 28 * time.Second},
		{"less than asked for", 9 * time.Second, 25 * time.Second, 1, 30 * time.Second},
	} {
		must.Run(t, tt.name, func(t *testing.T) {
			f := newFaults()
			err := guard(newOnce(t, f), t.Context(), message("1"), func(ctx context.Context, _ dedup.Lease) (bool, error) {
				time.Sleep(tt.after)
				l, err := inboxkit.StopRenewal(ctx, tt.least)
				if err != nil || f.seen("renew") != tt.renewed || time.Until(l.Until) != tt.left {
					t.Errorf("got %v after %d renewals, %s left, want nil after %d, %s", err, f.seen("renew"), time.Until(l.Until), tt.renewed, tt.left)
				}
				time.Sleep(time.Hour)
				if f.seen("renew") != tt.renewed {
					t.Errorf("%d renewals after StopRenewal, want none", f.seen("renew")-tt.renewed)
				}
				if ctx.Err() != nil {
					t.Errorf("cancelled after StopRenewal with %v, want no cancellation: the commit's condition decides", context.Cause(ctx))
				}
				return true, nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// A renewal in flight would make the transaction fail with a conflict. StopRenewal waits for it, also in a cancelled
// handler.
func TestStopRenewalWaitsForTheOneInFlight(t *testing.T) {
	withFaults(t, func(t *testing.T, f *faults) {
		f.after = slow("renew", 3*time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		err := guard(newOnce(t, f), ctx, message("1"), func(ctx context.Context, _ dedup.Lease) (bool, error) {
			time.Sleep(11 * time.Second) // a second into the first renewal
			cancel()
			start := time.Now()
			l, err := inboxkit.StopRenewal(ctx, 0)
			if took := time.Since(start); err != nil || took != 2*time.Second {
				t.Errorf("got error %v after %s, want nil after the renewal's other 2 s", err, took)
			}
			if left := time.Until(l.Until); left != 27*time.Second {
				t.Errorf("%s left, want the renewal's 27 s", left)
			}
			if again, err := inboxkit.StopRenewal(ctx, 0); err != nil || again != l {
				t.Errorf("second call: got %+v, %v, want %+v", again, err, l)
			}
			return true, nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// No renewal follows StopRenewal, also where it is called at the instant of a renewal or while one is in flight.
func TestNoRenewalAfterStopRenewal(t *testing.T) {
	t.Parallel()
	for range 50 {
		for _, at := range []time.Duration{10 * time.Second, 11 * time.Second} {
			synctest.Test(t, func(t *testing.T) {
				f := newFaults()
				f.after = slow("renew", 3*time.Second)
				err := guard(newOnce(t, f), t.Context(), message("1"), func(ctx context.Context, _ dedup.Lease) (bool, error) {
					time.Sleep(at)
					if _, err := inboxkit.StopRenewal(ctx, 0); err != nil {
						t.Errorf("after %s: got error %v, want nil", at, err)
					}
					n := f.seen("renew")
					time.Sleep(15 * time.Second)
					if more := f.seen("renew") - n; more > 0 {
						t.Errorf("after %s: %d renewals after StopRenewal, want none", at, more)
					}
					return false, nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestStopRenewalOfALostLease(t *testing.T) {
	t.Parallel()
	stop := func(ctx context.Context, _ dedup.Lease) (bool, error) {
		time.Sleep(9 * time.Second)
		l, err := inboxkit.StopRenewal(ctx, 25*time.Second)
		if err == nil {
			return true, nil
		}
		if l != (dedup.Lease{}) {
			return false, errors.Join(errors.New("a lease beside an error"), err)
		}
		return false, err
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFaults()
		f.fail("renew", sqsonce.ErrLeaseLost)
		if err := guard(newOnce(t, f), t.Context(), message("1"), stop); !errors.Is(err, sqsonce.ErrLeaseLost) {
			t.Errorf("refused: got error %v, want ErrLeaseLost", err)
		}
		if f.seen("renew") != 1 || f.seen("release") != 0 {
			t.Errorf("refused: calls %s, want one renewal and no release", f.log())
		}
		err := guard(newOnce(t, f), t.Context(), message("2"), func(ctx context.Context, _ dedup.Lease) (bool, error) {
			time.Sleep(11 * time.Second) // refused at 10 s
			_, err := inboxkit.StopRenewal(ctx, 0)
			return err == nil, err
		})
		if !errors.Is(err, sqsonce.ErrLeaseLost) || f.seen("renew") != 2 {
			t.Errorf("refused before: got error %v after %d renewals, want ErrLeaseLost without another", err, f.seen("renew")-1)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		f := newFaults()
		f.fail("renew", errStore)
		if err := guard(newOnce(t, f), t.Context(), message("1"), stop); err != nil {
			t.Errorf("store down with 21 s left: got error %v, want nil: the lease is still ahead", err)
		}
		err := guard(newOnce(t, f), t.Context(), message("2"), func(ctx context.Context, l dedup.Lease) (bool, error) {
			time.Sleep(time.Minute)
			return stop(ctx, l)
		})
		if !errors.Is(err, errStore) {
			t.Errorf("store down and the lease over: got error %v, want the store's", err)
		}
	})
	if _, err := inboxkit.StopRenewal(t.Context(), 0); err == nil {
		t.Error("without a lease: got nil, want an error")
	}
}

// The lease outlasts the process: it is not renewed, whatever least is.
func TestStopRenewalWithKillAt(t *testing.T) {
	withFaults(t, func(t *testing.T, f *faults) {
		m := message("1")
		m.KillAt = time.Now().Add(20 * time.Second)
		err := guard(newOnce(t, f), t.Context(), m, func(ctx context.Context, _ dedup.Lease) (bool, error) {
			time.Sleep(19 * time.Second)
			l, err := inboxkit.StopRenewal(ctx, 10*time.Second)
			if err != nil || !l.Until.Equal(m.KillAt.Add(2*time.Second)) {
				t.Errorf("got %+v, %v, want the lease until KillAt + 2 s", l, err)
			}
			return true, nil
		})
		if err != nil || f.log() != "[acquire]" {
			t.Errorf("got error %v after calls %s, want nil after [acquire]", err, f.log())
		}
	})
}

// A store that keeps an inbox from its commit, because the lease is over and its renewal is not answered or answered too late, is no failure
// of the message. A question comes with the error.
func TestStopRenewalOfASlowStore(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*faults){
		"no answer": func(f *faults) { f.fail("renew", errStore) },
		"late":      func(f *faults) { f.after = slow("renew", time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFaults()
				set(f)
				err := guard(newOnce(t, f), t.Context(), message("1"), func(ctx context.Context, _ dedup.Lease) (bool, error) {
					time.Sleep(time.Minute)
					_, err := inboxkit.StopRenewal(ctx, 10*time.Second)
					return err == nil, err
				})
				_, asks := question.Of(err)
				if !errors.Is(err, sqsonce.ErrUnavailable) || errors.Is(err, sqsonce.ErrLeaseLost) || !asks {
					t.Errorf("got error %v, with a question %t; want ErrUnavailable and true", err, asks)
				}
			})
		})
	}
}
