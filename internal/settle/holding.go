package settle

import "context"

// WithHolding marks the contexts of a host that can hold a message: keep it from other consumers while no handler runs
// for it. Middleware that would wait inside the handler for another delivery of the event, and occupy a slot of the host,
// returns at once instead, with an error of host.WithEnded.
func WithHolding(ctx context.Context) context.Context {
	return context.WithValue(ctx, holdingKey{}, true)
}

// Holding reports whether ctx is from a host that can hold its message.
func Holding(ctx context.Context) bool { return ctx.Value(holdingKey{}) != nil }

type holdingKey struct{}
