package dedup_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

type charge struct {
	ID     string
	Amount int64
}

func TestDoReplays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFaults()
		runs := 0
		want := charge{ID: "ch_1", Amount: 1<<53 + 1}
		call := func(o *dedup.Once) (charge, error) {
			return dedup.Do(t.Context(), o, "order-1", func(context.Context) (charge, error) { runs++; return want, nil })
		}
		for i := range 3 {
			o := newOnce(t, f) // also in another process
			for range 2 {
				got, err := call(o)
				if err != nil {
					t.Fatalf("call %d: %v", i, err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("call %d (-want +got):\n%s", i, diff)
				}
			}
		}
		if runs != 1 {
			t.Errorf("ran %d times, want 1", runs)
		}
	})
}

func TestDoFailureIsNotReplayed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOnce(t, newFaults())
		declined := errors.New("declined")
		runs := 0
		f := func(context.Context) (int, error) {
			if runs++; runs == 1 {
				return 7, declined
			}
			return 8, nil
		}
		if got, err := dedup.Do(t.Context(), o, "k", f); err != declined || got != 0 {
			t.Errorf("first call: got %d, %v, want 0 and f's own error", got, err)
		}
		if got, err := dedup.Do(t.Context(), o, "k", f); err != nil || got != 8 || runs != 2 {
			t.Errorf("second call: got %d, %v after %d runs, want 8, nil after 2", got, err, runs)
		}
	})
}

// Refused before the complete: a store that refused the result would leave the effect without a record.
func TestDoUnstorableResult(t *testing.T) {
	t.Parallel()
	small := func(o *dedup.Options) { o.MaxResult = 10 }
	synctest.Test(t, func(t *testing.T) {
		f := newFaults()
		o := newOnce(t, f, small)
		text := func(n int) func(context.Context) (string, error) {
			return func(context.Context) (string, error) { return strings.Repeat("x", n), nil }
		}
		if got, err := dedup.Do(t.Context(), o, "fits", text(8)); err != nil || len(got) != 8 {
			t.Errorf("10 bytes of JSON: got %q, %v, want them", got, err)
		}
		if got, err := dedup.Do(t.Context(), o, "too long", text(9)); !errors.Is(err, dedup.ErrResultTooLarge) || got != "" {
			t.Errorf("11 bytes of JSON: got %q, %v, want ErrResultTooLarge", got, err)
		}
		if _, err := dedup.Do(t.Context(), o, "no JSON", func(context.Context) (chan int, error) { return make(chan int), nil }); err == nil {
			t.Error("a channel: got nil, want an error")
		}
		if f.seen("complete") != 1 || f.seen("release") != 2 {
			t.Errorf("calls: got %s, want one complete and two releases", f.log())
		}
	})
}

// A value whose record may be missing is not returned: the caller could act on it, and f could run again.
func TestDoCompleteFailed(t *testing.T) {
	t.Parallel()
	for _, policy := range []dedup.CompletePolicy{dedup.Redeliver, dedup.Acknowledge} {
		synctest.Test(t, func(t *testing.T) {
			f := newFaults()
			f.fail("complete", errStore)
			o := newOnce(t, f, func(o *dedup.Options) { o.OnCompleteFailed = policy })
			got, err := dedup.Do(t.Context(), o, "k", func(context.Context) (int, error) { return 7, nil })
			if policy == dedup.Redeliver && (got != 0 || !errors.Is(err, errStore)) {
				t.Errorf("Redeliver: got %d, %v, want 0 and the store's error", got, err)
			}
			if policy == dedup.Acknowledge && (got != 7 || err != nil) {
				t.Errorf("Acknowledge: got %d, %v, want 7, nil", got, err)
			}
		})
	}
}

func TestDoConcurrently(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOnce(t, newFaults())
		var wg sync.WaitGroup
		var mu sync.Mutex
		runs, refused := 0, 0
		for range 32 {
			wg.Go(func() {
				_, err := dedup.Do(t.Context(), o, "k", func(context.Context) (int, error) {
					mu.Lock()
					runs++
					mu.Unlock()
					time.Sleep(time.Second)
					return 1, nil
				})
				if inProgress(err) {
					mu.Lock()
					refused++
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if runs != 1 || refused != 31 {
			t.Errorf("%d runs and %d in progress, want 1 and 31", runs, refused)
		}
	})
}

func TestDoEdges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFaults()
		o := newOnce(t, f)
		one := func(context.Context) (int, error) { return 1, nil }
		if _, err := dedup.Do(t.Context(), o, "", one); err == nil || f.log() != "[]" {
			t.Errorf("empty key: got error %v after calls %s, want one before any", err, f.log())
		}
		_, err := dedup.Do(t.Context(), o, "panics", func(context.Context) (int, error) { panic("boom") })
		if p, ok := errors.AsType[*sqsonce.PanicError](err); !ok || p.Value != "boom" {
			t.Errorf("panic: got error %v, want *sqsonce.PanicError", err)
		}

		// A message handler's record has no result to replay.
		if err := o.Handler(hang(0))(t.Context(), message("1")); err != nil {
			t.Fatal(err)
		}
		if _, err := dedup.Do(t.Context(), o, "orders|1", one); !errors.Is(err, dedup.ErrNoResult) {
			t.Errorf("key of a message: got error %v, want ErrNoResult", err)
		}

		if _, err := dedup.Do(t.Context(), o, "number", one); err != nil {
			t.Fatal(err)
		}
		if _, err := dedup.Do(t.Context(), o, "number", func(context.Context) (charge, error) { return charge{}, nil }); err == nil {
			t.Error("stored result of another type: got nil, want an error")
		}
	})
}
