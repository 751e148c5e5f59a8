package fifo_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

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
		if _, err := pd.Wait(x.Context()); err != nil || time.Since(start) != time.Hour {
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
		if _, err := pd.Wait(x.Context()); err != nil {
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

// A Close whose context ends during an outage returns an error for every event that has no result.
func TestCloseInAnOutage(t *testing.T) {
	t.Parallel()
	bubble(t, orders, func(x *fixture) {
		// Replies are lost; the entry of the second group is refused; the request of the third group hangs until its context ends.
		p := x.publisher(func(o *fifo.Options) { o.Linger, o.InFlight = -1, 1 })
		if _, err := p.Publish(x.Context(), event("sent", 1)); err != nil {
			x.Fatal(err)
		}
		x.srv.Set(fault.Plan{Rules: []fault.Rule{
			{Op: "SendMessageBatch", Nth: 1, Do: fault.LoseReply},
			{Op: "SendMessageBatch", Nth: 2, Do: fault.FailEntries},
			{Op: "SendMessageBatch", Nth: 3, Times: 100, Do: fault.Delay, Delay: time.Hour},
		}})
		enqueue := func(e fifo.Event) {
			x.Helper()
			if _, err := p.Enqueue(x.Context(), e); err != nil {
				x.Fatal(err)
			}
			synctest.Wait() // its request is in flight, or has ended
		}
		enqueue(event("lost", 1))
		enqueue(event("refused", 1))
		enqueue(event("hangs", 1))
		enqueue(event("lost", 2))
		enqueue(event("hangs", 2))
		enqueue(event("waits", 1))

		ctx, cancel := context.WithTimeoutCause(x.Context(), 2*time.Second, errCancelled)
		defer cancel()
		start := time.Now()
		err := p.Close(ctx)
		if took := time.Since(start); took != 2*time.Second {
			x.Errorf("Close returned after %v, want 2s: with its context", took)
		}
		got := make(map[string]string)
		for _, pe := range split(err) {
			if !errors.Is(pe, fifo.ErrClosed) || !errors.Is(pe, errCancelled) {
				x.Errorf("error %v, want the context's cause in it", pe)
			}
			if got[pe.EventID] != "" {
				x.Errorf("event %s has two errors", pe.EventID)
			}
			got[pe.EventID] = reason(pe)
		}
		want := map[string]string{
			"lost/v1": "unknown", "refused/v1": "not sent", "hangs/v1": "unknown",
			"lost/v2": "not sent", "hangs/v2": "not sent", "waits/v1": "not sent",
		}
		// The head of the second group may be sent again, in a request that hangs, before Close ends.
		if got["refused/v1"] == "unknown" {
			want["refused/v1"] = "unknown"
		}
		if diff := cmp.Diff(want, got); diff != "" {
			x.Errorf("errors of Close (-want +got):\n%s", diff)
		}
		synctest.Wait()
		if !p.Idle() || x.sent.inFlight() != 0 {
			x.Error("the closed publisher is not idle")
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

// PublishAll ends when Close cancels all requests, and both return the same errors.
func TestCloseCancelsPublishAll(t *testing.T) {
	t.Parallel()
	bubble(t, orders, func(x *fixture) {
		p := x.publisher()
		all := make(chan error, 1)
		go func() {
			_, err := p.PublishAll(x.Context(), []fifo.Event{event("g", 1), event("g", 2)})
			all <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeoutCause(x.Context(), time.Second, errCancelled)
		defer cancel()
		byClose := p.Close(ctx)
		for _, err := range []error{byClose, <-all} {
			var got []string
			for _, pe := range split(err) {
				got = append(got, pe.EventID+" "+reason(pe))
			}
			if diff := cmp.Diff([]string{"g/v1 unknown", "g/v2 not sent"}, got); diff != "" {
				x.Errorf("errors (-want +got):\n%s", diff)
			}
		}
	}, fault.Rule{Op: "SendMessageBatch", Prob: 1, Do: fault.Delay, Delay: time.Hour})
}

func TestCloseCancelsBetweenAttempts(t *testing.T) {
	t.Parallel()
	bubble(t, orders, func(x *fixture) {
		p := x.publisher()
		start := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := p.PublishAll(x.Context(), []fifo.Event{event("all", 1)})
			if took := time.Since(start); took != 3*time.Second || reason(err) != "not sent" {
				x.Errorf("PublishAll: %v after %v, want ErrNotSent after 3s", err, took)
			}
		})
		wg.Go(func() {
			_, err := p.Publish(x.Context(), event("one", 1))
			if took := time.Since(start); took != 3*time.Second || reason(err) != "not sent" {
				x.Errorf("Publish: %v after %v, want ErrNotSent after 3s", err, took)
			}
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeoutCause(x.Context(), 3*time.Second, errCancelled)
		defer cancel()
		err := p.Close(ctx)
		if took := time.Since(start); took != 3*time.Second || len(split(err)) != 2 {
			x.Errorf("Close: %v after %v, want two errors after 3s", err, took)
		}
		wg.Wait()
		if !p.Idle() {
			x.Error("the closed publisher is not idle")
		}
	}, fault.Rule{Op: "SendMessageBatch", Prob: 1, Do: fault.FailEntries})
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
