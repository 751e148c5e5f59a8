package dedup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// InProgressError says that another owner has the event's record. Deliveries return it, and so do a store's Reopen and, except
// for memstore, its Delete. It matches [sqsonce.ErrInProgress].
type InProgressError struct {
	// Until is when another acquire makes sense, in the caller's clock.
	Until time.Time
}

func (e *InProgressError) Error() string {
	return fmt.Sprintf("dedup: in progress elsewhere until %s", e.Until.UTC().Format(time.RFC3339))
}

// Is reports a match with [sqsonce.ErrInProgress].
func (e *InProgressError) Is(target error) bool { return target == sqsonce.ErrInProgress }

var (
	// ErrCrashed says that the event's last owner crashed and that the crash policy does not run the event again. Under
	// OnCrashBlock, find out whether the handler's effect happened. To run the event again, reopen its record with
	// [Reopener].
	ErrCrashed = errors.New("dedup: the last owner crashed: its lease ended without a complete or a release")
	// ErrPayloadMismatch says that a completed event's key came again with another payload. See Options.PayloadHash and
	// DoOptions.PayloadHash. It comes inside a [sqsonce.Reject].
	ErrPayloadMismatch = errors.New("dedup: another payload under the key of a completed event")
	// ErrForeignWriter says that a program which does not check ownership, such as Powertools for AWS Lambda, changed a
	// record while an owner had it. It comes together with [sqsonce.ErrLeaseLost].
	ErrForeignWriter = errors.New("dedup: record overwritten by a writer that does not check ownership")
	// ErrOutcomeUnknown is matched by the error of a store's Acquire if one of its requests may still be carried out.
	// See [Store].
	ErrOutcomeUnknown = errors.New("dedup: acquire: outcome unknown")
	// ErrCommitUnknown says that the transaction of an inbox may or may not have been committed, because the answer was lost. The
	// event's next delivery finds out, and runs the handler only if nothing was committed.
	ErrCommitUnknown = errors.New("dedup: commit: outcome unknown")
	// ErrRecord says that the data under a key is not a record of the store, because another program has written it.
	// The store does not change the data. To run the event again, delete it, with Force. A store's errors match ErrRecord only
	// after the data was read. An owner whose record was overwritten so gets [sqsonce.ErrLeaseLost].
	ErrRecord = errors.New("dedup: not a record")
	// ErrNotFound is the error of a store's Inspect for a key without a record.
	ErrNotFound = errors.New("dedup: no record")
	// ErrChanged is the error of a store's Reopen for a record that has changed since you read it. See [Reopener].
	ErrChanged = errors.New("dedup: record changed or was deleted since you looked at it: look again")
	// ErrResultTooLarge says that the function of [Do] ran in an earlier call, and that its result was longer than
	// Options.MaxResult. Only that call got the result.
	ErrResultTooLarge = errors.New("dedup: result too large to store")
	// ErrNoResult says that the key was completed without a result for [Do] to replay. A [Once.Handler] completed it,
	// or a call of Do whose value could not become JSON or whose result the store refused.
	ErrNoResult = errors.New("dedup: completed without a result")
)

// unrun is the error of a delivery whose handler did not run. It is the message's failure only if the message or its record
// can cause it: the store refuses a value, or the data was read and is not a record. Any other answer of a store, and the end
// of a timeout, says nothing about the message. A host that stops knows by itself that the handler did not run.
func (o *Once) unrun(ctx context.Context, err error) error {
	switch {
	case refusesValue(err), errors.Is(err, ErrRecord), errors.Is(context.Cause(ctx), sqsonce.ErrShutdown):
		return err
	case errors.Is(err, sqsonce.ErrUnavailable):
		return o.withQuestion(err)
	}
	return o.unavailable(err)
}

// lostKind is the incident of a store that refused an owner.
func lostKind(refusal error) IncidentKind {
	if errors.Is(refusal, ErrForeignWriter) {
		return IncidentForeignWriter
	}
	return IncidentTakenOver
}

// whyLost says why a store refused an owner.
func whyLost(refusal error) string {
	if errors.Is(refusal, ErrForeignWriter) {
		return strings.TrimPrefix(ErrForeignWriter.Error(), "dedup: ")
	}
	return "record taken over by another owner, or deleted"
}

// notLost is the error of a handler that returned a lost lease, while its context was not cancelled for one and the store took the
// release of its record: the lease is another one, such as that of a Do in the handler. The host still has the message, which has failed.
// With the error of the handler it would leave the message alone, and a worker those behind it in a FIFO group too.
func notLost(handlerErr error) error {
	const text = "handler returned the lost lease of another record"
	if p, ok := errors.AsType[*sqsonce.PanicError](handlerErr); ok {
		return &sqsonce.PanicError{Value: fmt.Sprintf("%s: %v", text, handlerErr), Stack: p.Stack}
	}
	err := fmt.Errorf("%s: %v", text, handlerErr)
	if o := sqsonce.OutcomeOf(handlerErr); o.Retry || o.Postpone {
		return sqsonce.RetryAfter(o.After, err)
	}
	return err
}

// lostError is the error of a delivery whose owner the store refused. It matches ErrLeaseLost and nothing else.
func (o *Once) lostError(key string, refusal error) error {
	return fmt.Errorf("%w: %s %s", sqsonce.ErrLeaseLost, whyLost(refusal), o.record(key))
}

// record names a record in an error's text.
func (o *Once) record(key string) string {
	return fmt.Sprintf("(consumer %s, key %s)", o.consumer, key)
}

// outageLevel is the level of a line about a call of the store that failed and loses nothing: WARN once a minute, because an outage
// gives each handler of the host several such lines.
func (o *Once) outageLevel() slog.Level {
	last, now := o.warned.Load(), time.Now().UnixNano()
	if now-last >= int64(time.Minute) && o.warned.CompareAndSwap(last, now) {
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

// about returns the attributes of a log line about a record, in a delivery: its key, that of its message, and others.
func about(ctx context.Context, key string, others ...any) []any {
	return named(settle.MessageID(ctx), key, others...)
}

func named(messageID, key string, others ...any) []any {
	attrs := append([]any{"key", key}, others...)
	if messageID != "" { // else dedup.Do runs without a message
		attrs = append(attrs, "message_id", messageID)
	}
	return attrs
}
