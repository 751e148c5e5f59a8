package sqlstore

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"
)

// The same message once, twice, ten times.
func TestSameMessageAgain(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, b *Bed, w way) {
		for i, times := range []int{1, 2, 10} {
			id := fmt.Sprint("order-", times)
			h := w.consumer(t, b, addTen)
			for n := range times {
				if err := h(t.Context(), order(id, n+1)); err != nil {
					t.Errorf("delivery %d of %d: got error %v, want nil", n+1, times, err)
				}
			}
			w.settle(t, b)
			expectBalance(t, b.DB, int64(i+1)*10)
		}
	})
}

// Also in a process that remembers nothing.
func TestSameMessageElsewhere(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, b *Bed, w way) {
		for n := range 3 {
			if err := w.consumer(t, b, addTen)(t.Context(), order(orderID, n+1)); err != nil {
				t.Errorf("delivery %d: got error %v, want nil", n+1, err)
			}
		}
		w.settle(t, b)
		expectBalance(t, b.DB, 10)
	})
}

// Five consumers at once with a slow handler: one effect, and everybody's message is acknowledged in the end.
func TestFiveConsumersAtOnce(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, b *Bed, w way) {
		var (
			c     counter
			wg    sync.WaitGroup
			start = make(chan struct{})
		)
		slow := c.effect(func(int64) error {
			time.Sleep(100 * time.Millisecond)
			return nil
		})
		for range 5 {
			h := w.consumer(t, b, slow)
			wg.Go(func() {
				<-start
				redeliver(t, h, orderID)
			})
		}
		close(start)
		wg.Wait()
		w.settle(t, b)
		expectBalance(t, b.DB, 10)
		// A victim of a deadlock runs again, and was rolled back; there is none where there is nothing to lock but the record.
		if n := c.n.Load(); n != 1 {
			t.Errorf("the handler ran %d times, want 1", n)
		}
	})
}

// The effect has happened and the acknowledgement is lost: the process died, or its request did.
func TestLostAcknowledgement(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, b *Bed, w way) {
		h := w.consumer(t, b, addTen)
		if err := h(t.Context(), order(orderID, 1)); err != nil {
			t.Fatal(err)
		}
		w.settle(t, b)
		expectBalance(t, b.DB, 10)
		again := w.consumer(t, b, func(context.Context, queryer) error {
			t.Error("the handler ran again")
			return nil
		})
		if err := again(t.Context(), order(orderID, 2)); err != nil {
			t.Errorf("redelivery: got error %v, want nil", err)
		}
		w.settle(t, b)
		expectBalance(t, b.DB, 10)
	})
}

// A handler that fails is rolled back and its message redelivered.
func TestHandlerFails(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, b *Bed, w way) {
		var c counter
		h := w.consumer(t, b, c.effect(func(run int64) error {
			if run <= 2 {
				return errBoom
			}
			return nil
		}))
		redeliver(t, h, orderID)
		w.settle(t, b)
		expectBalance(t, b.DB, 10)
		if n := c.n.Load(); n != 3 {
			t.Errorf("the handler ran %d times, want 3", n)
		}
	})
}
