package fifo_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/fifokit"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// An event that may be in the queue by an earlier call is not certainly not there because it is refused now. One with a bad
// field is another event.
func TestRefuseAfterAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	inBubble(t, orders, func(x *fixture) {
		p := x.publisher()
		ctx, cancel := context.WithTimeout(x.Context(), 1)
		defer cancel()
		if _, err := p.PublishAll(ctx, []fifo.Event{event("g", 1)}); reason(err) != "unknown" {
			x.Fatalf("%v, want an unknown outcome", err)
		}
		err := fifokit.Refuse(p, x.Context(), event("g", 1), errors.New("no body"))
		if pe, _ := errors.AsType[*fifo.PublishError](err); reason(err) != "unknown" || errors.Is(err, fifo.ErrNotSent) || pe.FirstAttempt.IsZero() {
			x.Errorf("%v, want an unknown outcome", err)
		}
		err = fifokit.Refuse(p, x.Context(), event("g", 1), &sqsonce.OptionError{Field: "Event.Body"})
		if _, ok := errors.AsType[*sqsonce.OptionError](err); !ok || reason(err) != "not sent" {
			x.Errorf("%v, want a OptionError", err)
		}
	}, fault.Rule{Op: "SendMessageBatch", Prob: 1, Do: fault.LoseReply})
}

// publishAll calls PublishAll on a goroutine of its own, under a context with a timeout.
func publishAll(p *fifo.Publisher, timeout time.Duration, es ...fifo.Event) <-chan error {
	done := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeoutCause(context.Background(), timeout, errCancelled)
		defer cancel()
		_, err := p.PublishAll(ctx, es)
		done <- err
	}()
	synctest.Wait()
	return done
}

// The deadline of one call ends while its event is in a request, or between two. The events of other callers behind it are
// sent, after it.
func TestADeadlineIsItsCallersOnly(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		fault fault.Rule
	}{
		{"in a request that arrives later", fault.Rule{Nth: 1, Do: fault.Delay, Delay: time.Second}},
		{"in a request that never arrives", fault.Rule{Nth: 1, Do: fault.Delay, Delay: time.Hour}},
		{"between attempts", fault.Rule{Nth: 1, Times: 8, Do: fault.LoseReply}},
		{"before any arrived", fault.Rule{Nth: 1, Times: 8, Do: fault.Reset}},
	} {
		for _, other := range []string{"Publish", "Enqueue", "PublishAll"} {
			rule := tt.fault
			rule.Op = "SendMessageBatch"
			runIn(t, tt.name+" "+other, orders, func(x *fixture) {
				p := x.publisher()
				start := time.Now()
				a := publishAll(p, 100*time.Millisecond, event("g", 1), event("g", 2))
				var b error
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					switch other {
					case "Publish":
						_, b = p.Publish(context.Background(), event("g", 3))
					case "Enqueue":
						var pending *fifo.PublishResult
						if pending, b = p.Enqueue(context.Background(), event("g", 3)); b == nil {
							_, b = pending.Get(context.Background())
						}
					default:
						_, b = p.PublishAll(context.Background(), []fifo.Event{event("g", 3)})
					}
				}()
				errs := split(<-a)
				if len(errs) != 2 || reason(errs[0]) != "unknown" || reason(errs[1]) != "not sent" || !errors.Is(errs[0], errCancelled) {
					x.Errorf("the call with the deadline: %v, want an unknown outcome and ErrNotSent", errs)
				}
				if took := time.Since(start); took != 100*time.Millisecond {
					x.Errorf("it returned after %v, want 100ms", took)
				}
				if <-ended; b != nil {
					x.Errorf("the other call: %v", b)
				}
				x.expect("queue", []string{"g/v1", "g/v3"}, x.queued("g"))
				x.expectIdle(p)
				time.Sleep(2 * time.Hour)
			}, rule)
		}
	}
}

// An event that is sent on has the window that began with its own first attempt, and those behind it do not overtake it.
func TestSentOnWithinItsWindow(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		x.outage(10*time.Minute, fault.Rule{Do: fault.Reset})
		p := x.publisher()
		start := time.Now()
		a := publishAll(p, 100*time.Second, event("g", 1))
		b := publishAll(p, time.Hour, event("g", 2))
		if err := <-a; reason(err) != "unknown" {
			x.Errorf("the first call: %v, want an unknown outcome", err)
		}
		if err := <-b; reason(err) != "halted" || time.Since(start) > 290*time.Second {
			x.Errorf("the second call: %v after %v, want ErrGroupHalted at the end of the window", err, time.Since(start))
		}
		time.Sleep(10 * time.Minute)
		must.Get(p.PublishAll(x.Context(), []fifo.Event{event("g", 1), event("g", 2)}))(x)
		x.expectIdle(p)
	})
}
