package settle

import (
	"context"
	"time"
)

// WithLongestReturn marks the contexts of a host with how long after its first delivery a message of its queue can come
// back: host.LongestReturn. Middleware that remembers messages for less says so. 0: not known.
func WithLongestReturn(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, longestReturnKey{}, d)
}

// LongestReturn returns what WithLongestReturn set, or 0.
func LongestReturn(ctx context.Context) time.Duration {
	d, _ := ctx.Value(longestReturnKey{}).(time.Duration)
	return d
}

type longestReturnKey struct{}
