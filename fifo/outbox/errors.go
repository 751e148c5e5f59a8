package outbox

import (
	"errors"
	"fmt"
)

func (e *BrokenError) Error() string {
	return fmt.Sprintf("outbox: event %d of group %.128q cannot be read: %v", e.Seq, e.Group, e.Err)
}

// HaltedError names a group that waits for an operator. [Relay.Drain] returns it joined with the others. The relay logs a line
// at ERROR when it parks the event.
type HaltedError struct {
	Group, EventID string
	Seq            int64
	Reason         string
}

func (e *HaltedError) Error() string {
	return fmt.Sprintf("outbox: group %.128q is halted by event %.128q (%d), which SQS refused: %s", e.Group, e.EventID, e.Seq, e.Reason)
}

// GroupError says which group has events left, and why. Drain and Sweep join one for each such group.
type GroupError struct {
	Group string
	Err   error
}

func (e *GroupError) Error() string {
	_, halted := errors.AsType[*HaltedError](e.Err)
	_, broken := errors.AsType[*BrokenError](e.Err)
	if halted || broken { // these name it
		return e.Err.Error()
	}
	return fmt.Sprintf("outbox: group %.128q: %v", e.Group, e.Err)
}

func (e *GroupError) Unwrap() error { return e.Err }

// ErrWrongSource says that an event is of another namespace than the relay's publisher. The relay neither sends nor parks it,
// and its group waits. Another namespace means another MessageDeduplicationId and another key of the consumer's record, so
// every event would run twice.
var ErrWrongSource = errors.New("outbox: event of another namespace")
