package dedup

import (
	"context"
	"time"
)

// Store keeps one record per event. Every sentence about its methods has a case in package storetest, and each implementation
// passes it.
//
// Time decides who may acquire a record. Ownership decides who may renew, complete or release it. Durations go in and are
// applied to the store's clock. Times come out in the caller's clock. A host's own clock never decides a takeover.
//
// All methods are safe for concurrent use. An error that is not named below says that nothing was done or, except for Acquire,
// that the outcome is unknown. The caller must not act as if the call had succeeded.
//
// Only two errors are the message's own failure: a [*sqsonce.OptionError], for a value that the store refuses by itself, and
// an error that matches [ErrRecord], for data that was read and is not a record. Renew, Complete and Release return
// [sqsonce.ErrLeaseLost] for such data, because the owner's record is gone. Any other error matches
// [sqsonce.ErrUnavailable], whatever the server answered, and also [sqsonce.ErrMisconfigured] if retries don't help. If an
// acquire's error matches none of these, dedup treats it as unavailable. A delivery whose handler did not run does not count
// as an attempt of its message.
type Store interface {
	// Acquire makes c.Owner the owner of c.Key's record, and returns [VerdictGranted] with its lease. Its other verdicts are:
	//
	//   - [VerdictCompleted], with the result, if the event was completed and its retention has not ended.
	//   - [VerdictInProgress], with the time from which another acquire makes sense, if another owner's lease may be live.
	//   - [VerdictCrashed], only for a claim with NoTakeover, if another owner's lease has expired and was not released. Only
	//     an operator, or the end of retention, lets such a claim acquire the record.
	//   - [VerdictLost] for an owner that has released the key or lost it. If another owner has the record now, that owner's
	//     VerdictInProgress will do.
	//
	// An error is a failure, and comes without a verdict. An answer without verdict and error, or an error that matches
	// [sqsonce.ErrLeaseLost] or [sqsonce.ErrInProgress], breaks the contract. dedup does not run the handler then, and returns
	// an error that matches [sqsonce.ErrMisconfigured].
	//
	// While its lease is not released or lost, Acquire grants the same claim again, with the values of the first answer and a
	// renewal's later end. So a caller whose first answer was lost is not refused because of itself. Each owner's fence is
	// greater than every earlier one of the key while its record is retained.
	//
	// Acquire returns an error that matches [ErrOutcomeUnknown] if ctx has ended, or the store has given up, before the answer
	// to a request that may be carried out. The caller then releases the claim. After any other error the claim isn't stored,
	// now or later. Or the store waits for the answer itself, and releases the lease that it grants.
	//
	// A context that is cancelled before the call stores nothing. An empty key or owner is refused.
	Acquire(ctx context.Context, c Claim) (Grant, error)

	// Renew moves the lease's end to d from now, never back, and returns the lease with its new end. It is allowed after the
	// lease's end while another owner has not taken over. It returns [sqsonce.ErrLeaseLost] after a takeover, a release or a
	// complete.
	Renew(ctx context.Context, l Lease, d time.Duration) (Lease, error)

	// Complete marks the event as done and stores the result. It is allowed after the lease's end while another owner has not
	// taken over. The text of r.Skipped is stored as Release stores its cause's. Without r.Skipped the text of an earlier
	// failure stays. A second call returns nil. Complete returns [sqsonce.ErrLeaseLost] if the record has another owner or
	// doesn't exist any more.
	Complete(ctx context.Context, l Lease, r Result) error

	// Release ends the lease, so that the next delivery can acquire the record. It stores the first 256 bytes of cause's text,
	// in whole characters. A nil cause stores no text. It is allowed after the lease's end while another owner has not taken
	// over. It returns nil if this owner has released or completed the record before, and keeps a completed record as it is. It
	// returns [sqsonce.ErrLeaseLost], and keeps the record as it is, if the record has another owner or doesn't exist
	// any more. The owner can't acquire the key again: see Acquire.
	//
	// A lease without a fence is that of an acquire with an unknown outcome, which may still be carried out. Release prevents
	// that as far as the store can. The store's documentation lists the cases that remain.
	Release(ctx context.Context, l Lease, cause error) error
}

// Claim is a request for the record of an event.
type Claim struct {
	// Key is the record's key: the consumer's name, '#' and the event's key. It is hashed if it is longer than 1,024 bytes.
	Key string
	// Owner names this delivery and its process. It has 128 random bits, is made before the first call and is never used again.
	Owner string
	// Lease is the length of the record lease.
	Lease time.Duration
	// Retention is how long the record is retained after the acquire, and at least an hour after the lease's end.
	Retention time.Duration
	// ReceiveCount is the message's receive count, or 0 if it isn't known.
	ReceiveCount int
	// NoTakeover refuses a record whose lease has expired and was not released (OnCrashBlock and OnCrashDeadLetter).
	NoTakeover bool
}

// Lease is a record lease, with the owner's knowledge of the record.
type Lease struct {
	Key, Owner string
	// Fence is the store's time of the acquire in milliseconds since 1970, or more where the key had such a fence before: while
	// the record is retained each owner's is greater than those of earlier owners.
	Fence int64
	// Until is the lease's end in the caller's clock, never later than the store's.
	Until time.Time
	// Retention is that of the claim.
	Retention time.Duration
	// Takeover says that the last owner crashed: its lease ended without a complete or a release.
	Takeover bool
	// TakenFrom is the fence of that owner, and so about the time at which it acquired the record.
	TakenFrom int64
	// TakenOwner is that owner's name.
	TakenOwner string
	// OwnRetry says that the store had granted the same claim before, and that its first answer was lost.
	OwnRetry bool
	// ReceiveCount is that of the claim.
	ReceiveCount int
	// LastError is the text of the last release, or of the complete of a skipped event.
	LastError string
}

// Result is the stored result of a completed record. The tags are the names with which the command sqsonce shows it.
type Result struct {
	// Data is the JSON of a result for [Do]. It is empty for messages.
	Data []byte `json:"result,omitempty"`
	// Validation is a hash of the payload. Payloads are not compared if it is empty.
	Validation string `json:"validation,omitempty" shown:"validation" look:"mono"`
	// Skipped is why the event is completed without an effect, such as an error of [sqsonce.Skip]. It is nil if the event had
	// its effect. Acquire and Inspect don't return Skipped, but the record's LastError has its text.
	Skipped error `json:"-"`
	// Note is why an operator completes the record: its first 256 bytes, in whole characters, replace the record's Note. Without it
	// that stays. Acquire and Inspect don't return it here.
	Note string `json:"-"`
}
