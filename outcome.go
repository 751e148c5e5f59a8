package sqsonce

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqsonce/sqsonce/internal/settle"
)

// Conditions that hosts and dedup share. They are here because hosts do not import dedup.
var (
	// ErrLeaseLost is the cause of a handler's cancelled context, and the error of an operation, when another delivery may
	// own the event: the record has another owner, or the visibility timeout of the message may have ended.
	ErrLeaseLost = errors.New("sqsonce: lease lost")
	// ErrInProgress says that another delivery of the event is being handled. It is not a failure.
	ErrInProgress = errors.New("sqsonce: in progress elsewhere")
	// ErrShutdown is the cause of a handler's cancelled context when the host must stop, or a function has no
	// more time for the handler.
	ErrShutdown = errors.New("sqsonce: host is stopping")
)

// RetryError asks for a message to be delivered again after a delay. Where a chain of errors holds both a RetryError
// and a [RejectError], the outermost decides.
type RetryError struct {
	// After is the delay. Hosts round it up to whole seconds, at least 1, and bound it by what SQS allows (12 hours after the
	// receive).
	After time.Duration
	// Err is the reason. If it matches [ErrInProgress] the delivery does not count as a failure.
	Err error
}

// RetryAfter returns a [RetryError]. A negative delay counts as 0.
func RetryAfter(d time.Duration, err error) error { return &RetryError{After: max(d, 0), Err: err} }

func (e *RetryError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("sqsonce: retry after %s", e.After)
	}
	return fmt.Sprintf("sqsonce: retry after %s: %v", e.After, e.Err)
}

func (e *RetryError) Unwrap() error { return e.Err }

// RejectError says that a message can never be handled.
type RejectError struct{ Err error }

// Reject returns a [RejectError]: the message goes to the dead-letter queue with err as the reason, and is then
// deleted. If the host knows no dead-letter queue, the message is treated as after any other error and not deleted.
func Reject(err error) error { return &RejectError{Err: err} }

func (e *RejectError) Error() string {
	if e.Err == nil {
		return "sqsonce: rejected"
	}
	return fmt.Sprintf("sqsonce: rejected: %v", e.Err)
}

func (e *RejectError) Unwrap() error { return e.Err }

// SkipError says that a message needs no effect.
type SkipError struct{ Reason string }

// Skip returns a [SkipError]: the message is done, its handler has done nothing, and no delivery of the event runs it again. It is for
// events that are known to be void, such as an order that was cancelled before it was handled. The host deletes the message, logs the
// reason and counts the message as skipped; dedup completes the event's record, which keeps the first 256 bytes of the reason. An inbox
// rolls back what the handler has written. For a message that should not have been sent use [Reject].
func Skip(reason string) error { return &SkipError{Reason: reason} }

func (e *SkipError) Error() string { return "sqsonce: skipped: " + e.Reason }

// PanicError is a panic of a handler, turned into an error so that it fails one message and not the process.
type PanicError struct {
	Value any    // what was passed to panic; nil for runtime.Goexit
	Stack []byte // of the goroutine that panicked
}

func (e *PanicError) Error() string {
	if e.Value == nil {
		return "sqsonce: handler called runtime.Goexit"
	}
	return fmt.Sprintf("sqsonce: handler panicked: %v", e.Value)
}

// Unwrap returns the panic's value where it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// OptionError is an option or an input that cannot be used. New functions join one per bad field, so that all are seen
// at once.
type OptionError struct {
	Package string // "sqsworker"
	Field   string // "Options.Concurrency"
	Problem string // what is wrong and what the limit is
}

func (e *OptionError) Error() string { return e.Package + ": " + e.Field + ": " + e.Problem }

// withoutHandler returns what a function of this package makes of a nil handler. No message is acknowledged, and none rejected.
func withoutHandler(function string) Handler {
	err := &OptionError{Package: "sqsonce", Field: "handler of " + function, Problem: "is nil"}
	return func(context.Context, *Message) error { return err }
}

// OnSettled leaves f to the host that called the handler with ctx: the host runs it once, when the message is settled.
// It is for middleware whose work must follow the dead-letter queue's confirmation: a record that is released while the
// rejected message is still on its way there lets a second delivery of the event start in between.
//
// deadLettered says that the dead-letter queue has confirmed the message. False says that the message is done, or that
// the delivery counts as failed.
//
// It returns false, and does nothing, where ctx is not from such a host or the message is settled already: the caller
// then acts at once.
func OnSettled(ctx context.Context, f func(deadLettered bool)) bool { return settle.Later(ctx, f) }
