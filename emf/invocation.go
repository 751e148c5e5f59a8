package emf

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/host"
)

// invocation is what is known of one invocation. It is found through the context of its messages: several may run at once.
type invocation struct {
	cold bool

	mu        sync.Mutex // handlers run beside each other, and an abandoned one beside Finish
	durations []float64  // of handlers, in milliseconds
	inQueue   []float64  // the times in the queue, in milliseconds

	redelivered, duplicates, takeovers, storeErrors, notCompleted int
}

type invocationKey struct{ m *Metrics }

func (m *Metrics) begin(ctx context.Context, _ []events.SQSMessage) context.Context {
	return context.WithValue(ctx, invocationKey{m}, &invocation{cold: !m.warm.Swap(true)})
}

// count changes the counts of the invocation of ctx. Without one, as in a worker with the same Once, it does nothing.
func (m *Metrics) count(ctx context.Context, f func(v *invocation)) {
	if v, ok := ctx.Value(invocationKey{m}).(*invocation); ok {
		v.mu.Lock()
		defer v.mu.Unlock()
		f(v)
	}
}

func (m *Metrics) start(ctx context.Context, d sqsonce.Delivery) context.Context {
	waited, known := host.TimeInQueue(d.Message)
	m.count(ctx, func(v *invocation) {
		if known {
			v.inQueue = append(v.inQueue, milliseconds(waited))
		}
		if d.Message.ReceiveCount > 1 {
			v.redelivered++
		}
	})
	return ctx
}

func (m *Metrics) end(ctx context.Context, _ sqsonce.Delivery, r sqsonce.Return) {
	m.count(ctx, func(v *invocation) { v.durations = append(v.durations, milliseconds(r.Elapsed)) })
}

func (m *Metrics) decided(ctx context.Context, d dedup.Decision) {
	m.count(ctx, func(v *invocation) {
		switch d.Outcome {
		case dedup.DecidedDuplicate:
			v.duplicates++
		case dedup.DecidedTakeover, dedup.DecidedSuspect:
			v.takeovers++
		}
	})
}

// called counts failed calls. A renewal that its handler's return has cancelled is none.
func (m *Metrics) called(ctx context.Context, c dedup.StoreCall) {
	if c.Result == "error" && !errors.Is(c.Err, context.Canceled) {
		m.count(ctx, func(v *invocation) { v.storeErrors++ })
	}
}

func (m *Metrics) incident(ctx context.Context, i dedup.Incident) {
	if i.Kind == dedup.IncidentNotCompleted {
		m.count(ctx, func(v *invocation) { v.notCompleted++ })
	}
}

// milliseconds rounds to a microsecond.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1_000 }
