package dedup_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// After a failure the next copy runs, one at a time.
func TestCopiesRunOneAtATime(t *testing.T) {
	withFaults(t, func(t *testing.T, f *faults) {
		declined := errors.New("declined")
		var runs, running atomic.Int64
		h := newOnce(t, f).Handler(func(context.Context, *sqsonce.Message) error {
			if running.Add(1) > 1 {
				t.Error("two at a time")
			}
			defer running.Add(-1)
			time.Sleep(200 * time.Millisecond)
			if runs.Add(1) < 3 {
				return declined
			}
			return nil
		})
		var wg sync.WaitGroup
		var failed atomic.Int64
		for range 5 {
			wg.Go(func() {
				switch err := h(t.Context(), message("1")); {
				case errors.Is(err, declined):
					failed.Add(1)
				case err != nil:
					t.Errorf("got error %v, want nil or the handler's", err)
				}
			})
		}
		wg.Wait()
		if want := "[acquire release acquire release acquire complete]"; f.log() != want || failed.Load() != 2 {
			t.Errorf("calls: got %s with %d failures, want %s with 2", f.log(), failed.Load(), want)
		}
	})
}

// Options.PeerWait bounds a copy's waiting for all its peers together.
func TestWaitHasABound(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name         string
		wait, handle time.Duration
		want         time.Duration
	}{
		{"default", 0, time.Minute, time.Second},
		{"three peers", 0, 400 * time.Millisecond, time.Second},
		{"asked for", 5 * time.Second, time.Minute, 5 * time.Second},
		{"off", -1, time.Minute, 0},
	} {
		must.Run(t, tt.name, func(t *testing.T) {
			o := newOnce(t, newFaults(), func(o *dedup.Options) { o.PeerWait = tt.wait })
			h := o.Handler(func(context.Context, *sqsonce.Message) error {
				time.Sleep(tt.handle)
				return errors.New("failed")
			})
			var wg sync.WaitGroup
			var refused atomic.Int64
			for range 4 {
				wg.Go(func() {
					start := time.Now()
					if err := h(t.Context(), message("1")); inProgress(err) {
						refused.Add(1)
						if time.Since(start) != tt.want {
							t.Errorf("in progress after %s, want %s", time.Since(start), tt.want)
						}
					}
				})
			}
			wg.Wait()
			if refused.Load() == 0 {
				t.Error("no copy was refused as in progress")
			}
		})
	}
}

// The bound is one for a peer and for the delivery that replaced it after its lease.
func TestWaitHasOneBoundForAReplacedPeer(t *testing.T) {
	withFaults(t, func(t *testing.T, f *faults) {
		f.fail("renew", errStore)
		h := newOnce(t, f).Handler(hang(time.Minute))
		var wg sync.WaitGroup
		defer wg.Wait()
		deliver := func(at time.Duration) {
			wg.Go(func() {
				time.Sleep(at)
				_ = h(t.Context(), message("1"))
			})
		}
		deliver(0)
		deliver(30*time.Second + 200*time.Millisecond) // takes over
		time.Sleep(29*time.Second + 700*time.Millisecond)
		start := time.Now()
		if err := h(t.Context(), message("1")); !inProgress(err) || time.Since(start) != time.Second {
			t.Errorf("got error %v after %s, want in progress after 1 s", err, time.Since(start))
		}
	})
}

// A copy stops waiting when its context is cancelled.
func TestWaitEndsWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newOnce(t, newFaults()).Handler(hang(5 * time.Second))
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() {
			if err := h(t.Context(), message("1")); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(300*time.Millisecond, func() { cancel(sqsonce.ErrShutdown) })
		start := time.Now()
		if err := h(ctx, message("1")); !inProgress(err) || time.Since(start) != 300*time.Millisecond {
			t.Errorf("got error %v after %s, want in progress after 300 ms", err, time.Since(start))
		}
	})
}

// A call from inside a handler does not wait: two handlers that call Do with each other's key would wait for each other,
// and one that calls it with its own key would wait for itself.
func TestNestedCallDoesNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOnce(t, newFaults())
		do := func(key, inner string) {
			_, err := dedup.Do(t.Context(), o, key, func(ctx context.Context) (int, error) {
				time.Sleep(100 * time.Millisecond)
				start := time.Now()
				_, err := dedup.Do(ctx, o, inner, func(context.Context) (int, error) { return 0, nil })
				if !inProgress(err) || time.Since(start) != 0 {
					t.Errorf("%s inside %s: got error %v after %s, want in progress at once", inner, key, err, time.Since(start))
				}
				time.Sleep(100 * time.Millisecond)
				return 1, nil
			})
			if err != nil {
				t.Errorf("%s: %v", key, err)
			}
		}
		do("self", "self")
		var wg sync.WaitGroup
		wg.Go(func() { do("a", "b") })
		wg.Go(func() { do("b", "a") })
		wg.Wait()
	})
}
