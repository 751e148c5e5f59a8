package fifo_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

func TestFlush(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		p := x.publisher(func(o *fifo.Options) { o.Linger = time.Hour })
		for n := range 3 {
			must.Get(p.Enqueue(x.Context(), event("g", n)))(x)
		}
		start := time.Now()
		if err := p.Flush(x.Context()); err != nil || time.Since(start) != 0 {
			x.Errorf("Flush: %v after %v, want nil at once", err, time.Since(start))
		}
		x.expect("messages", 3, len(x.queued("g")))
		pd := must.Get(p.Enqueue(x.Context(), event("g", 3)))(x)
		if _, err := pd.Get(x.Context()); err != nil || time.Since(start) != time.Hour {
			x.Errorf("an event after Flush: %v after %v, want the linger", err, time.Since(start))
		}
	})
}

func TestFlushContextEnds(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		p := x.publisher()
		pd := must.Get(p.Enqueue(x.Context(), event("g", 1)))(x)
		ctx, cancel := context.WithTimeoutCause(x.Context(), time.Second, errCancelled)
		defer cancel()
		if err := p.Flush(ctx); err != errCancelled {
			x.Errorf("Flush: %v, want the context's cause", err)
		}
		must.Get(pd.Get(x.Context()))(x)
	}, fault.Rule{Op: "SendMessageBatch", Nth: 1, Do: fault.Delay, Delay: 4 * time.Second})
}

func TestCloseDrains(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		p := x.publisher(func(o *fifo.Options) { o.Linger = time.Hour })
		for n := range 25 {
			must.Get(p.Enqueue(x.Context(), event(fmt.Sprint("g", n%5), n)))(x)
		}
		start := time.Now()
		if err := p.Close(x.Context()); err != nil || time.Since(start) != 0 {
			x.Errorf("Close: %v after %v, want nil at once", err, time.Since(start))
		}
		x.expect("messages", 25, len(x.srv.Messages(x.url)))
		x.expectIdle(p)

		if _, err := p.Publish(x.Context(), event("g", 1)); !errors.Is(err, fifo.ErrClosed) {
			x.Errorf("Publish after Close: %v, want ErrClosed", err)
		}
		if _, err := p.Enqueue(x.Context(), event("g", 1)); !errors.Is(err, fifo.ErrClosed) {
			x.Errorf("Enqueue after Close: %v, want ErrClosed", err)
		}
		if _, err := p.PublishAll(x.Context(), []fifo.Event{event("g", 1)}); !errors.Is(err, fifo.ErrClosed) {
			x.Errorf("PublishAll after Close: %v, want ErrClosed", err)
		}
		must.Do(x, p.Close(x.Context()))
	})
}

func reason(err error) string {
	if err == nil {
		return ""
	}
	for _, r := range []struct {
		reason error
		name   string
	}{
		{fifo.ErrUnknownOutcome, "unknown"}, {fifo.ErrGroupHalted, "halted"}, {fifo.ErrBufferFull, "full"},
		{fifo.ErrDedupConflict, "conflict"}, {fifo.ErrNotSent, "not sent"},
	} {
		if errors.Is(err, r.reason) {
			return r.name
		}
	}
	return err.Error()
}

func TestCloseEndsWaitsForCapacity(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		p := x.publisher(func(o *fifo.Options) { o.MaxMessages = 1; o.Linger = time.Hour })
		must.Get(p.Enqueue(x.Context(), event("g", 1)))(x)
		waiting := make(chan error, 1)
		go func() {
			_, err := p.Enqueue(x.Context(), event("g", 2))
			waiting <- err
		}()
		synctest.Wait()
		start := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := p.Close(x.Context()); err != nil {
				x.Errorf("Close: %v", err)
			}
		})
		if err := <-waiting; !errors.Is(err, fifo.ErrClosed) || time.Since(start) != 0 {
			x.Errorf("Enqueue that waited for capacity: %v after %v, want ErrClosed at once", err, time.Since(start))
		}
		wg.Wait()
	}, fault.Rule{Op: "SendMessageBatch", Nth: 1, Do: fault.Delay, Delay: time.Second})
}

// An ended context is no error where nothing is left to wait for.
func TestFlushWithNothingLeft(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		p := x.publisher()
		must.Get(p.Publish(x.Context(), event("g", 1)))(x)
		ctx, cancel := context.WithCancel(x.Context())
		cancel()
		must.Do(x, p.Flush(ctx))
		must.Do(x, p.Close(ctx))
	})
}

func TestPublishAll(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		p := x.publisher(func(o *fifo.Options) { o.Linger = time.Hour })
		var es []fifo.Event
		for i := range 25 {
			es = append(es, event(fmt.Sprint("g", i%20), i))
		}
		start := time.Now()
		receipts, err := p.PublishAll(x.Context(), es)
		if err != nil || time.Since(start) != 0 {
			x.Fatalf("PublishAll: %v after %v, want nil at once", err, time.Since(start))
		}
		for i, r := range receipts {
			want, _ := fifo.DedupID("orders", es[i].ID)
			if r.DedupID != want || r.MessageID == "" || r.Sequence == "" || r.Attempts != 1 {
				x.Errorf("receipt %d: %+v, want that of %s", i, r, es[i].ID)
			}
		}
		x.expect("entries by request", []int{10, 10, 5}, x.sizes())
		if !p.Idle() || x.sent.inFlight() != 0 {
			x.Error("the publisher is not idle after PublishAll")
		}
	})
}

var errCancelled = errors.New("cancelled by the caller")

func TestCapacityIsBounded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		opts fifo.Options
		body int
		fit  int
	}{
		{"messages", fifo.Options{MaxMessages: 3}, 10, 3},
		{"bytes", fifo.Options{MaxBytes: 1 << 20}, 300 << 10, 3},
	} {
		runIn(t, tt.name, standard, func(x *fixture) {
			p := x.publisher(func(o *fifo.Options) { *o = tt.opts; o.Linger = time.Hour })
			ev := func(n int) fifo.Event {
				e := event("g", n)
				e.Body = strings.Repeat("x", tt.body)
				return e
			}
			for n := range tt.fit {
				must.Get(p.Enqueue(x.Context(), ev(n)))(x)
			}
			ctx, cancel := context.WithTimeoutCause(x.Context(), time.Minute, errCancelled)
			defer cancel()
			start := time.Now()
			_, err := p.Enqueue(ctx, ev(10))
			if !errors.Is(err, fifo.ErrBufferFull) || !errors.Is(err, errCancelled) || time.Since(start) != time.Minute {
				x.Errorf("Enqueue into a full buffer: %v after %v, want ErrBufferFull after 1m", err, time.Since(start))
			}
			// A result frees capacity.
			waiting := make(chan error, 1)
			go func() {
				_, err := p.Publish(x.Context(), ev(11))
				waiting <- err
			}()
			synctest.Wait()
			must.Do(x, p.Flush(x.Context()))
			synctest.Wait()
			must.Do(x, p.Flush(x.Context()))
			if err := <-waiting; err != nil {
				x.Errorf("Publish that waited for capacity: %v", err)
			}
		})
	}
}
