package host

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/guard"
)

// Hooks are the hooks around a host's handlers. They are nil where there are none.
type Hooks []guarded

type guarded struct {
	sqsonce.Hooks
	start, end, extended *guard.Guard
}

// OnError makes hooks of an Options.OnError.
func OnError(f func(context.Context, *sqsonce.Message, error)) sqsonce.Hooks {
	return sqsonce.Hooks{End: func(ctx context.Context, d sqsonce.Delivery, r sqsonce.Return) {
		if Outcomes[r.Outcome].Told {
			f(ctx, d.Message, r.Err)
		}
	}}
}

// NewHooks returns the hooks that are set, for the host pkg. It keeps nothing of all.
func NewHooks(log *slog.Logger, pkg string, all []sqsonce.Hooks) (hooks Hooks) {
	for _, h := range all {
		if h.Start != nil || h.End != nil || h.Extended != nil {
			guardOf := func(field string) *guard.Guard { return guard.New(log, pkg+": Hooks."+field) }
			hooks = append(hooks, guarded{h, guardOf("Start"), guardOf("End"), guardOf("Extended")})
		}
	}
	return hooks
}

// Call returns a call of a handler, which costs nothing without hooks: it is nil then.
func (h Hooks) Call(d sqsonce.Delivery) *Call {
	if h == nil {
		return nil
	}
	return &Call{hooks: h, delivery: d}
}

// Call is one call of a handler. The methods of a nil *Call do nothing. They may be called from any goroutine.
type Call struct {
	hooks    Hooks
	delivery sqsonce.Delivery

	mu    sync.Mutex
	begun time.Time       // zero: not started
	ctx   context.Context // of the Start hooks; nil before they have returned
	ended bool
	end   sqsonce.Return // where ended
}

// Start calls the hooks before the handler, and returns the handler's context.
func (c *Call) Start(ctx context.Context) context.Context {
	if c == nil {
		return ctx
	}
	c.mu.Lock()
	c.begun = time.Now()
	c.mu.Unlock()
	for i := range c.hooks {
		if h := &c.hooks[i]; h.Start != nil {
			ctx = h.start.Context(ctx, func(ctx context.Context) context.Context { return h.Start(ctx, c.delivery) })
		}
	}
	c.mu.Lock()
	c.ctx = ctx
	ended := c.ended
	c.mu.Unlock()
	if ended { // the host does not wait any more: a hook took too long
		c.callEnd(ctx)
	}
	return ctx
}

// End calls the hooks after the handler, once: the first end counts. It does nothing for a call that was not started, and leaves
// it to Start while that runs.
func (c *Call) End(r sqsonce.Return) {
	if c == nil {
		return
	}
	c.mu.Lock()
	ctx, again := c.ctx, c.ended || c.begun.IsZero()
	if !again {
		r.Elapsed = time.Since(c.begun)
		c.ended, c.end = true, r
	}
	c.mu.Unlock()
	if ctx != nil && !again {
		c.callEnd(ctx)
	}
}

func (c *Call) callEnd(ctx context.Context) {
	for i := len(c.hooks) - 1; i >= 0; i-- {
		if h := &c.hooks[i]; h.End != nil {
			h.end.Call(ctx, func() { h.End(ctx, c.delivery, c.end) })
		}
	}
}

// Context returns the context of the Start hooks, and otherwise the given one where they have not returned or there are none.
func (c *Call) Context(otherwise context.Context) context.Context {
	if c == nil {
		return otherwise
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx == nil {
		return otherwise
	}
	return c.ctx
}

// Extended calls the hooks while the handler runs.
func (c *Call) Extended(e sqsonce.Extension) {
	if c == nil {
		return
	}
	c.mu.Lock()
	ctx, ended := c.ctx, c.ended
	c.mu.Unlock()
	if ctx == nil || ended {
		return
	}
	for i := range c.hooks {
		if h := &c.hooks[i]; h.Extended != nil {
			h.extended.Call(ctx, func() { h.Extended(ctx, c.delivery, e) })
		}
	}
}
