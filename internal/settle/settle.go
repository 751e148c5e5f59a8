// Package settle is what a host and middleware tell each other through the handler's context.
//
// A host settles each message once: the message is in the dead-letter queue, or the delivery failed, or it is done.
// Middleware can leave work until then. A host that can hold messages says so, and middleware then does not wait inside
// the handler.
package settle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
)

// New returns the context to call one handler with, and the function that settles its message.
//
// A host calls settle once for each call of a handler, whatever the outcome, and before it deletes a rejected message:
// with true when the dead-letter queue has confirmed the message, else with false. Later calls do nothing. settle runs
// what was left by [Later] in the reverse order, and waits for it; it may take as long as a call of the store.
//
// What was left may be the user's code. A panic in one function does not keep the others from running;
// settle returns an error with the panic's value and stack.
func New(ctx context.Context) (_ context.Context, settle func(deadLettered bool) error) {
	s := &settlement{}
	return context.WithValue(ctx, settlementKey{}, s), s.settle
}

// Of returns the function that New returned with ctx, for a host that settles the message on another goroutine: New's own does
// not need an allocation where it stays on the caller's.
func Of(ctx context.Context) func(deadLettered bool) error {
	return ctx.Value(settlementKey{}).(*settlement).settle
}

// Later leaves f to the host that called the handler with ctx. It returns false, and does nothing, where ctx is not from
// such a host or the message is settled already: the caller then acts at once.
func Later(ctx context.Context, f func(deadLettered bool)) bool {
	s, ok := ctx.Value(settlementKey{}).(*settlement)
	return ok && s.add(f)
}

// Hosted reports whether ctx is from a host, which ends it when it has no more time for the message or no longer has it.
func Hosted(ctx context.Context) bool { return ctx.Value(settlementKey{}) != nil }

type settlementKey struct{}

type settlement struct {
	mu      sync.Mutex
	settled bool
	key     string // for the copy in the dead-letter queue
	known   string // of the event
	later   []func(deadLettered bool)
}

// KeepKey tells the host the event's key where a copy of the message would not have it by itself: one that middleware made
// of what the copy does not keep. The host writes it into the copy for the dead-letter queue. The first key counts, that of
// the outermost middleware. It does nothing where ctx is not from a host.
func KeepKey(ctx context.Context, key string) {
	s, ok := ctx.Value(settlementKey{}).(*settlement)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key, s.known = cmp.Or(s.key, key), cmp.Or(s.known, key)
}

// KeptKey returns the key of [KeepKey], or "". ctx is that of New.
func KeptKey(ctx context.Context) string {
	s, ok := ctx.Value(settlementKey{}).(*settlement)
	if !ok {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.key
}

// ShowKey tells the host the event's key where [KeepKey] does not, for those who look at what runs. The first one counts.
func ShowKey(ctx context.Context, key string) {
	s, ok := ctx.Value(settlementKey{}).(*settlement)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = cmp.Or(s.known, key)
}

// KnownKey returns the first key of [KeepKey] and [ShowKey], or "". ctx is that of New.
func KnownKey(ctx context.Context) string {
	s, ok := ctx.Value(settlementKey{}).(*settlement)
	if !ok {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known
}

func (s *settlement) add(f func(bool)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.settled {
		return false
	}
	s.later = append(s.later, f)
	return true
}

func (s *settlement) settle(deadLettered bool) error {
	s.mu.Lock()
	later := s.later
	s.settled, s.later = true, nil
	s.mu.Unlock()
	// Outside the lock: what was left may call the store, and a handler that still runs may call Later.
	var errs []error
	for i := len(later) - 1; i >= 0; i-- {
		errs = append(errs, run(later[i], deadLettered))
	}
	return errors.Join(errs...)
}

// run calls f, and returns its panic as an error.
func run(f func(bool), deadLettered bool) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("function given to OnSettled panicked: %v\n%s", v, debug.Stack())
		}
	}()
	f(deadLettered)
	return nil
}
