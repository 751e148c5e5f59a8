package dedup

import (
	"context"
	"time"
)

// Store keeps one record per event. Every sentence below has a case in package storetest, which each implementation
// passes.
//
// Durations go in and are applied to the store's clock; times come out in the caller's. Time decides who may acquire;
// ownership decides who may renew, complete or release. A store never lets a host's own clock decide a takeover.
//
// All methods are safe for concurrent use. An error that is not one of those named says that the outcome is not known
// or that nothing was done: the caller must not act as if the call had succeeded.
type Store interface {
	// Acquire takes the record of c.Key for c.Owner.
	//
	// It returns a [*CompletedError] where the event was completed and its retention is not over; an [*InProgressError]
	// where another owner's lease may be live, with the time from which another attempt makes sense; and
	// [sqsonce.ErrLeaseLost] for an owner that has released the key or lost it; where another owner holds the key now,
	// that owner's *InProgressError will do. The same claim again while it is held succeeds with the first answer's
	// values, and a renewal's later end: a caller whose reply was lost is not told that it is in progress elsewhere.
	// Each owner's fence is greater than every earlier one of the key while its record is retained.
	//
	// A context that has ended before the call stores nothing. An empty key or owner is refused.
	Acquire(ctx context.Context, c Claim) (Lease, error)

	// Renew moves the lease's end to d from now, never back, and returns the lease with its new end. It is allowed
	// after the end while no other owner took over. [sqsonce.ErrLeaseLost] after a takeover, a release or a complete.
	Renew(ctx context.Context, l Lease, d time.Duration) (Lease, error)

	// Complete marks the event as done and stores the result. It is allowed after the lease's end while no other owner
	// took over; a second time is nil. [sqsonce.ErrLeaseLost] where the record has another owner or is gone.
	Complete(ctx context.Context, l Lease, r Result) error

	// Release frees the key for the next delivery and keeps the first 256 bytes of cause's text for it, in whole
	// characters. A nil cause keeps none. It is nil, and touches nothing, where the lease was lost or the event
	// completed. The owner stays refused: see Acquire.
	Release(ctx context.Context, l Lease, cause error) error
}

// Claim is a request for the record of an event.
type Claim struct {
	// Key is the record's key: the consumer's name, '#' and the event's key, hashed over 1,024 bytes.
	Key string
	// Owner names this delivery attempt: 128 random bits, made before the first call and never used again.
	Owner string
	// Lease is how long others are refused.
	Lease time.Duration
	// Retention is how long the record is kept, counted from the acquire; never less than the lease's end plus an hour.
	Retention time.Duration
	// Attempt is the message's receive count. 0: unknown.
	Attempt int
	// Validation is a hash of the payload. "": not compared.
	Validation string
	// NoTakeover keeps a lease that ended without a release refused (crash policies Block and DeadLetter).
	NoTakeover bool
}

// Lease is a held record.
type Lease struct {
	Key, Owner string
	// Fence is greater than every earlier fence of the key while its record is retained.
	Fence int64
	// Until is the lease's end in the caller's clock, never later than the store's.
	Until time.Time
	// Retention is the claim's.
	Retention time.Duration
	// Takeover says that the last holder vanished: its lease ended without complete or release.
	Takeover bool
	// OwnRetry says that the store recognised a claim it had already granted: our own lost reply.
	OwnRetry bool
	// Attempts is the claim's Attempt.
	Attempts int
	// Foreign says that the record that was found is one of a program that knows no owners, such as Powertools for AWS
	// Lambda. Such a program updates and deletes without a condition.
	Foreign bool
	// LastError is what the last release kept.
	LastError string
	// Validation is the claim's payload hash, written with the completed record.
	Validation string
}

// Result is what a completed record keeps: nothing for messages, the JSON that [Do] replays.
type Result struct {
	Data       []byte
	Validation string
}

// Record is what operators see of an event: every concrete store has Inspect(ctx, key) (Record, error),
// Delete(ctx, key) error and Check(ctx) error.
type Record struct {
	Lease
	Completed bool
	Result    Result
	ExpiresAt time.Time // end of retention
}
