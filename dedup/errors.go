package dedup

import (
	"errors"
	"fmt"
	"time"

	"github.com/sqsonce/sqsonce"
)

// InProgressError says that another owner holds the event's record. It matches [sqsonce.ErrInProgress].
type InProgressError struct {
	// Until is when another attempt makes sense, in the caller's clock. Zero where only an operator or the end of
	// retention can free the record.
	Until time.Time
	// Crashed says that the holder's lease ended without a release. Only with [Claim.NoTakeover]: otherwise such a
	// record is taken over.
	Crashed bool
	// Foreign is as in Lease.
	Foreign bool
}

func (e *InProgressError) Error() string {
	if e.Crashed {
		return "dedup: the last holder crashed and the record is kept blocked"
	}
	return fmt.Sprintf("dedup: in progress elsewhere until %s", e.Until.UTC().Format(time.RFC3339))
}

// Is reports a match with [sqsonce.ErrInProgress], and with [ErrCrashed] where the holder crashed.
func (e *InProgressError) Is(target error) bool {
	return target == sqsonce.ErrInProgress || e.Crashed && target == ErrCrashed
}

// CompletedError says that the event was completed before.
type CompletedError struct {
	Result Result
	// Foreign is as in Lease.
	Foreign bool
}

func (e *CompletedError) Error() string { return "dedup: completed before" }

var (
	// ErrCrashed says that the last holder vanished and the crash policy forbids running again.
	ErrCrashed = errors.New("dedup: the last holder crashed")
	// ErrPayloadMismatch says that an event came again with the same key and another payload. Once wraps it in a Reject.
	ErrPayloadMismatch = errors.New("dedup: same key, other payload")
	// ErrForeignWriter says that another program, which knows no owners, wrote a record while an owner held it. It comes
	// with [sqsonce.ErrLeaseLost].
	ErrForeignWriter = errors.New("dedup: a program that knows no owners wrote the record")
	// ErrNotFound is what a store's Inspect returns for a key without a record.
	ErrNotFound = errors.New("dedup: no record")
)
