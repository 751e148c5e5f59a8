// Package thaw keeps calls off connections that may have died while the process was frozen.
//
// Lambda freezes a process between two invocations. Meanwhile the other side closes idle connections, and what stands in
// between forgets them; the process learns of neither. A request on such a connection may never be answered, and costs
// the next invocation a timeout for each connection that was kept. So the connections that were idle over a pause are
// closed as they come up, before anything is written to them, and the call takes another one.
package thaw

import (
	"context"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"
)

// pause is the silence after which kept connections are not trusted: longer than a renewal's interval, so that a process
// that is at work keeps its connections, and shorter than what AWS's endpoints and gateways let pass. A process that is
// merely idle pays a handshake.
const pause = 20 * time.Second

// mostClosed bounds what a call closes: more than any pool of idle connections holds.
const mostClosed = 1000

// Conns watches the connections of one client. The zero value is ready.
type Conns struct {
	mu    sync.Mutex
	heard time.Time // the last answer
	since time.Time // the first call after the last pause: what has been idle since before is not trusted
}

// Do calls f, which sends a request with its context, until it does not come upon a connection from before a pause. It
// returns f's error. f may be called several times, and nothing is sent but by the last of them.
//
// It works with net/http's transport, whichever client is around it. Any other does not report its connections: then f
// is called once.
func (c *Conns) Do(ctx context.Context, f func(context.Context) error) error {
	for range mostClosed {
		closed, err := c.once(ctx, f)
		if err == nil || !closed || ctx.Err() != nil {
			return err
		}
	}
	return f(ctx)
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
				cancel() // or the SDK would wait, and try again by itself
			}
		},
		GotFirstResponseByte: func() { c.answered(time.Now()) },
	}))
	return stale.Load(), err
}

func (c *Conns) begin(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// By the clock that has run further: either one may have stood still in a freeze.
	if !c.heard.IsZero() && max(now.Sub(c.heard), now.Round(0).Sub(c.heard.Round(0))) > pause {
		c.since = now
	}
}

// stale reports whether a connection has been idle since before the last pause.
func (c *Conns) stale(idle time.Duration, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.since.IsZero() && idle > now.Sub(c.since)
}

func (c *Conns) answered(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = now
}
