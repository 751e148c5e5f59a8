package dedup

import (
	"context"
	"sync"
	"time"
)

// own returns a context for what must be written although the delivery's context has ended.
func (o *Once) own(ctx context.Context) (context.Context, context.CancelFunc) {
	c := &ownContext{Context: context.WithoutCancel(ctx), until: time.Now().Add(o.o.CallTimeout)}
	return c, c.cancel
}

// ownContext is what [context.WithDeadline] makes, but later: its timer and its channel are made for the first who waits
// for the end. Most calls are answered long before it, and a store that knows its answer to come in time waits for
// nothing else.
type ownContext struct {
	context.Context // the delivery's values, and no end
	until           time.Time

	mu       sync.Mutex
	canceled bool
	timed    context.Context
	stop     context.CancelFunc
}

func (c *ownContext) timedLocked() context.Context {
	if c.timed == nil {
		c.timed, c.stop = context.WithDeadline(c.Context, c.until)
		if c.canceled {
			c.stop()
		}
	}
	return c.timed
}

// Deadline implements [context.Context].
func (c *ownContext) Deadline() (time.Time, bool) { return c.until, true }

// Done implements [context.Context].
func (c *ownContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.timedLocked().Done()
}

// Err implements [context.Context].
func (c *ownContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timed == nil && !c.canceled && time.Until(c.until) > 0 {
		return nil
	}
	return c.timedLocked().Err()
}

// Value implements [context.Context]. Package context looks for the end of a context by its values, and finds what it
// has made itself.
func (c *ownContext) Value(key any) any {
	c.mu.Lock()
	timed := c.timed
	c.mu.Unlock()
	if timed != nil {
		return timed.Value(key)
	}
	return c.Context.Value(key)
}

func (c *ownContext) cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.canceled = true
	if c.stop != nil {
		c.stop()
	}
}
