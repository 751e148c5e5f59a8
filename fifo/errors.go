package fifo

import (
	"errors"
	"fmt"
)

// The reasons why an event has no [Receipt]. Each is wrapped in a [*PublishError], together with its cause.
var (
	// ErrBufferFull says that the context ended while the event waited for capacity: Options.MaxMessages or
	// Options.MaxBytes is reached. The event was not sent.
	ErrBufferFull = errors.New("fifo: not sent: buffer is full (Options.MaxMessages, Options.MaxBytes)")
	// ErrNotSent says that the event is certainly not in the queue: SQS refused it, or it never left this process.
	ErrNotSent = errors.New("fifo: not sent")
	// ErrUnknownOutcome says that the event may or may not be in the queue. Sending it again cannot tell: SQS remembers a
	// MessageDeduplicationId for five minutes only. Publishing it again may put it into the queue a second time; a consumer
	// that deduplicates events by their IDs then runs its handler once. A request that has not reached SQS yet may even put
	// the event behind later events of its group.
	//
	// If the context of Publish ended while the event was in flight, the publisher goes on sending it. The event may be
	// published again: SQS recognises a copy that arrives within five minutes of the first Publish.
	ErrUnknownOutcome = errors.New("fifo: unknown outcome: the event may be in the queue")
	// ErrGroupHalted says that the event was not sent because an earlier event of its group failed: sent now, it would be
	// delivered before the earlier one. The group accepts new events. Publish the earlier event again, then this one.
	ErrGroupHalted = errors.New("fifo: not sent because an earlier event of the group failed")
	// ErrDedupConflict says that an event with the same ID and another body was published less than five minutes ago. The
	// event was not sent: SQS would answer success and drop it.
	ErrDedupConflict = errors.New("fifo: not sent: an event with the same ID and another body was published less than 5 minutes ago")
	// ErrClosed says that the publisher was closed before it accepted the event. The event was not sent.
	ErrClosed = errors.New("fifo: publisher is closed")
)

// PublishError is the failure of one event. For a bad event it wraps one [*sqsonce.FieldError] per bad field, joined.
type PublishError struct {
	// Index is the event's position in the call of PublishAll; 0 for the other methods.
	Index int
	// EventID and Group are the event's.
	EventID, Group string
	// Err is the reason.
	Err error
}

func (e *PublishError) Error() string {
	return fmt.Sprintf("fifo: event %.128q of group %.128q: %v", e.EventID, e.Group, e.Err)
}

func (e *PublishError) Unwrap() error { return e.Err }

// reasonOf returns the Err of a PublishError.
func reasonOf(err error) error {
	if pe, ok := errors.AsType[*PublishError](err); ok {
		return pe.Err
	}
	return err
}

// withIndex returns a PublishError with the event's position in a call of PublishAll. The error is copied, because every
// caller of Pending.Wait gets the same one.
func withIndex(index int, err error) error {
	pe, ok := errors.AsType[*PublishError](err)
	if !ok {
		return err
	}
	indexed := *pe
	indexed.Index = index
	return &indexed
}

// causedError is one of the errors above, followed by its causes. errors.Is and errors.As find all of them.
type causedError struct{ errs []error }

// because returns reason with its causes. A nil cause and one that is already there are left out.
func because(reason error, causes ...error) error {
	e := &causedError{errs: []error{reason}}
	for _, c := range causes {
		if c != nil && !errors.Is(e, c) {
			e.errs = append(e.errs, c)
		}
	}
	return e
}

func (e *causedError) Error() string {
	s := e.errs[0].Error()
	for _, c := range e.errs[1:] {
		s += ": " + c.Error()
	}
	return s
}

func (e *causedError) Unwrap() []error { return e.errs }
