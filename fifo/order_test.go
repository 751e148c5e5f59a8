package fifo_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"pgregory.net/rapid"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// transientFault returns a fault that ends within the window of every event.
func transientFault(rt *rapid.T) fault.Rule {
	r := fault.Rule{
		Op:    "SendMessageBatch",
		Nth:   rapid.IntRange(1, 30).Draw(rt, "nth"),
		Times: rapid.IntRange(1, 3).Draw(rt, "times"),
		Do: rapid.SampledFrom([]fault.Kind{
			fault.Error, fault.LoseReply, fault.Reset, fault.Delay, fault.FailEntries, fault.DropEntries, fault.Replay,
		}).Draw(rt, "kind"),
	}
	switch r.Do {
	case fault.Error:
		r.After = rapid.Bool().Draw(rt, "after")
		if !r.After { // SQS does not refuse a request after its effect
			r.Code = rapid.SampledFrom([]string{"", "ServiceUnavailable", "RequestThrottled", "ThrottlingException"}).Draw(rt, "code")
		}
	case fault.Delay: // after 5 s the attempt is cancelled; its effect comes within the 10 s that the window leaves for it
		r.Delay = rapid.SampledFrom([]time.Duration{time.Second, 4 * time.Second, 14 * time.Second}).Draw(rt, "delay")
	case fault.Replay:
		r.Delay = rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute}).Draw(rt, "delay")
	case fault.FailEntries, fault.DropEntries:
		r.Entries = rapid.SliceOfN(rapid.IntRange(0, 9), 0, 3).Draw(rt, "entries")
	}
	if r.Do == fault.FailEntries {
		r.Code = rapid.SampledFrom([]string{"InternalError", "RequestThrottled", "KMS.ThrottlingException"}).Draw(rt, "code")
	}
	return r
}

// lastingFault returns a fault that may last longer than a window, or a refusal.
func lastingFault(rt *rapid.T) fault.Rule {
	r := transientFault(rt)
	switch r.Do {
	case fault.Replay:
		r.Delay = min(r.Delay, 9*time.Second) // a later copy could come after the deduplication interval
	case fault.Reset, fault.LoseReply, fault.DropEntries:
		r.Times = rapid.IntRange(1, 200).Draw(rt, "many times")
	case fault.FailEntries:
		r.Code = rapid.SampledFrom([]string{"InternalError", "InvalidMessageContents"}).Draw(rt, "code")
	case fault.Error:
		if !r.After {
			r.Code = rapid.SampledFrom([]string{"RequestThrottled", "AccessDenied"}).Draw(rt, "code")
		}
	}
	return r
}

// TestLastingFaults: with any faults, every event in the queue is there once and in order, and the results match the queue.
func TestLastingFaults(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) { drawStorm(rt, t, lastingFault, &storm{once: true}) })
}

// split returns the errors that PublishAll joins.
func split(err error) []*fifo.PublishError {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	var all []*fifo.PublishError
	for _, err := range joined.Unwrap() {
		if pe, ok := errors.AsType[*fifo.PublishError](err); ok {
			all = append(all, pe)
		}
	}
	return all
}

// Calls of PublishAll that run at the same time fill requests together, as those of Publish do.
func TestCallsShareRequests(t *testing.T) {
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
		x.expectIdle(p)
	}, fault.Rule{Op: "SendMessageBatch", Prob: 1, Do: fault.Delay, Delay: 20 * time.Millisecond})
}

// A call does not wait for all that was accepted before it.
func TestCallsTakeTurns(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		p := x.publisher(func(o *fifo.Options) { o.MaxRequests = 1 })
		x.enqueue(p, each(1000, 1)...)
		start := time.Now()
		must.Get(p.PublishAll(x.Context(), []fifo.Event{event("all", 1)}))(x)
		if took := time.Since(start); took > 3*time.Second {
			x.Errorf("PublishAll took %v, want two requests of a second", took)
		}
		must.Do(x, p.Close(x.Context()))
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
	bubble(t, orders, func(x *fixture) {
		p := must.Get(fifo.NewPublisher(deaf{x.sent}, x.url, "orders"))(x)
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
