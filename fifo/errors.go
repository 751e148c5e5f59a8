package fifo

import (
	"errors"
	"fmt"
)

// What became of an event that has no [Receipt]. Each is wrapped in a [*PublishError], together with its cause.
var (
	// ErrBufferFull says that the context ended while the event waited for room in the buffer. It was not sent.
	ErrBufferFull = errors.New("fifo: buffer is full")
	// ErrNotSent says that the event is certainly not in the queue: SQS refused it, or it never left this process.
	ErrNotSent = errors.New("fifo: not sent")
	// ErrUnknownOutcome says that the event may or may not be in the queue, and that sending it again can no longer find
	// out: SQS remembers a MessageDeduplicationId for five minutes. Publishing it again may enqueue it a second time, which
	// a consumer that guards its events by their IDs absorbs. A request that is still on its way may even enqueue it behind
	// later events of its group.
	//
	// Where the context of Publish ended while its event was in a request, the send goes on; then publishing the event
	// again within the next minutes is safe.
	ErrUnknownOutcome = errors.New("fifo: outcome unknown")
	// ErrGroupHalted says that the event was not sent because an earlier one of its group failed: sent on its own it would
	// be out of order for ever. The group takes new events.
	ErrGroupHalted = errors.New("fifo: an earlier event of the group failed")
	// ErrDedupConflict says that an event of the same ID and another body was published less than five minutes ago: SQS
	// would answer success and drop this one.
	ErrDedupConflict = errors.New("fifo: same event ID with another body")
	// ErrClosed says that the publisher was closed before the event was taken. It was not sent.
	ErrClosed = errors.New("fifo: publisher is closed")
)

// PublishError is the failure of one event. Errors of input are [*sqsonce.FieldError], one per bad field, joined.
type PublishError struct {
	// Index is the event's position in the call of PublishAll; 0 elsewhere.
	Index int
	// EventID and Group are the event's.
	EventID, Group string
	// Err is why.
	Err error
}

func (e *PublishError) Error() string {
	return fmt.Sprintf("fifo: event %.128q of group %.128q: %v", e.EventID, e.Group, e.Err)
}

func (e *PublishError) Unwrap() error { return e.Err }

// outcome is one of the errors above with what led to it.
type outcome struct{ chain []error }

// because returns reason, caused by what is not nil of causes.
func because(reason error, causes ...error) error {
	o := &outcome{chain: []error{reason}}
	for _, c := range causes {
		if c != nil && !errors.Is(o, c) {
			o.chain = append(o.chain, c)
		}
	}
	return o
}

func (o *outcome) Error() string {
	s := o.chain[0].Error()
	for _, c := range o.chain[1:] {
		s += ": " + c.Error()
	}
	return s
}

func (o *outcome) Unwrap() []error { return o.chain }
