// Package thaw closes connections that may have died while the process was frozen, before a call uses them.
//
// Lambda freezes a process between two invocations. Meanwhile the server closes its idle connections, and gateways drop
// them; the process does not learn of either. A request on such a connection may never get a response: each idle connection
// of the client may cost the next invocation a timeout. So a call that gets a connection which was idle during a pause
// closes it, before anything is written to it, and gets another one.
package thaw

import (
	"context"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"
)

// pause is the time without a response after which idle connections count as dead. It is longer than the interval of lease
// renewals, so that a busy process does not close its connections, and shorter than the idle timeouts of AWS's endpoints and
// gateways. A process that was idle, and not frozen, makes one new connection more than it would need.
const pause = 20 * time.Second

// mostClosed is the most connections that a call closes. No pool has as many idle ones.
const mostClosed = 1000

// Conns watches the connections of one client. The zero value is ready.
type Conns struct {
	mu       sync.Mutex
	response time.Time // the last one
	thawed   time.Time // the first call after the last pause, or the last Distrust; a connection that was idle before it counts as dead
}

// Do calls f, which sends a request with the context that it gets, and calls it again while it gets a connection from before
// a pause. It returns the error of the last call. Only the last call sends its request.
//
// It works with net/http's transport under any client. Another transport does not report its connections: then f is called
// once.
func (c *Conns) Do(ctx context.Context, f func(context.Context) error) error {
	for range mostClosed {
		closed, err := c.once(ctx, f)
		if err == nil || !closed || ctx.Err() != nil {
			return err
		}
	}
	return f(ctx)
}

// Distrust has later calls close the connections that are idle now. Those of a call that got no answer may have died with its own.
func (c *Conns) Distrust() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.thawed = time.Now()
}

func (c *Conns) once(ctx context.Context, f func(context.Context) error) (closed bool, err error) {
	c.begin(time.Now())
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var stale atomic.Bool
	err = f(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(i httptrace.GotConnInfo) {
			if i.WasIdle && c.stale(i.IdleTime, time.Now()) {
				stale.Store(true)
				_ = i.Conn.Close()
				cancel() // otherwise the SDK waits, and retries by itself
			}
		},
		GotFirstResponseByte: func() { c.responded(time.Now()) },
	}))
	return stale.Load(), err
}

func (c *Conns) begin(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// The larger of the monotonic and the wall clock's difference: either clock may stand still during a freeze.
	if !c.response.IsZero() && max(now.Sub(c.response), now.Round(0).Sub(c.response.Round(0))) > pause {
		c.thawed = now
	}
}

// stale reports whether a connection has been idle since before the last pause.
func (c *Conns) stale(idle time.Duration, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.thawed.IsZero() && idle > now.Sub(c.thawed)
}

func (c *Conns) responded(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.response = now
}
