package fifo_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// Calls of PublishAll that run at the same time fill requests together, as those of Publish do.
func TestCallsShareRequests(t *testing.T) {
	t.Parallel()
	bubble(t, orders, func(x *fixture) {
		p := x.publisher()
		const calls = 500
		var wg sync.WaitGroup
		for n := range calls {
			wg.Go(func() {
				if _, err := p.PublishAll(x.Context(), []fifo.Event{event(fmt.Sprint("g", n), 1)}); err != nil {
					x.Error(err)
				}
			})
		}
		wg.Wait()
		if n := len(x.sizes()); n > calls/10+8 {
			x.Errorf("%d requests for %d calls of an event each, want about %d", n, calls, calls/10)
		}
		if !p.Idle() {
			x.Error("the publisher is not idle")
		}
	}, fault.Rule{Op: "SendMessageBatch", Prob: 1, Do: fault.Delay, Delay: 20 * time.Millisecond})
}

// A call does not wait for all that was accepted before it.
func TestCallsTakeTurns(t *testing.T) {
	t.Parallel()
	bubble(t, orders, func(x *fixture) {
		p := x.publisher(func(o *fifo.Options) { o.InFlight = 1 })
		for n := range 1000 {
			x.enqueue(p, event(fmt.Sprint("g", n), 1))
		}
		start := time.Now()
		if _, err := p.PublishAll(x.Context(), []fifo.Event{event("all", 1)}); err != nil {
			x.Error(err)
		}
		if took := time.Since(start); took > 3*time.Second {
			x.Errorf("PublishAll took %v, want two requests of a second", took)
		}
		if err := p.Close(x.Context()); err != nil {
			x.Error(err)
		}
	}, fault.Rule{Op: "SendMessageBatch", Prob: 1, Do: fault.Delay, Delay: time.Second})
}

// The context of one call ends while its event may be in the queue. An event of another call that waits behind it is sent, and
// after it.
func TestOneCallersDeadlineIsNotAnothersFailure(t *testing.T) {
	t.Parallel()
	first := func(ctx context.Context, p *fifo.Publisher) error {
		_, err := p.PublishAll(ctx, []fifo.Event{event("g", 1)})
		return split(err)[0]
	}
	second := map[string]func(ctx context.Context, p *fifo.Publisher) error{
		"PublishAll": func(ctx context.Context, p *fifo.Publisher) error {
			_, err := p.PublishAll(ctx, []fifo.Event{event("g", 2), event("g", 3)})
			return err
		},
		"Publish": func(ctx context.Context, p *fifo.Publisher) error {
			_, err := p.Publish(ctx, event("g", 2))
			return errors.Join(err, func() error { _, err := p.Publish(ctx, event("g", 3)); return err }())
		},
	}
	for name, rule := range map[string]fault.Rule{
		"between attempts": {Op: "SendMessageBatch", Nth: 1, Times: 30, Do: fault.LoseReply},
		"in flight":        {Op: "SendMessageBatch", Nth: 1, Times: 3, Do: fault.Delay, Delay: time.Minute},
	} {
		for method, publish := range second {
			t.Run(name+"/"+method, func(t *testing.T) {
				t.Parallel()
				bubble(t, orders, func(x *fixture) {
					p := x.publisher()
					var wg sync.WaitGroup
					wg.Go(func() {
						ctx, cancel := context.WithTimeout(x.Context(), 700*time.Millisecond)
						defer cancel()
						start := time.Now()
						if err := first(ctx, p); reason(err) != "unknown" {
							x.Errorf("the first call: %v, want an unknown outcome", err)
						}
						if took := time.Since(start); took > 800*time.Millisecond {
							x.Errorf("the first call took %v, want 700ms", took)
						}
					})
					synctest.Wait()
					wg.Go(func() {
						if err := publish(x.Context(), p); err != nil {
							x.Errorf("the second call: %v", err)
						}
					})
					wg.Wait()
					if diff := cmp.Diff([]string{"g/v1", "g/v2", "g/v3"}, x.queued("g")); diff != "" {
						x.Errorf("queue (-want +got):\n%s", diff)
					}
					if !p.Idle() {
						x.Error("the publisher is not idle")
					}
				}, rule)
			})
		}
	}
}

// A request that two calls share goes on when one of them ends.
func TestASharedRequestIsNotCancelled(t *testing.T) {
	t.Parallel()
	bubble(t, orders, func(x *fixture) {
		p := x.publisher()
		results := make(chan error, 2)
		publish := func(group string, d time.Duration) {
			ctx, cancel := context.WithTimeout(x.Context(), d)
			defer cancel()
			start := time.Now()
			_, err := p.Publish(ctx, event(group, 1))
			if took := time.Since(start); took > d+100*time.Millisecond {
				x.Errorf("%s: %v after a context of %v", group, took, d)
			}
			results <- err
		}
		all := func(group string, d time.Duration) {
			ctx, cancel := context.WithTimeout(x.Context(), d)
			defer cancel()
			start := time.Now()
			_, err := p.PublishAll(ctx, []fifo.Event{event(group, 1)})
			if took := time.Since(start); took > d+100*time.Millisecond {
				x.Errorf("%s: %v after a context of %v", group, took, d)
			}
			results <- err
		}
		go publish("lingers", time.Minute)
		synctest.Wait()
		go all("short", time.Second) // takes the other event along
		if err := <-results; reason(split(err)[0]) != "unknown" {
			x.Errorf("the short call: %v, want an unknown outcome", err)
		}
		if err := <-results; err != nil {
			x.Errorf("the long one: %v", err)
		}
		if diff := cmp.Diff([]int{2}, x.sizes()); diff != "" {
			x.Errorf("requests (-want +got):\n%s", diff)
		}
	}, fault.Rule{Op: "SendMessageBatch", Nth: 1, Do: fault.Delay, Delay: 3 * time.Second})
}

// deaf is a client that ignores its context.
type deaf struct{ fifo.Client }

func (c deaf) SendMessageBatch(
	_ context.Context, in *sqs.SendMessageBatchInput, optFns ...func(*sqs.Options),
) (*sqs.SendMessageBatchOutput, error) {
	return c.Client.SendMessageBatch(context.Background(), in, optFns...)
}

func TestAClientThatIgnoresItsContext(t *testing.T) {
	t.Parallel()
	bubble(t, orders, func(x *fixture) {
		p, err := fifo.NewPublisher(deaf{x.sent}, x.url, "orders")
		if err != nil {
			x.Fatal(err)
		}
		for _, call := range []func(context.Context) error{
			func(ctx context.Context) error { _, err := p.PublishAll(ctx, []fifo.Event{event("g", 1)}); return err },
			func(ctx context.Context) error { _, err := p.Publish(ctx, event("h", 1)); return err },
			p.Close,
		} {
			ctx, cancel := context.WithTimeout(x.Context(), time.Second)
			start := time.Now()
			err := call(ctx)
			cancel()
			if took := time.Since(start); took > 1100*time.Millisecond || !errors.Is(err, fifo.ErrUnknownOutcome) {
				x.Errorf("%v after %v, want an unknown outcome after 1s", err, took)
			}
		}
		time.Sleep(time.Hour)
	}, fault.Rule{Op: "SendMessageBatch", Prob: 1, Do: fault.Delay, Delay: 30 * time.Second})
}
