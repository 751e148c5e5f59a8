package outbox

import (
	"errors"
	"fmt"
)

// GroupError says that a group has events left, and why. Drain and Sweep join one for each such group. Err matches [ErrHalted],
// [ErrBroken], [ErrWrongSource] or [ErrManySkipped] if the group waits for an operator.
type GroupError struct {
	Group   string
	Seq     int64  // of the event at which the group waits, or 0 if it is not known
	EventID string // of that event, or empty
	Err     error
}

func (e *GroupError) Error() string {
	event := ""
	switch {
	case e.EventID != "":
		event = fmt.Sprintf(", event %.128q (%d)", e.EventID, e.Seq)
	case e.Seq != 0:
		event = fmt.Sprintf(", event %d", e.Seq)
	}
	return fmt.Sprintf("outbox: group %.128q%s: %v", e.Group, event, e.Err)
}

func (e *GroupError) Unwrap() error { return e.Err }

var (
	// ErrHalted says that SQS refused an event for good, so that the group waits for an operator. The relay logs a line at ERROR
	// when it parks the event.
	ErrHalted = errors.New("SQS refused the event, and the group waits for you")
	// ErrBroken says that an event can't be decoded, or is of a later version. Its group waits, and the other groups go on.
	ErrBroken = errors.New("the event cannot be read")
	// ErrWrongSource says that an event is of another namespace than the relay's publisher. The relay neither sends nor parks
	// it, and its group waits. Another namespace means another MessageDeduplicationId and another key of the consumer's record, so
	// every event would run twice.
	ErrWrongSource = errors.New("outbox: event of another namespace")
)
