// Package guard calls hooks for telemetry. It imports nothing of the repository: the root package and internal/host use it.
package guard

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
)

// Guard calls one hook. A hook that panics is logged once, and is not called again.
type Guard struct {
	off  atomic.Bool
	log  *slog.Logger
	name string // "sqsworker: Hooks.Start"
}

// New returns the guard of the hook with that name. A nil log is slog.Default().
func New(log *slog.Logger, name string) *Guard { return &Guard{log: log, name: name} }

// Call calls f, which calls the hook. The hook is f's only call of the user's code.
func (g *Guard) Call(ctx context.Context, f func()) {
	if g.off.Load() {
		return
	}
	defer func() {
		if v := recover(); v != nil && !g.off.Swap(true) {
			cmp.Or(g.log, slog.Default()).ErrorContext(ctx, "sqsonce: hook failed: it is not called again",
				"error", fmt.Errorf("the hook panicked: %v", v), "stack", string(debug.Stack()), "hook", g.name)
		}
	}()
	f()
}

// Context is Call for a hook that returns the context with which its caller goes on: ctx where the hook panics.
func (g *Guard) Context(ctx context.Context, f func(context.Context) context.Context) context.Context {
	next := ctx
	g.Call(ctx, func() { next = f(ctx) })
	return next
}
