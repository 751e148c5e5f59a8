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

// RetryAfter returns an error that asks the host to deliver the message again after d, with err as the reason. A negative d
// counts as 0. Hosts round it up to whole seconds, at least 1, and bound it by SQS's limit (12 hours after the receive). If
// err matches [ErrInProgress], the delivery does not count as a failure. If a chain of errors holds several of RetryAfter,
// [Reject], [Skip] and [Postpone], the outermost decides: see [OutcomeOf].
func RetryAfter(d time.Duration, err error) error { return &retryError{max(d, 0), err} }

type retryError struct {
	after time.Duration
	err   error
}

func (e *retryError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("sqsonce: retry after %s", e.after)
	}
	return fmt.Sprintf("sqsonce: retry after %s: %v", e.after, e.err)
}

func (e *retryError) Unwrap() error { return e.err }

// Reject returns an error that says that the message can never be handled. The host sends the message to the dead-letter
// queue with err as the reason, then deletes it. If the host doesn't know a dead-letter queue, it treats the message as
// after any other error and does not delete it.
func Reject(err error) error { return &rejectError{err} }

type rejectError struct{ err error }

func (e *rejectError) Error() string {
	if e.err == nil {
		return "sqsonce: rejected"
	}
	return fmt.Sprintf("sqsonce: rejected: %v", e.err)
}

func (e *rejectError) Unwrap() error { return e.err }

// Skip returns an error that says that the message needs no effect. The message is done without an effect, and later
// deliveries of the event don't run it. Use it for events that you know to be void, such as an order that was cancelled
// before it was handled. The host deletes the message, logs the reason and counts the message as skipped. dedup
// completes the event's record, which keeps the first 256 bytes of the reason. An inbox rolls back the handler's writes.
// For a message that should not have been sent, use [Reject].
func Skip(reason string) error { return &skipError{reason} }

type skipError struct{ reason string }

func (e *skipError) Error() string { return "sqsonce: skipped: " + e.reason }

// Postpone returns an error that makes this message wait for at least d, with err as the reason, or nil. Other messages go
// on. Use it for a message that is due later, or that a limit keeps back, such as after an answer 429. A negative d counts
// as 0. SQS hides a message for 12 hours: after them a worker receives it again and holds it for the rest. A function bounds
// d to 11 h 30 min.
//
// A postponed delivery does not count as an attempt, in a FIFO group neither, and the host does not dead-letter the
// message because of it. A worker holds the message outside
// Options.MaxInFlight, which costs no receive. Where it holds too many others it gives the message back until its turn.
// A function can't hold a message: it changes the visibility timeout, and the next delivery costs a receive.
func Postpone(d time.Duration, err error) error { return &postponeError{max(d, 0), err} }

type postponeError struct {
	after time.Duration
	err   error
}

func (e *postponeError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("sqsonce: postponed for %s", e.after)
	}
	return fmt.Sprintf("sqsonce: postponed for %s: %v", e.after, e.err)
}

func (e *postponeError) Unwrap() error { return e.err }

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
