package host

import (
	"context"
	"log/slog"
	"slices"

	"github.com/sqsonce/sqsonce/internal/guard"
)

// Around are hooks around something: each is called before it, with what is to be done, and what the hook returned is called with
// what came of it.
type Around[A, R any] []around[A, R]

type around[A, R any] struct {
	hook        func(context.Context, A) (context.Context, func(R))
	begin, done *guard.Guard
}

// With returns the hooks and one more, of that name, unless it is nil.
func (hooks Around[A, R]) With(log *slog.Logger, name string, hook func(context.Context, A) (context.Context, func(R))) Around[A, R] {
	if hook == nil {
		return hooks
	}
	return append(hooks, around[A, R]{hook, guard.New(log, name), guard.New(log, name+"'s done")})
}

// Begin calls the hooks in their order. It returns the context of what they are around, and what is to be called after it, which
// calls in reverse.
func (hooks Around[A, R]) Begin(ctx context.Context, a A) (_ context.Context, done func(R)) {
	type begun struct {
		ctx  context.Context
		done func(R)
	}
	all := make([]begun, len(hooks))
	for i := range hooks {
		h, b := &hooks[i], &all[i]
		b.ctx = ctx
		ctx = h.begin.Context(ctx, func(ctx context.Context) (next context.Context) {
			next, b.done = h.hook(ctx, a)
			return next
		})
	}
	return ctx, func(r R) {
		for i, b := range slices.Backward(all) {
			if b.done != nil {
				hooks[i].done.Call(b.ctx, func() { b.done(r) })
			}
		}
	}
}

// Attach calls the Attach hooks of the host pkg with what they attach to, and returns what calls their results, in reverse. Hooks
// and results may be nil.
func Attach[T any](ctx context.Context, log *slog.Logger, pkg string, hooks []func(T) func(), to T) (detach func()) {
	call := func(hook func(), name string) { guard.New(log, pkg+": Hooks."+name).Call(ctx, hook) }
	var detaches []func()
	for _, attach := range hooks {
		if attach != nil {
			call(func() { detaches = append(detaches, attach(to)) }, "Attach")
		}
	}
	return func() {
		for _, detach := range slices.Backward(detaches) {
			if detach != nil {
				call(detach, "Attach's detach")
			}
		}
	}
}
