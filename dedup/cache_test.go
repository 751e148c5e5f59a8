package dedup_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce/dedup"
)

// A success that the store has not confirmed is this process's alone: the store is asked again, and after a takeover the event runs.
func TestUnconfirmedCompleteIsNotRemembered(t *testing.T) {
	withFaults(t, func(t *testing.T, f *faults) {
		f.down(errStore, "complete")
		var e effects
		h := newOnce(t, f, func(o *dedup.Options) { o.OnCompleteFailed = dedup.OnCompleteFailedAcknowledge }).Handler(e.handler)
		deliver := func() {
			t.Helper()
			must.Do(t, h(t.Context(), message("1")))
			time.Sleep(31 * time.Second) // past the lease, within the time a key is remembered
		}
		deliver()
		deliver()
		if e.got() != 1 {
			t.Errorf("ran %d times, want 1: nobody took the event over", e.got())
		}
		l := must.Get(other(t, f.Store, recordKey("1")))(t)
		must.Do(t, f.Store.Release(t.Context(), l, nil))
		f.up()
		if deliver(); e.got() != 2 {
			t.Errorf("ran %d times, want 2: another owner had the event meanwhile, and released it", e.got())
		}
	})
}

func TestCompletedKeysAreRememberedForAMinute(t *testing.T) {
	withFaults(t, func(t *testing.T, f *faults) {
		h := newOnce(t, f).Handler(hang(0))
		deliver := func() {
			t.Helper()
			must.Do(t, h(t.Context(), message("1")))
		}
		deliver()
		for _, want := range []int{1, 1, 2, 2} { // at 30, 59, 88 and 117 s
			time.Sleep(29*time.Second + time.Second/2)
			deliver()
			if f.seen("acquire") != want {
				t.Errorf("%d acquires, want %d", f.seen("acquire"), want)
			}
		}
		for _, want := range []int{3, 4} { // the second one at the very end of the minute
			time.Sleep(time.Minute)
			if deliver(); f.seen("acquire") != want {
				t.Errorf("%d acquires, want %d: a minute is over", f.seen("acquire"), want)
			}
		}
	})
}

func TestCacheKeepsTheMostRecent(t *testing.T) {
	withFaults(t, func(t *testing.T, f *faults) {
		h := newOnce(t, f, func(o *dedup.Options) { o.CacheSize = 2 }).Handler(hang(0))
		for _, step := range []struct {
			id       string
			acquires int
		}{{"1", 1}, {"2", 2}, {"1", 2}, {"3", 3}, {"1", 3}, {"2", 4}, {"1", 4}, {"3", 5}, {"4", 6}, {"3", 6}} {
			must.Do(t, h(t.Context(), message(step.id)))
			if f.seen("acquire") != step.acquires {
				t.Fatalf("event %s: %d acquires, want %d", fmt.Sprint(step), f.seen("acquire"), step.acquires)
			}
		}
	})
}

func TestCacheOfOne(t *testing.T) {
	withFaults(t, func(t *testing.T, f *faults) {
		h := newOnce(t, f, func(o *dedup.Options) { o.CacheSize = 1 }).Handler(hang(0))
		for range 2 {
			if err := h(t.Context(), message("1")); err != nil || f.seen("acquire") != 1 {
				t.Fatalf("got error %v after %d acquires, want nil after 1", err, f.seen("acquire"))
			}
		}
	})
}
