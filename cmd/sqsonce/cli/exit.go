package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/awserr"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/ops"
)

// exitCode is what the process ends with.
type exitCode int

const (
	exitDone    exitCode = iota // or nothing to do
	exitFailed                  // also where it is not known whether a write was carried out
	exitUsage                   // arguments, flags
	exitFound                   // dlq ls --exit-code; a worker that does not obey
	exitPart                    // something could not be read; interrupted
	exitRefused                 // by a guard, by the answer to a question, or because it has changed since you looked
	exitDenied                  // credentials, permissions
)

// exitError is an error with an exit code of its own. A nil err prints nothing.
type exitError struct {
	code exitCode
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func fail(code exitCode, format string, args ...any) error {
	return &exitError{code, fmt.Errorf(format, args...)}
}

// codeOf returns the exit code for an error.
func codeOf(ctx context.Context, err error) exitCode {
	if err == nil {
		return exitDone
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	_, field := errors.AsType[*sqsonce.OptionError](err)
	_, refused := errors.AsType[*ops.RefusedError](err)
	broken := errors.Is(err, outbox.ErrBroken)
	switch {
	case denied(err):
		return exitDenied
	case errors.Is(err, ops.ErrReopened) || errors.Is(err, ops.ErrNotCompleted):
		return exitPart
	case slices.ContainsFunc(refusals, func(r error) bool { return errors.Is(err, r) }):
		return exitRefused
	case refused || errors.Is(err, dedup.ErrChanged) || errors.Is(err, sqsonce.ErrInProgress):
		return exitRefused
	case errors.Is(err, outbox.ErrNotParked), errors.Is(err, outbox.ErrNotFound):
		return exitRefused
	case errors.Is(err, outbox.ErrUnsettled) || broken:
		return exitPart
	case field:
		return exitUsage
	case errors.Is(ctx.Err(), context.Canceled) || errors.Is(err, ops.ErrStopped):
		return exitPart
	default:
		return exitFailed
	}
}

// refusals are what ops does not do to a message.
var refusals = []error{
	ops.ErrNotAgain, ops.ErrRanAgain, ops.ErrCommitted, ops.ErrState, ops.ErrNotShown, ops.ErrOtherKey, ops.ErrNoDestination, ops.ErrNoRoom,
	ops.ErrKeyChanges, ops.ErrNoSource, ops.ErrS3,
}

func denied(err error) bool { return awserr.Denied(err) || errors.Is(err, dynamostore.ErrAccessDenied) }

// explain adds to an error what a person at the command line needs: the action that was denied, the command that shows a move task.
func explain(err error) string {
	text := err.Error()
	if action := awserr.Action(err); action != "" && denied(err) {
		text += "\n  needs: " + action
	}
	if refused, ok := errors.AsType[*ops.RefusedError](err); ok && errors.Is(err, ops.ErrMoveTask) {
		text += "\n  see: aws sqs list-message-move-tasks --source-arn " + refused.Queue
	}
	return text
}
