package settle

import (
	"context"
	"errors"
	"time"
)

// WithSuspects marks the contexts of a host that runs suspects apart from other messages. A suspect is a message whose event was
// running in a process that crashed. Middleware that finds one does not run it, and returns an error of [NewSuspect]. One that was
// received less often than from may run alongside other messages.
func WithSuspects(ctx context.Context, from int) context.Context {
	return context.WithValue(ctx, suspectsKey{}, from)
}

// RunningSuspect marks the context of a suspect that its host runs apart from other messages now.
func RunningSuspect(ctx context.Context) context.Context { return WithSuspects(ctx, 0) }

// Suspects returns from which receive on the host of ctx runs suspects apart, and 0 where it does not want to be told of them.
func Suspects(ctx context.Context) (from int) {
	from, _ = ctx.Value(suspectsKey{}).(int)
	return from
}

// RunsSuspect reports whether the host of ctx runs a suspect apart from other messages now.
func RunsSuspect(ctx context.Context) bool {
	from, marked := ctx.Value(suspectsKey{}).(int)
	return marked && from == 0
}

type suspectsKey struct{}

// Suspect is the error of a suspect that was not run.
type Suspect struct {
	error
	Started time.Time // when the crashed process started it, about
	Alone   bool      // it has crashed a process that ran it apart from others, where it was the last to start
}

// NewSuspect returns err as that of a suspect.
func NewSuspect(err error, started time.Time) error { return &Suspect{error: err, Started: started} }

// NewLoneSuspect returns err as that of a suspect that was alone.
func NewLoneSuspect(err error, started time.Time) error { return &Suspect{err, started, true} }

// Unwrap returns the error that NewSuspect got.
func (s *Suspect) Unwrap() error { return s.error }

// SuspectOf returns the suspect that err tells of.
func SuspectOf(err error) (s *Suspect, ok bool) { return errors.AsType[*Suspect](err) }
