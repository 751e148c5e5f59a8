package outbox

import "fmt"

func (e *BrokenError) Error() string {
	return fmt.Sprintf("outbox: event %d of group %.128q cannot be read: %v", e.Seq, e.Group, e.Err)
}

// HaltedError names a group that waits for an operator. Drain returns it joined with the others; Run logs it once.
type HaltedError struct {
	Group, EventID string
	Seq            int64
	Reason         string
}

func (e *HaltedError) Error() string {
	return fmt.Sprintf("outbox: group %.128q is halted by event %.128q (%d), which SQS refused: %s", e.Group, e.EventID, e.Seq, e.Reason)
}
