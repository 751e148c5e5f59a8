package sqsonce

import (
	"context"
	"sync"
)

// OnSettled leaves f to the host that called the handler with ctx: it runs f once, when the message's fate is decided.
// Middleware uses it for what must follow the dead-letter queue's confirmation: a record that is released while the
// rejected message is still only on its way lets a second delivery of the event start in between.
//
// deadLettered says that the dead-letter queue has confirmed the message; false, that it has not got it and the
// delivery counts as failed.
//
// It returns false, and does nothing, where ctx is not from such a host or the host has already decided: the caller
// then acts at once.
func OnSettled(ctx context.Context, f func(deadLettered bool)) bool {
	s, ok := ctx.Value(settlementContextKey{}).(*settlement)
	if !ok {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.settled {
		return false
	}
	s.fns = append(s.fns, f)
	return true
}

// WithSettlement is for hosts. It returns the context to call one handler with, and the function that runs what was
// left by [OnSettled]. cancel ends the returned context, which is derived from one of [context.WithCancelCause]; it is nil
// where handlers share theirs.
//
// A host calls settle once per call of a handler, whatever the outcome, and before it deletes a rejected message: with
// true when the dead-letter queue has confirmed the message, else with false. Later calls do nothing. settle runs what
// was left in the reverse order, on the calling goroutine; it may take as long as a call of the store.
func WithSettlement(ctx context.Context, cancel context.CancelCauseFunc) (_ context.Context, settle func(deadLettered bool)) {
	s := &settlement{Context: ctx, cancel: cancel}
	return s, s.settle
}

// HandlerCancel returns the function that ends the context which the host has given the handler, or nil where there is
// none. Middleware that has to end the handler by itself needs no context of its own then. It ends all that the host
// calls for the message: for middleware that is about the message as a whole only.
func HandlerCancel(ctx context.Context) context.CancelCauseFunc {
	if s, ok := ctx.Value(settlementContextKey{}).(*settlement); ok {
		return s.cancel
	}
	return nil
}

type settlementContextKey struct{}

// settlement is the context too, which a host makes for each message.
type settlement struct {
	context.Context
	cancel  context.CancelCauseFunc
	mu      sync.Mutex
	settled bool
	fns     []func(bool)
}

func (s *settlement) Value(key any) any {
	if key == (settlementContextKey{}) {
		return s
	}
	return s.Context.Value(key)
}

func (s *settlement) settle(deadLettered bool) {
	s.mu.Lock()
	fns := s.fns
	s.settled, s.fns = true, nil
	s.mu.Unlock()
	// Outside the lock: what was left may call the store, and a handler that is still running may call OnSettled.
	for i := len(fns) - 1; i >= 0; i-- {
		fns[i](deadLettered)
	}
}
