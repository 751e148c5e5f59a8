package host

import (
	"context"
	"sync"
	"time"
)

// Ends are the ends of calls. Calls that begin at about the same time share one, because a timer and a context for each are five objects,
// and timers are in one heap for the whole process.
type Ends struct {
	mu      sync.Mutex
	newest  context.Context
	cancel  context.CancelFunc // never called: others may have the context
	since   time.Time
	timeout time.Duration
}

// endsShared is the part of a timeout within which calls share an end. It may come that much earlier.
const endsShared = 50

// After returns a context that ends with parent, or after the timeout or up to a fiftieth of it earlier. The parent is always the same.
func (e *Ends) After(parent context.Context, timeout time.Duration) context.Context {
	e.mu.Lock()
	defer e.mu.Unlock()
	if now := time.Now(); e.newest == nil || e.timeout != timeout || now.Sub(e.since) >= timeout/endsShared {
		e.newest, e.cancel = context.WithTimeout(parent, timeout)
		e.since, e.timeout = now, timeout
	}
	return e.newest
}
