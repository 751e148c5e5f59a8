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
	// ErrLeaseLost is the cause of a handler's cancelled context, and the error of an operation, if another delivery
	// may own the event: the record has another owner, or the visibility timeout of the message may have ended.
	ErrLeaseLost = errors.New("sqsonce: lease lost")
	// ErrInProgress says that another delivery of the event is being handled. It is not a failure.
	ErrInProgress = errors.New("sqsonce: in progress elsewhere")
	// ErrShutdown is the cause of a handler's cancelled context if the host must stop, or if a function has run out of
	// time for the handler.
	ErrShutdown = errors.New("sqsonce: host is stopping")
)

// RetryError asks the host to deliver a message again after a delay. If a chain of errors holds both a RetryError and a
// [RejectError], the outermost decides.
type RetryError struct {
	// After is the delay. Hosts round it up to whole seconds, at least 1, and bound it by SQS's limit (12 hours after
	// the receive).
	After time.Duration
	// Err is the reason. If it matches [ErrInProgress], the delivery does not count as a failure.
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

// Reject returns a [RejectError]. The host sends the message to the dead-letter queue with err as the reason, then
// deletes it. If the host doesn't know a dead-letter queue, it treats the message as after any other error and does not
// delete it.
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

// Skip returns a [SkipError]. The message is done without an effect, and later deliveries of the event don't run it.
// Use it for events that you know to be void, such as an order that was cancelled before it was handled. The host
// deletes the message, logs the reason and counts the message as skipped. dedup completes the event's record, which
// keeps the first 256 bytes of the reason. An inbox rolls back the handler's writes. For a message that should not have
// been sent, use [Reject].
func Skip(reason string) error { return &SkipError{Reason: reason} }

func (e *SkipError) Error() string { return "sqsonce: skipped: " + e.Reason }

// PanicError is a panic of a handler, turned into an error so that it fails one message and not the process.
type PanicError struct {
	Value any    // the argument of panic, or nil for runtime.Goexit
	Stack []byte // the stack of the goroutine that panicked
}

func (e *PanicError) Error() string {
	if e.Value == nil {
		return "sqsonce: handler called runtime.Goexit"
	}
	return fmt.Sprintf("sqsonce: handler panicked: %v", e.Value)
}

// Unwrap returns the panic's value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// OptionError is an option or an input that cannot be used. New functions join one for each bad field, so that you see
// all of them at once.
type OptionError struct {
	Package string // "sqsworker"
	Field   string // "Options.Concurrency"
	Problem string // the mistake and the limit
}

func (e *OptionError) Error() string { return e.Package + ": " + e.Field + ": " + e.Problem }

// OnSettled registers f with the host that called the handler with ctx. The host runs f once, when the message is
// settled. Use it in middleware whose work must follow the dead-letter queue's confirmation. If such middleware
// released a record while the rejected message is still on its way there, a second delivery of the event could start in
// between.
//
// deadLettered is true if the dead-letter queue has confirmed the message. It is false if the message is done, or if
// the delivery counts as failed.
//
// OnSettled returns false, and drops f, if ctx is not from such a host or the message is settled already. The caller
// then acts at once.
func OnSettled(ctx context.Context, f func(deadLettered bool)) bool { return settle.Later(ctx, f) }
