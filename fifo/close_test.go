package fifo_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

func TestFlush(t *testing.T) {
	t.Parallel()
	bubble(t, orders, func(x *fixture) {
		p := x.publisher(func(o *fifo.Options) { o.Linger = time.Hour })
		for n := range 3 {
			if _, err := p.Enqueue(x.Context(), event("g", n)); err != nil {
				x.Fatal(err)
			}
		}
		start := time.Now()
		if err := p.Flush(x.Context()); err != nil || time.Since(start) != 0 {
			x.Errorf("Flush: %v after %v, want nil at once", err, time.Since(start))
		}
		if n := len(x.queued("g")); n != 3 {
			x.Errorf("%d messages after Flush, want 3", n)
		}
		pd, err := p.Enqueue(x.Context(), event("g", 3))
		if err != nil {
			x.Fatal(err)
		}
		if _, err := pd.Get(x.Context()); err != nil || time.Since(start) != time.Hour {
			x.Errorf("an event after Flush: %v after %v, want the linger", err, time.Since(start))
		}
	})
}

func TestFlushContextEnds(t *testing.T) {
	t.Parallel()
	bubble(t, orders, func(x *fixture) {
		p := x.publisher()
		pd, err := p.Enqueue(x.Context(), event("g", 1))
		if err != nil {
			x.Fatal(err)
		}
		ctx, cancel := context.WithTimeoutCause(x.Context(), time.Second, errCancelled)
		defer cancel()
		if err := p.Flush(ctx); err != errCancelled {
			x.Errorf("Flush: %v, want the context's cause", err)
		}
		if _, err := pd.Get(x.Context()); err != nil {
			x.Errorf("the event after the end of Flush: %v", err)
		}
	}, fault.Rule{Op: "SendMessageBatch", Nth: 1, Do: fault.Delay, Delay: 4 * time.Second})
}

func TestCloseDrains(t *testing.T) {
	t.Parallel()
	bubble(t, orders, func(x *fixture) {
		p := x.publisher(func(o *fifo.Options) { o.Linger = time.Hour })
		for n := range 25 {
			if _, err := p.Enqueue(x.Context(), event(fmt.Sprint("g", n%5), n)); err != nil {
				x.Fatal(err)
			}
		}
		start := time.Now()
		if err := p.Close(x.Context()); err != nil || time.Since(start) != 0 {
			x.Errorf("Close: %v after %v, want nil at once", err, time.Since(start))
		}
		if n := len(x.srv.Messages(x.url)); n != 25 {
			x.Errorf("%d messages after Close, want 25", n)
		}
		if !p.Idle() {
			x.Error("the closed publisher is not idle")
		}

		if _, err := p.Publish(x.Context(), event("g", 1)); !errors.Is(err, fifo.ErrClosed) {
			x.Errorf("Publish after Close: %v, want ErrClosed", err)
		}
		if _, err := p.Enqueue(x.Context(), event("g", 1)); !errors.Is(err, fifo.ErrClosed) {
			x.Errorf("Enqueue after Close: %v, want ErrClosed", err)
		}
		if _, err := p.PublishAll(x.Context(), []fifo.Event{event("g", 1)}); !errors.Is(err, fifo.ErrClosed) {
			x.Errorf("PublishAll after Close: %v, want ErrClosed", err)
		}
		if err := p.Close(x.Context()); err != nil {
			x.Errorf("second Close: %v", err)
		}
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
	t.Parallel()
	bubble(t, orders, func(x *fixture) {
		p := x.publisher(func(o *fifo.Options) { o.MaxMessages = 1; o.Linger = time.Hour })
		if _, err := p.Enqueue(x.Context(), event("g", 1)); err != nil {
			x.Fatal(err)
		}
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
	t.Parallel()
	bubble(t, orders, func(x *fixture) {
		p := x.publisher()
		if _, err := p.Publish(x.Context(), event("g", 1)); err != nil {
			x.Fatal(err)
		}
		ctx, cancel := context.WithCancel(x.Context())
		cancel()
		if err := p.Flush(ctx); err != nil {
			x.Errorf("Flush: %v", err)
		}
		if err := p.Close(ctx); err != nil {
			x.Errorf("Close: %v", err)
		}
	})
}
