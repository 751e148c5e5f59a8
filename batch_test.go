package sqsonce_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// batches records the messages of each call of a batch handler.
type batches struct {
	mu  sync.Mutex
	ids [][]string
}

func (b *batches) add(ms []*sqsonce.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ids := make([]string, len(ms))
	for i, m := range ms {
		ids[i] = m.ID
	}
	slices.Sort(ids)
	b.ids = append(b.ids, ids)
}

func (b *batches) sizes() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	var n []int
	for _, ids := range b.ids {
		n = append(n, len(ids))
	}
	return n
}

// call runs h for n messages at once and returns the errors by message.
func call(ctx context.Context, h sqsonce.Handler, n int) []error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = h(ctx, &sqsonce.Message{ID: strconv.Itoa(i)}) })
	}
	wg.Wait()
	return errs
}

func TestBatchSizes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name          string
		size, n       int
		linger, after time.Duration
		want          []int
	}{
		{name: "full batches need no linger", n: 20, want: []int{10, 10}},
		{name: "the rest lingers", n: 13, after: 10 * time.Millisecond, want: []int{10, 3}},
		{name: "one lingers", n: 1, after: 10 * time.Millisecond, want: []int{1}},
		{name: "own size and linger", size: 3, n: 4, linger: time.Second, after: time.Second, want: []int{3, 1}},
	}
	for _, tt := range tests {
		must.RunParallel(t, tt.name, func(t *testing.T) {
			var got batches
			h := sqsonce.Batch(func(_ context.Context, ms []*sqsonce.Message) []error {
				got.add(ms)
				return nil
			}, func(o *sqsonce.BatchOptions) { o.Size, o.Linger = tt.size, tt.linger })
			start := time.Now()
			for i, err := range call(t.Context(), h, tt.n) {
				if err != nil {
					t.Errorf("message %d: %v", i, err)
				}
			}
			if took := time.Since(start); took != tt.after {
				t.Errorf("took %v, want %v", took, tt.after)
			}
			sizes := got.sizes()
			slices.SortFunc(sizes, func(a, b int) int { return b - a })
			if diff := cmp.Diff(tt.want, sizes); diff != "" {
				t.Errorf("batch sizes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBatchWithoutLinger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got batches
		h := sqsonce.Batch(func(_ context.Context, ms []*sqsonce.Message) []error { got.add(ms); return nil },
			func(o *sqsonce.BatchOptions) { o.Linger = -1 })
		start := time.Now()
		for i, err := range call(t.Context(), h, 4) {
			if err != nil {
				t.Errorf("message %d: %v", i, err)
			}
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("took %v, want no wait", took)
		}
		// How many batches it took depends on the scheduler alone.
		sum := 0
		for _, n := range got.sizes() {
			sum += n
		}
		if sum != 4 {
			t.Errorf("%d messages in batches, want 4", sum)
		}
	})
}

// A batch's timer may fire while its last message fills it. It must not cut the next batch's linger short.
func TestBatchTimerOfAFullBatch(t *testing.T) {
	t.Parallel()
	for range 100 { // the scheduler decides who comes first
		synctest.Test(t, func(t *testing.T) {
			var lone []time.Duration
			start := time.Now()
			h := sqsonce.Batch(func(_ context.Context, ms []*sqsonce.Message) []error {
				if len(ms) == 1 && ms[0].ID == "third" {
					lone = append(lone, time.Since(start))
				}
				return nil
			}, func(o *sqsonce.BatchOptions) { o.Size, o.Linger = 2, time.Second })
			var wg sync.WaitGroup
			for id, at := range map[string]time.Duration{"first": 0, "second": time.Second, "third": time.Second} {
				wg.Go(func() {
					time.Sleep(at)
					if err := h(t.Context(), &sqsonce.Message{ID: id}); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if len(lone) > 0 && lone[0] != 2*time.Second {
				t.Fatalf("the third message's batch started alone after %v, want 2s", lone[0])
			}
		})
	}
}

func TestBatchGivesEachMessageItsOwnError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := sqsonce.Batch(func(_ context.Context, ms []*sqsonce.Message) []error {
			errs := make([]error, len(ms))
			for i, m := range ms {
				if m.ID != "2" {
					errs[i] = errors.New(m.ID)
				}
			}
			return errs
		})
		for i, err := range call(t.Context(), h, 5) {
			if i == 2 && err != nil || i != 2 && (err == nil || err.Error() != strconv.Itoa(i)) {
				t.Errorf("message %d got %v", i, err)
			}
		}
	})
}

// Whatever goes wrong in a batch, no message of it succeeds.
func TestBatchFailsAsAWhole(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	tests := []struct {
		name  string
		h     func(context.Context, []*sqsonce.Message) []error
		check func(error) bool
	}{
		{"panic", func(context.Context, []*sqsonce.Message) []error { panic(boom) },
			func(err error) bool {
				pe, ok := errors.AsType[*sqsonce.PanicError](err)
				return ok && errors.Is(err, boom) && len(pe.Stack) > 0
			}},
		{"Goexit", func(context.Context, []*sqsonce.Message) []error { runtime.Goexit(); return nil },
			func(err error) bool {
				pe, ok := errors.AsType[*sqsonce.PanicError](err)
				return ok && pe.Value == nil
			}},
		{"too few errors", func(_ context.Context, ms []*sqsonce.Message) []error { return make([]error, len(ms)-1) },
			func(err error) bool { return err != nil }},
		{"too many errors", func(_ context.Context, ms []*sqsonce.Message) []error { return make([]error, len(ms)+1) },
			func(err error) bool { return err != nil }},
		{"an empty slice", func(context.Context, []*sqsonce.Message) []error { return []error{} },
			func(err error) bool { return err != nil }},
	}
	for _, tt := range tests {
		must.RunParallel(t, tt.name, func(t *testing.T) {
			for i, err := range call(t.Context(), sqsonce.Batch(tt.h), 4) {
				if !tt.check(err) {
					t.Errorf("message %d got %v", i, err)
				}
			}
		})
	}
}

func TestBatchCallerLeavesBeforeTheStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got batches
		h := sqsonce.Batch(func(_ context.Context, ms []*sqsonce.Message) []error { got.add(ms); return nil })
		ctx, cancel := context.WithCancelCause(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			start := time.Now()
			if err := h(ctx, &sqsonce.Message{ID: "leaves"}); !errors.Is(err, sqsonce.ErrLeaseLost) || !settle.IsNotRun(err) {
				t.Errorf("withdrawn message got %v, want the context's cause", err)
			}
			if took := time.Since(start); took != 0 {
				t.Errorf("withdrawn message waited %v, want no wait", took)
			}
		})
		wg.Go(func() {
			if err := h(t.Context(), &sqsonce.Message{ID: "stays"}); err != nil {
				t.Errorf("message that stayed: %v", err)
			}
		})
		synctest.Wait()
		cancel(sqsonce.ErrLeaseLost)
		wg.Wait()
		if diff := cmp.Diff([][]string{{"stays"}}, got.ids); diff != "" {
			t.Errorf("batches (-want +got):\n%s", diff)
		}
		if err := h(ctx, &sqsonce.Message{ID: "late"}); !errors.Is(err, sqsonce.ErrLeaseLost) || !settle.IsNotRun(err) {
			t.Errorf("message with an ended context got %v, want the context's cause", err)
		}
		time.Sleep(time.Second)
		if n := len(got.sizes()); n != 1 {
			t.Errorf("%d batches, want 1: nobody waits", n)
		}
	})
}

// unnoticed is a context that has ended and whose waiters have not run yet.
type unnoticed struct {
	context.Context
	ended atomic.Bool
}

func (c *unnoticed) Done() <-chan struct{} { return nil }
func (c *unnoticed) Err() error {
	if c.ended.Load() {
		return context.Canceled
	}
	return nil
}

func TestBatchLeavesOutWhoseContextHasJustEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got batches
		h := sqsonce.Batch(func(_ context.Context, ms []*sqsonce.Message) []error { got.add(ms); return nil })
		ctx := &unnoticed{Context: t.Context()}
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := h(ctx, &sqsonce.Message{ID: "ended"}); !errors.Is(err, context.Canceled) || !settle.IsNotRun(err) {
				t.Errorf("message whose context ended got %v, want context.Canceled", err)
			}
		})
		synctest.Wait()
		ctx.ended.Store(true)
		wg.Wait()
		if n := len(got.sizes()); n != 0 {
			t.Errorf("%d batches, want none", n)
		}
	})
}

func TestBatchCallerStaysAfterTheStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		failure := errors.New("failed after all")
		h := sqsonce.Batch(func(context.Context, []*sqsonce.Message) []error {
			time.Sleep(time.Minute)
			return []error{failure}
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if err := h(ctx, &sqsonce.Message{}); err != failure {
			t.Errorf("got %v, want the batch's answer", err)
		}
		if took := time.Since(start); took < time.Minute {
			t.Errorf("returned after %v while the batch was running", took)
		}
	})
}

func TestBatchContextEndsWithTheLastMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		base := context.WithValue(t.Context(), key{}, "one message's")
		var ended time.Duration
		start := time.Now()
		h := sqsonce.Batch(func(ctx context.Context, ms []*sqsonce.Message) []error {
			if v := ctx.Value(key{}); v != nil {
				t.Errorf("the batch's context holds %v of one of its messages", v)
			}
			<-ctx.Done()
			ended = time.Since(start)
			errs := make([]error, len(ms))
			for i := range errs {
				errs[i] = context.Cause(ctx)
			}
			return errs
		}, func(o *sqsonce.BatchOptions) { o.Size = 2 })

		first, cancelFirst := context.WithCancelCause(base)
		second, cancelSecond := context.WithCancelCause(base)
		var wg sync.WaitGroup
		for _, ctx := range []context.Context{first, second} {
			wg.Go(func() {
				if err := h(ctx, &sqsonce.Message{}); err != sqsonce.ErrShutdown {
					t.Errorf("got %v, want the cause of the last context", err)
				}
			})
		}
		time.Sleep(time.Second)
		cancelFirst(sqsonce.ErrLeaseLost)
		time.Sleep(time.Second)
		cancelSecond(sqsonce.ErrShutdown)
		wg.Wait()
		if ended != 2*time.Second {
			t.Errorf("the batch's context ended after %v, want 2s: when the last message's did", ended)
		}
	})
}

func ExampleBatch() {
	handler := sqsonce.Batch(func(_ context.Context, ms []*sqsonce.Message) []error {
		errs := make([]error, len(ms))
		for i, m := range ms {
			if m.Body == "" {
				errs[i] = errors.New("empty body")
			}
		}
		fmt.Printf("one write for %d messages\n", len(ms))
		return errs
	}, func(o *sqsonce.BatchOptions) { o.Size, o.Linger = 2, time.Second })

	var wg sync.WaitGroup
	errs := make([]error, 2)
	for i, body := range []string{"a", ""} {
		wg.Go(func() { errs[i] = handler(context.Background(), &sqsonce.Message{Body: body}) })
	}
	wg.Wait()
	fmt.Println(errs)
	// Output:
	// one write for 2 messages
	// [<nil> empty body]
}
