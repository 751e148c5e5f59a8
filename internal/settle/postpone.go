package settle

import (
	"context"
	"errors"
)

// Holder is a message of a host, for middleware that may postpone it. Its methods are called from the handler's
// goroutine.
type Holder interface {
	// Room reports whether the message will be held if its handler returns a Postpone now, and takes a place in that
	// line for it until the handler has returned. It is true, too, where the message may not be given back. holds is
	// false where the host can't hold.
	Room(line string) (held, holds bool)
	// InDebt reports whether the message has to run now, whatever limits say: later it would be moved or deleted
	// without a run. It is asked only before a Postpone, and may call SQS where the host can't hold.
	InDebt() bool
}

// HeldBy tells middleware of the host's message. ctx is that of [New]; it is called before the handler.
func HeldBy(ctx context.Context, h Holder) {
	if s, ok := ctx.Value(settlementKey{}).(*settlement); ok {
		s.holder = h
	}
}

// Room is [Holder].Room. Middleware asks it just before it postpones a message, for the line that it waits in: in
// package limit a rule, a key and a group. Where it is held, the error has a [Turn]. The last call counts.
func Room(ctx context.Context, line string) (held, holds bool) {
	if s, ok := ctx.Value(settlementKey{}).(*settlement); ok && s.holder != nil {
		return s.holder.Room(line)
	}
	return false, false
}

// InDebt is [Holder].InDebt. Without a host it is false.
func InDebt(ctx context.Context) bool {
	s, ok := ctx.Value(settlementKey{}).(*settlement)
	return ok && s.holder != nil && s.holder.InDebt()
}

// Turn goes with the error of a message that waits. Where a host holds it, that is in the line that [Room] was asked for.
type Turn struct {
	// Ready is closed when the message may run: the host then runs it before the Postpone's time. Middleware decides
	// whose turn it is, in a line the message with more receives first.
	Ready <-chan struct{}
	// Left is called once if the host gives the message back, or loses it, without running it again. It must not block.
	Left func()
	// Stands reports whether all messages that wait for the same wait for long, because something is down that middleware has to ask. It
	// must return at once. Default: false. It is all that a message has of its turn where the host gives it back.
	Stands func() bool
}

// WithTurn returns err with the turn of its message.
func WithTurn(err error, t Turn) error { return &turnError{err, t} }

// TurnOf returns the outermost turn in err, and whether it is that of a message that the host holds.
func TurnOf(err error) (t Turn, held bool) {
	if e, ok := errors.AsType[*turnError](err); ok {
		t = e.turn
	}
	return t, t.Ready != nil
}

type turnError struct {
	error
	turn Turn
}

func (e *turnError) Unwrap() error { return e.error }
