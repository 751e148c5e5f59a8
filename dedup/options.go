package dedup

import (
	"log/slog"
	"time"

	"github.com/sqsonce/sqsonce"
)

// Options configure [New].
type Options struct {
	// Key returns the event's key; it must be stable over redeliveries. Default: Message.Key.
	Key func(*sqsonce.Message) (string, error)
	// Validate returns a hash of the payload. The same key with another hash is ErrPayloadMismatch, a Reject that leaves
	// the record as it is. Default: none.
	Validate func(*sqsonce.Message) string
	// TrustDedupID takes the queue's ARN, the group and the MessageDeduplicationId as the key of messages without an
	// event ID. Only for producers that give each event a MessageDeduplicationId of its own. Default: false.
	TrustDedupID bool
	// Lease is how long a record is held after the last sign of life; it is renewed at a third of it until the handler
	// has returned. Where the message has a KillAt the lease ends 2 s after it and is not renewed. Default: 30 s; least
	// 1 s.
	Lease time.Duration
	// Retention is how long a record is kept, counted from the acquire. It must cover the longest way back of a message:
	// for a standard queue max(queue, DLQ) retention + queue retention after a redrive + 12 h; for FIFO the sum of queue,
	// DLQ and again queue retention + 12 h, since the FIFO DLQ and every redrive start SQS's clock anew. Default: 29
	// days, which covers standard queues of 14 days; least 1 h.
	Retention time.Duration
	// CallTimeout bounds each complete, renewal and release, which run on a context of their own; a renewal ends after a
	// third of the lease at the latest. Default: 5 s.
	CallTimeout time.Duration
	// OnCrash says what becomes of an event whose last holder vanished. Default: Rerun.
	OnCrash CrashPolicy
	// OnCompleteFailed says what becomes of a message whose handler succeeded and whose record could not be completed.
	// Default: Redeliver.
	OnCompleteFailed CompletePolicy
	// OnStoreDown says what becomes of a message while the store cannot be reached. Default: FailClosed.
	OnStoreDown StorePolicy
	// Wait is how long a delivery waits for another delivery of its event that this process is handling, before it is
	// refused as in progress. Meanwhile it has a slot of its host, and on Lambda the time of its invocation. A host that
	// can hold messages (as sqsworker while there is room) waits in its place: without a slot, and
	// for as long as the other one takes. Calls from inside a guarded handler do not wait. Default: 1 s; negative: none.
	Wait time.Duration
	// CacheSize is how many completed keys are remembered, for at most a minute. Default: 1,024; negative: off.
	CacheSize int
	// MaxResult is the longest result that Do stores, in bytes. Default: 64 KB; most 350 KB.
	MaxResult int
	// Logger gets what no error carries: lost leases, policies at work. Default: discard.
	Logger *slog.Logger
}

// CrashPolicy decides about an event whose last holder vanished between the start of the handler and its record.
type CrashPolicy int

const (
	// Rerun takes the record over when its lease ends and runs the handler again.
	Rerun CrashPolicy = iota
	// Block refuses the event with ErrCrashed until an operator deletes the record or its retention ends. A delayed copy
	// of an acquire that reaches a free key leaves a lease that nobody holds, and looks like a crash.
	Block
	// DeadLetter rejects the event: to the dead-letter queue with the reason. The remark at Block applies.
	DeadLetter
)

// CompletePolicy decides about a message whose handler succeeded and whose record could not be completed.
type CompletePolicy int

const (
	// Redeliver fails the delivery: the handler runs again when the lease is over.
	Redeliver CompletePolicy = iota
	// Acknowledge lets the message be deleted: the deletion is the second line of defence.
	Acknowledge
)

// StorePolicy decides about a message while the store cannot be reached.
type StorePolicy int

const (
	// FailClosed fails the delivery: nothing runs without a record.
	FailClosed StorePolicy = iota
	// RunAnyway runs the handler without a record: it may run more than once.
	RunAnyway
)
