package fifo_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/fifokit"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// Each counter counts what it says, and the gauges return to 0.
func TestStats(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		do     func(x *fixture, p *fifo.Publisher)
		want   fifo.Stats
		faults fault.Rule
	}{
		{"published", func(x *fixture, p *fifo.Publisher) {
			_, _ = p.PublishAll(x.Context(), []fifo.Event{event("g", 1), event("h", 1), event("h", 2)})
		}, fifo.Stats{Published: 3, Requests: 2}, fault.Rule{}},
		{"refused", func(x *fixture, p *fifo.Publisher) { _, _ = p.Publish(x.Context(), event("g", 1)) },
			fifo.Stats{Failed: 1, Requests: 1}, fault.Rule{Prob: 1, Do: fault.Error, Code: "AccessDenied"}},
		{"halted", func(x *fixture, p *fifo.Publisher) {
			_, _ = p.PublishAll(x.Context(), []fifo.Event{event("g", 1), event("g", 2), event("g", 3)})
		}, fifo.Stats{Failed: 3, Halted: 2, Requests: 1}, fault.Rule{Prob: 1, Do: fault.Error, Code: "AccessDenied"}},
		{"unknown", func(x *fixture, p *fifo.Publisher) {
			_, _ = p.Publish(x.Context(), event("g", 1))
		}, fifo.Stats{Failed: 1, Unknown: 1, Requests: 3, Repeated: 2}, fault.Rule{Prob: 1, Do: fault.LoseReply}},
		{"repeated", func(x *fixture, p *fifo.Publisher) { _, _ = p.Publish(x.Context(), event("g", 1)) },
			fifo.Stats{Published: 1, Requests: 3, Repeated: 2}, fault.Rule{Nth: 1, Times: 2, Do: fault.LoseReply}},
		{"throttled", func(x *fixture, p *fifo.Publisher) {
			_, _ = p.PublishAll(x.Context(), []fifo.Event{event("g", 1), event("h", 1)})
		}, fifo.Stats{Published: 2, Requests: 3, Repeated: 4, Throttled: 2}, fault.Rule{Nth: 1, Times: 2, Do: fault.Error, Code: "ThrottlingException"}},
		{"not accepted", func(x *fixture, p *fifo.Publisher) {
			_, _ = p.Publish(x.Context(), fifo.Event{})
			ctx, cancel := context.WithCancel(x.Context())
			cancel()
			_, _ = p.PublishAll(ctx, []fifo.Event{event("g", 1)})
		}, fifo.Stats{Failed: 2}, fault.Rule{}},
		{"withdrawn", func(x *fixture, p *fifo.Publisher) {
			ctx, cancel := context.WithTimeout(x.Context(), time.Millisecond)
			defer cancel()
			_, _ = p.Publish(ctx, event("g", 1))
		}, fifo.Stats{Failed: 1}, fault.Rule{}},
	} {
		queue := orders
		if tt.want.Unknown > 0 {
			queue = standard // three attempts, and not those of five minutes
		}
		tt.faults.Op = "SendMessageBatch"
		runIn(t, tt.name, queue, func(x *fixture) {
			p := x.publisher()
			tt.do(x, p)
			synctest.Wait()
			x.expect("stats", tt.want, p.Stats())
		}, tt.faults)
	}
}

// The gauges show what the publisher holds.
func TestStatsOfWhatIsPending(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		p := x.publisher(func(o *fifo.Options) { o.MaxMessages, o.Linger = 2, time.Minute })
		_, size, err := fifokit.Check(p, event("g", 1))
		if err != nil {
			x.Fatal(err)
		}
		check := func(when string, want fifo.Stats) {
			x.Helper()
			if diff := cmp.Diff(want, p.Stats()); diff != "" {
				x.Errorf("%s (-want +got):\n%s", when, diff)
			}
		}
		x.enqueue(p, event("g", 1))
		time.Sleep(10 * time.Second)
		x.enqueue(p, event("h", 1))
		go x.enqueue(p, event("i", 1))
		synctest.Wait()
		time.Sleep(10 * time.Second)
		check("while they linger", fifo.Stats{Pending: 2, PendingBytes: 2 * size, Waiting: 1, Oldest: 20 * time.Second})
		time.Sleep(41 * time.Second)
		check("in flight", fifo.Stats{Pending: 2, PendingBytes: 2 * size, Waiting: 1, Active: 1, Requests: 1, Oldest: 61 * time.Second})
		time.Sleep(4 * time.Second)
		check("sent", fifo.Stats{Published: 2, Pending: 1, PendingBytes: size, Requests: 1, Oldest: 2 * time.Second})
		must.Do(x, p.Close(x.Context()))
		check("closed", fifo.Stats{Published: 3, Requests: 2})
	}, fault.Rule{Op: "SendMessageBatch", Nth: 1, Do: fault.Delay, Delay: 3 * time.Second})
}
