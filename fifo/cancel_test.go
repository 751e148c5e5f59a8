package fifo_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

var errCancelled = errors.New("cancelled by the caller")

func TestPublishCancelled(t *testing.T) {
	t.Parallel()
	second := fault.Rule{Op: "SendMessageBatch", Nth: 1, Do: fault.Delay, Delay: time.Second}
	tests := []struct {
		name   string
		after  time.Duration // of the cancellation; negative: before the call
		faults []fault.Rule
		want   error
		queued []string // of event 1, whose caller cancels, and event 2 behind it
	}{
		{"before the call", -1, nil, fifo.ErrNotSent, []string{"g/v2"}},
		{"while it lingers", 5 * time.Millisecond, nil, fifo.ErrNotSent, []string{"g/v2"}},
		{"in a request", time.Second / 2, []fault.Rule{second}, fifo.ErrUnknownOutcome, []string{"g/v1", "g/v2"}},
		{"after the result", time.Minute, nil, nil, []string{"g/v1", "g/v2"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, orders, func(x *fixture) {
				p := x.publisher()
				ctx, cancel := context.WithCancelCause(x.Context())
				defer cancel(nil)
				if tt.after < 0 {
					cancel(errCancelled)
				} else {
					defer time.AfterFunc(tt.after, func() { cancel(errCancelled) }).Stop()
				}
				first := make(chan error, 1)
				go func() {
					_, err := p.Publish(ctx, event("g", 1))
					first <- err
				}()
				synctest.Wait()
				second, err := p.Enqueue(x.Context(), event("g", 2))
				if err != nil {
					x.Fatal(err)
				}
				if err := <-first; !errors.Is(err, tt.want) || tt.want != nil && !errors.Is(err, errCancelled) {
					x.Errorf("Publish: %v, want %v and the context's cause", err, tt.want)
				}
				if _, err := second.Get(x.Context()); err != nil {
					x.Errorf("the event behind: %v", err)
				}
				if diff := cmp.Diff(tt.queued, x.queued("g")); diff != "" {
					x.Errorf("queue (-want +got):\n%s", diff)
				}
			}, tt.faults...)
		})
	}
}

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
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, standard, func(x *fixture) {
				p := x.publisher(func(o *fifo.Options) { *o = tt.opts; o.Linger = time.Hour })
				ev := func(n int) fifo.Event {
					e := event("g", n)
					e.Body = strings.Repeat("x", tt.body)
					return e
				}
				for n := range tt.fit {
					if _, err := p.Enqueue(x.Context(), ev(n)); err != nil {
						x.Fatal(err)
					}
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
				if err := p.Flush(x.Context()); err != nil {
					x.Errorf("Flush: %v", err)
				}
				synctest.Wait()
				if err := p.Flush(x.Context()); err != nil {
					x.Errorf("Flush: %v", err)
				}
				if err := <-waiting; err != nil {
					x.Errorf("Publish that waited for capacity: %v", err)
				}
			})
		})
	}
}
