package dedup_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/internal/host"
)

// A key held in this process answers a second copy without a request, also while its handler goes on.
func TestSecondCopyInThisProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFaults()
		o := newOnce(t, f)
		h := o.Handler(hang(5 * time.Second))
		first := make(chan error, 1)
		go func() { first <- h(t.Context(), message("1")) }()
		time.Sleep(time.Second)

		start := time.Now()
		err := h(t.Context(), message("1"))
		retry, _ := host.Asked(err)
		if !inProgress(err) || retry == nil || retry.After != 29*time.Second {
			t.Errorf("second copy: got error %v, want in progress, back in the 28 s of the lease and one", err)
		}
		if took := time.Since(start); took != time.Second || f.log() != "[acquire]" {
			t.Errorf("second copy: took %s, calls %s, want 1 s and the first copy's [acquire]", took, f.log())
		}
		if err := <-first; err != nil {
			t.Fatal(err)
		}
		if err := h(t.Context(), message("1")); err != nil || f.log() != "[acquire complete]" {
			t.Errorf("third copy: got error %v after calls %s, want nil without a request", err, f.log())
		}
		if s := o.Stats(); s.CacheHits != 2 || s.InProgress != 1 || s.Completed != 1 {
			t.Errorf("stats: got %+v, want CacheHits 2, InProgress 1, Completed 1", s)
		}
	})
}

// Also while the first copy's acquire is on its way: the two would only meet in the store.
func TestSecondCopyDuringTheAcquire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFaults()
		f.before = func(context.Context, string, int) error { time.Sleep(2 * time.Second); return nil }
		h := newOnce(t, f).Handler(hang(0))
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() {
			if err := h(t.Context(), message("1")); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(time.Second)
		if err := h(t.Context(), message("1")); !inProgress(err) || f.seen("acquire") != 1 {
			t.Errorf("got error %v after %d acquires, want in progress after 1", err, f.seen("acquire"))
		}
	})
}

// A handler of this process that lost its lease and hangs must not keep the event from this process for ever; and when
// it returns at last, its successor's hold must stay.
func TestLostHoldDoesNotBlockItsProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFaults()
		f.before = func(ctx context.Context, op string, n int) error {
			if op == "renew" && n == 1 { // at 10 s
				return f.Store.(*memstore.Store).Delete(ctx, recordKey("1"))
			}
			return nil
		}
		var e effects
		var runs atomic.Int64
		h := newOnce(t, f).Handler(func(ctx context.Context, m *sqsonce.Message) error {
			if runs.Add(1) == 1 {
				time.Sleep(time.Minute) // ignores its context
				return errors.New("much too late")
			}
			time.Sleep(90 * time.Second)
			return e.handler(ctx, m)
		})
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := h(t.Context(), message("1")); !errors.Is(err, sqsonce.ErrLeaseLost) {
				t.Errorf("first delivery: got error %v, want ErrLeaseLost", err)
			}
		})
		time.Sleep(15 * time.Second)
		wg.Go(func() {
			if err := h(t.Context(), message("1")); err != nil {
				t.Errorf("second delivery: got error %v, want nil", err)
			}
		})
		for range 2 { // before and after the first has returned
			time.Sleep(30 * time.Second)
			if err := h(t.Context(), message("1")); !inProgress(err) || f.seen("acquire") != 2 {
				t.Errorf("a copy while the second runs: got error %v after %d acquires, want in progress without a request", err, f.seen("acquire"))
			}
		}
		wg.Wait()
		if err := h(t.Context(), message("1")); err != nil || e.got() != 1 {
			t.Errorf("after all: got error %v and %d effects, want nil and 1", err, e.got())
		}
	})
}

// A hold that can no longer prove its lease does not answer for the store: the event may be free for this process too.
func TestUnprovenHoldAsksTheStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFaults()
		f.fail("renew", errStore)
		var runs atomic.Int64
		h := newOnce(t, f).Handler(func(context.Context, *sqsonce.Message) error {
			if runs.Add(1) == 1 {
				time.Sleep(time.Minute)
			}
			return nil
		})
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := h(t.Context(), message("1")); !errors.Is(err, sqsonce.ErrLeaseLost) {
				t.Errorf("first delivery: got error %v, want ErrLeaseLost", err)
			}
		})
		time.Sleep(28 * time.Second)
		if err := h(t.Context(), message("1")); !inProgress(err) || f.seen("acquire") != 1 {
			t.Errorf("in the lease: got error %v after %d acquires, want in progress without a request", err, f.seen("acquire"))
		}
		time.Sleep(time.Second / 2) // a copy that waits over the lease's end
		if err := h(t.Context(), message("1")); err != nil || runs.Load() != 2 {
			t.Errorf("after it: got error %v and %d runs, want nil and 2: the store gave it away", err, runs.Load())
		}
		wg.Wait()
	})
}

// Copies of a completed event that come together, in one batch of Lambda's, are all acknowledged by one answer of the
// store: those that find the first one asking wait for it. Answered "in progress", each would spend a receive, and the
// last ones their last.
func TestCopiesOfACompletedEventShareAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFaults()
		h := newOnce(t, f).Handler(hang(0))
		if err := h(t.Context(), message("1")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute) // forgotten by now
		f.before = func(context.Context, string, int) error { time.Sleep(2 * time.Second); return nil }
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				if err := h(t.Context(), message("1")); err != nil {
					t.Errorf("copy %d: got error %v, want nil", i, err)
				}
			})
		}
		wg.Wait()
		if got, want := f.log(), "[acquire complete acquire]"; got != want {
			t.Errorf("calls: got %s, want %s", got, want)
		}
	})
}

// A copy that waits for another one's answer leaves with its own context, and asks for itself where the other got none.
func TestCopyThatWaitsForAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFaults()
		down := errors.New("store down")
		f.before = func(_ context.Context, _ string, n int) error {
			time.Sleep(2 * time.Second)
			if n == 1 {
				return down
			}
			return nil
		}
		h := newOnce(t, f).Handler(hang(0))
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := h(t.Context(), message("1")); !errors.Is(err, down) {
				t.Errorf("first copy: got error %v, want %v", err, down)
			}
		})
		time.Sleep(time.Second)
		wg.Go(func() {
			if err := h(t.Context(), message("1")); err != nil {
				t.Errorf("second copy: got error %v, want nil by its own request", err)
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		start := time.Now()
		if err := h(ctx, message("1")); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second/2 {
			t.Errorf("third copy: got error %v after %s, want its own deadline", err, time.Since(start))
		}
		wg.Wait()
	})
}
