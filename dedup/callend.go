package dedup

import (
	"context"
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
)

// callEnds are the ends of calls that only time ends.
type callEnds struct{ ends host.Ends }

// of returns a context with ctx's values that ends after the timeout or a little earlier, and not with ctx.
func (e *callEnds) of(ctx context.Context, timeout time.Duration) context.Context {
	return callContext{context.WithoutCancel(ctx), e.ends.After(context.Background(), timeout), time.Now().Add(timeout)}
}

// callContext ends with end, which is at its deadline or a little earlier.
type callContext struct {
	context.Context // its values
	end             context.Context
	deadline        time.Time
}

func (c callContext) Deadline() (time.Time, bool) { return c.deadline, true }
func (c callContext) Done() <-chan struct{}       { return c.end.Done() }
func (c callContext) Err() error                  { return c.end.Err() }

// AfterFunc lets package context derive from c without a goroutine.
func (c callContext) AfterFunc(f func()) (stop func() bool) { return context.AfterFunc(c.end, f) }
