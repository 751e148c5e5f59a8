package dedup

import (
	"context"
	"sync"
	"time"
)

// callEnds are the ends of calls that only time ends. Calls that begin at about the same time share one, because a timer and a
// context for each are five objects a message.
type callEnds struct {
	mu     sync.Mutex
	newest context.Context
	since  time.Time
}

// endsShared is the part of a timeout within which calls share an end: so much earlier it may come.
const endsShared = 50

// of returns a context with ctx's values that ends after the timeout, and not with ctx.
func (e *callEnds) of(ctx context.Context, timeout time.Duration) context.Context {
	return callContext{context.WithoutCancel(ctx), e.after(timeout), time.Now().Add(timeout)}
}

func (e *callEnds) after(timeout time.Duration) context.Context {
	e.mu.Lock()
	defer e.mu.Unlock()
	if now := time.Now(); e.newest == nil || now.Sub(e.since) >= timeout/endsShared {
		end, cancel := context.WithCancel(context.Background())
		time.AfterFunc(timeout, cancel)
		e.newest, e.since = end, now
	}
	return e.newest
}

// callContext ends with end, which is at its deadline or a little earlier.
type callContext struct {
	context.Context // its values
	end             context.Context
	deadline        time.Time
}

func (c callContext) Deadline() (time.Time, bool) { return c.deadline, true }
func (c callContext) Done() <-chan struct{}       { return c.end.Done() }

func (c callContext) Err() error {
	if c.end.Err() != nil {
		return context.DeadlineExceeded
	}
	return nil
}

// AfterFunc lets package context derive from c without a goroutine.
func (c callContext) AfterFunc(f func()) (stop func() bool) { return context.AfterFunc(c.end, f) }
