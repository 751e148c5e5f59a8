package dedup

import (
	"context"
	"time"
)

// Store keeps one record per event. Every sentence about its methods has a case in package storetest; each
// implementation passes it.
//
// Time decides who may acquire a record. Ownership decides who may renew, complete or release it. Durations go in and
// are applied to the store's clock; times come out in the caller's clock. A host's own clock never decides a takeover.
//
// All methods are safe for concurrent use. An error that is not named below says that nothing was done or, but for Acquire,
// that the outcome is unknown: the caller must not act as if the call had succeeded.
//
// Only two errors are the message's own failure: a [*sqsonce.OptionError], for a value that the store refuses by itself, and
// one that matches [ErrRecord], for a record that was read and is none. Any other error matches [sqsonce.ErrUnavailable],
// whatever the server answered, and [sqsonce.ErrMisconfigured] where no retry helps. dedup takes an acquire's error that
// matches none of them for unavailable: a delivery whose handler did not run does not count as a try of its message.
type Store interface {
	// Acquire makes c.Owner the owner of c.Key's record, and returns [VerdictGranted] with its lease. Its other verdicts are:
	//
	//   - [VerdictCompleted] where the event was completed and its retention is not over, with the result.
	//   - [VerdictInProgress] where another owner's lease may be live, with the time from which another acquire makes sense.
	//   - [VerdictCrashed] where another owner's lease is over and was not released, only for a claim with NoTakeover. Only an
	//     operator, or the end of retention, lets such a claim acquire the record.
	//   - [VerdictLost] for an owner that has released the key or lost it. Where another owner has the record now, that
	//     owner's VerdictInProgress will do.
	//
	// An error is a failure, and comes without a verdict. An answer with neither, or an error that matches
	// [sqsonce.ErrLeaseLost] or [sqsonce.ErrInProgress], breaks the contract: dedup does not run the handler then, and
	// returns an error that matches [sqsonce.ErrMisconfigured].
	//
	// The same claim again, while its lease is not released or lost, is granted with the values of the first answer, and a
	// renewal's later end: a caller whose first answer was lost is not refused because of itself. Each owner's fence is
	// greater than every earlier one of the key while its record is retained.
	//
	// It returns an error that matches [ErrOutcomeUnknown] where it ends without an answer to a request that may be carried
	// out, because ctx has ended or the store has given up: the caller releases the claim. After any other error nothing is
	// stored for the claim, nor will be; or the store knows of the answer that is still to come, and releases by itself what it
	// grants.
	//
	// A context that is cancelled before the call stores nothing. An empty key or owner is refused.
	Acquire(ctx context.Context, c Claim) (Grant, error)

	// Renew moves the lease's end to d from now, never back, and returns the lease with its new end. It is allowed
	// after the lease's end while no other owner took over. It returns [sqsonce.ErrLeaseLost] after a takeover, a release
	// or a complete.
	Renew(ctx context.Context, l Lease, d time.Duration) (Lease, error)

	// Complete marks the event as done and stores the result. It is allowed after the lease's end while no other owner
	// took over. The text of r.Skipped is stored as Release stores its cause's; without one that of an earlier failure stays. A
	// second call returns nil. It returns [sqsonce.ErrLeaseLost] where the record has another owner or is
	// gone.
	Complete(ctx context.Context, l Lease, r Result) error

	// Release ends the lease, so that the next delivery can acquire the record. It stores the first 256 bytes of cause's
	// text, in whole characters; a nil cause stores none. It is allowed after the lease's end while no other owner took
	// over. It returns nil, and changes nothing, where this owner has released or completed the record before. It returns
	// [sqsonce.ErrLeaseLost], and changes nothing, where the record has another owner or is gone. The owner cannot acquire
	// the key again: see Acquire.
	//
	// A lease without a fence is that of an acquire with an unknown outcome, which may still be carried out. Release sees to
	// it that it is not, as far as the store can: its documentation says what remains.
	Release(ctx context.Context, l Lease, cause error) error
}

// Claim is a request for the record of an event.
type Claim struct {
	// Key is the record's key: the consumer's name, '#' and the event's key, hashed over 1,024 bytes.
	Key string
	// Owner names this delivery: 128 random bits, made before the first call and never used again.
	Owner string
	// Lease is the length of the record lease.
	Lease time.Duration
	// Retention is how long the record is retained after the acquire, and at least an hour after the lease's end.
	Retention time.Duration
	// ReceiveCount is the message's receive count. 0: unknown.
	ReceiveCount int
	// Validation is a hash of the payload. "": not compared.
	Validation string
	// NoTakeover refuses a record whose lease is over and was not released (OnCrashBlock and OnCrashDeadLetter).
	NoTakeover bool
}

// Lease is a record lease: what its owner knows of the record.
type Lease struct {
	Key, Owner string
	// Fence is greater than every earlier fence of the key while its record is retained.
	Fence int64
	// Until is the lease's end in the caller's clock, never later than the store's.
	Until time.Time
	// Retention is the claim's.
	Retention time.Duration
	// Takeover says that the last owner crashed: its lease ended without a complete or a release.
	Takeover bool
	// TakenFrom is the fence of that owner. It is about when that owner acquired the record, in milliseconds since 1970.
	TakenFrom int64
	// OwnRetry says that the store had granted the same claim before, and that its first answer was lost.
	OwnRetry bool
	// ReceiveCount is the claim's.
	ReceiveCount int
	// LastError is the text that the last release stored, or the complete of an event that was skipped.
	LastError string
	// Validation is the claim's payload hash. It is written with the completed record.
	Validation string
}

// Result is what a completed record stores: nothing for messages, the JSON of a result for [Do].
type Result struct {
	Data       []byte
	Validation string
	// Skipped is why the event is completed without an effect: an error of [sqsonce.Skip]. nil: it had its effect. Acquire and
	// Inspect do not return it: it is the record's LastError.
	Skipped error
}
