package fifo_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

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
			t.Run(tt.name+" "+other, func(t *testing.T) {
				t.Parallel()
				rule := tt.fault
				rule.Op = "SendMessageBatch"
				bubble(t, orders, func(x *fixture) {
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
							var pending *fifo.Pending
							if pending, b = p.Enqueue(context.Background(), event("g", 3)); b == nil {
								_, b = pending.Wait(context.Background())
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
					if diff := cmp.Diff([]string{"g/v1", "g/v3"}, x.queued("g")); diff != "" {
						x.Errorf("queue (-want +got):\n%s", diff)
					}
					if !p.Idle() {
						x.Error("the publisher is not idle")
					}
					time.Sleep(2 * time.Hour)
				}, rule)
			})
		}
	}
}

// Each call that waits behind the event sends it on until its own deadline. No call leaves anything behind.
func TestDeadlinesOneAfterTheOther(t *testing.T) {
	t.Parallel()
	for _, do := range []fault.Kind{fault.Delay, fault.Reset, fault.LoseReply} {
		t.Run(do.String(), func(t *testing.T) {
			t.Parallel()
			bubble(t, orders, func(x *fixture) {
				p := x.publisher()
				start := time.Now()
				var calls []<-chan error
				for n := range 5 {
					calls = append(calls, publishAll(p, time.Duration(n+1)*time.Second, event("g", n), event("h", n)))
				}
				for n, call := range calls {
					errs := split(<-call)
					if took, deadline := time.Since(start), time.Duration(n+1)*time.Second; took != deadline {
						x.Errorf("call %d returned after %v, want %v", n, took, deadline)
					}
					if len(errs) != 2 || x.sent.inFlight() > 0 && n == 4 {
						x.Errorf("call %d: %v, want two errors", n, errs)
						continue
					}
					want := "not sent"
					if n == 0 {
						want = "unknown"
					}
					if reason(errs[0]) != want || reason(errs[1]) != want {
						x.Errorf("call %d: %v, want %s", n, errs, want)
					}
				}
				if !p.Idle() || x.sent.inFlight() > 0 {
					x.Error("the publisher is not idle after the last call")
				}
				attempts := x.sent.attemptsOf("g/v0")
				time.Sleep(2 * time.Hour)
				if n := x.sent.attemptsOf("g/v0"); n != attempts || attempts < 2 {
					x.Errorf("%d attempts, then %d, want some and no more", attempts, n)
				}
			}, fault.Rule{Op: "SendMessageBatch", Prob: 1, Do: do, Delay: time.Hour})
		})
	}
}

// slowToEnd needs some time to return after its context has ended. It counts the attempts that begin after that.
type slowToEnd struct {
	fifo.Client
	late int
}

func (c *slowToEnd) SendMessageBatch(
	ctx context.Context, in *sqs.SendMessageBatchInput, optFns ...func(*sqs.Options),
) (*sqs.SendMessageBatchOutput, error) {
	if ctx.Err() != nil {
		c.late++
	}
	defer time.Sleep(10 * time.Millisecond)
	return c.Client.SendMessageBatch(ctx, in, optFns...)
}

// No request that a call sends on for another one is left when it returns.
func TestNothingIsSentOnAfterTheCall(t *testing.T) {
	t.Parallel()
	bubble(t, orders, func(x *fixture) {
		x.sent.Client = &slowToEnd{Client: x.sqs}
		p := x.publisher()
		publishAll(p, time.Second, event("g", 1))
		if err := <-publishAll(p, 2*time.Second, event("g", 2)); reason(err) != "not sent" {
			x.Errorf("PublishAll: %v, want ErrNotSent", err)
		}
		if x.sent.inFlight() > 0 || x.sent.attemptsOf("g/v1") != 2 || !p.Idle() {
			x.Errorf("%d requests in flight, %d attempts, want none and two", x.sent.inFlight(), x.sent.attemptsOf("g/v1"))
		}
	}, fault.Rule{Op: "SendMessageBatch", Prob: 1, Do: fault.Delay, Delay: time.Hour})
}

// The event is sent on by a call that goes on, and not by the one that has ended, although that has an event behind it too.
func TestSentOnByACallThatGoesOn(t *testing.T) {
	t.Parallel()
	bubble(t, orders, func(x *fixture) {
		c := &slowToEnd{Client: x.sqs}
		x.sent.Client = c
		x.outage(10*time.Second, fault.Rule{Do: fault.Reset})
		p := x.publisher()
		a := publishAll(p, 4*time.Second, event("g", 1), event("g", 2))
		b := publishAll(p, time.Minute, event("g", 3))
		if err := <-a; len(split(err)) != 2 {
			x.Errorf("the first call: %v, want two errors", err)
		}
		if err := <-b; err != nil || c.late > 0 {
			x.Errorf("the second call: %v; %d attempts for a call that had ended, want none", err, c.late)
		}
	})
}

// An event that is sent on has the window that began with its own first attempt, and those behind it do not overtake it.
func TestSentOnWithinItsWindow(t *testing.T) {
	t.Parallel()
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
		if _, err := p.PublishAll(x.Context(), []fifo.Event{event("g", 1), event("g", 2)}); err != nil {
			x.Errorf("again: %v", err)
		}
		if !p.Idle() {
			x.Error("the publisher is not idle")
		}
	})
}

// Many calls whose deadlines end in every moment of a request: capacity, groups and conflicts are given back.
func TestCarriedEntriesAreGivenBack(t *testing.T) {
	t.Parallel()
	bubble(t, orders, func(x *fixture) {
		p := x.publisher(func(o *fifo.Options) { o.MaxMessages = 40 })
		for n := range 300 {
			publishAll(p, time.Duration(n%17+1)*20*time.Millisecond, event("g", n), event("h", n))
			time.Sleep(7 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		if !p.Idle() {
			x.Error("the publisher is not idle")
		}
		time.Sleep(10 * time.Minute)
		x.srv.Set(fault.Plan{})
		var es []fifo.Event
		for n := range 40 {
			es = append(es, event("i", 1000+n))
		}
		if _, err := p.PublishAll(x.Context(), es); err != nil {
			x.Errorf("with all capacity: %v", err)
		}
		if n := p.Remembered(); n != len(es) {
			x.Errorf("%d events remembered, want %d", n, len(es))
		}
	}, fault.Rule{Op: "SendMessageBatch", Prob: 0.5, Do: fault.Delay, Delay: 50 * time.Millisecond, After: true},
		fault.Rule{Op: "SendMessageBatch", Prob: 0.5, Do: fault.LoseReply})
}
