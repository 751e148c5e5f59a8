package settle

import "context"

type attemptsKey struct{}

// CountsAttempts marks the contexts of a host whose messages have attempts as their ReceiveCount: a message that was postponed comes
// with the same number.
func CountsAttempts(ctx context.Context) context.Context {
	return context.WithValue(ctx, attemptsKey{}, true)
}

// WaitsUncounted reports whether the host of ctx is one of [CountsAttempts].
func WaitsUncounted(ctx context.Context) bool {
	marked, _ := ctx.Value(attemptsKey{}).(bool)
	return marked
}
