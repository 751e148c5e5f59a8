package fifo_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

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
		p := x.publisher(func(o *fifo.Options) { o.MaxRequests = 1 })
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
