package dedup_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup/memstore"
)

// A second copy makes no request while a peer runs, nor after its success.
func TestSecondCopyInThisProcess(t *testing.T) {
	withFaults(t, func(t *testing.T, f *faults) {
		o := newOnce(t, f)
		h := o.Handler(hang(5 * time.Second))
		first := make(chan error, 1)
		go func() { first <- h(t.Context(), message("1")) }()
		time.Sleep(time.Second)

		start := time.Now()
		err := h(t.Context(), message("1"))
		out := sqsonce.OutcomeOf(err)
		if !inProgress(err) || !out.Retry || out.After != 29*time.Second {
			t.Errorf("second copy: got error %v, want in progress, back in the 28 s of the lease and one", err)
		}
		if took := time.Since(start); took != time.Second || f.log() != "[acquire]" {
			t.Errorf("second copy: took %s, calls %s, want 1 s and the first copy's [acquire]", took, f.log())
		}
		must.Do(t, <-first)
		if err := h(t.Context(), message("1")); err != nil || f.log() != "[acquire complete]" {
			t.Errorf("third copy: got error %v after calls %s, want nil without a request", err, f.log())
		}
		if s := o.Stats(); s.CacheHits != 2 || s.InProgress != 1 || s.Completed != 1 {
			t.Errorf("stats: got %+v, want CacheHits 2, InProgress 1, Completed 1", s)
		}
	})
}

// A peer that lost its lease and does not return must not block the event in this process. When it returns, the lease of
// the delivery that replaced it must stay.
func TestLostPeerDoesNotBlockItsProcess(t *testing.T) {
	withFaults(t, func(t *testing.T, f *faults) {
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
				time.Sleep(time.Minute) // does not notice its cancellation
				return errors.New("too late")
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
		for range 2 { // before and after the first one has returned
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

// Copies of a completed event that reach a process together need one request: the others wait for the first one's answer.
// If they were refused as in progress, each would spend a receive.
func TestCopiesOfACompletedEventShareAnAnswer(t *testing.T) {
	withFaults(t, func(t *testing.T, f *faults) {
		h := newOnce(t, f).Handler(hang(0))
		must.Do(t, h(t.Context(), message("1")))
		time.Sleep(2 * time.Minute) // no longer remembered
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

// A copy waits for another one's answer until its own context is cancelled. If the other one's acquire failed, it asks the
// store itself.
func TestCopyThatWaitsForAnAnswer(t *testing.T) {
	withFaults(t, func(t *testing.T, f *faults) {
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
