package dedup

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

const (
	defaultLease = 30 * time.Second
	leastLease   = time.Second
	// leastRetention is longer than a delayed copy of a request can live: AWS refuses a signature that is minutes old.
	leastRetention     = time.Hour
	defaultCallTimeout = 5 * time.Second
	defaultWait        = time.Second
	defaultCacheSize   = 1024
	defaultMaxResult   = 64 << 10
	// mostResult fits in a DynamoDB item of 400 KB next to the key, the attribute names and the rest of the record.
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
	mostResult = 350 << 10
)

// Options configure [New].
type Options struct {
	// Most users set these first.

	// Key returns the event's key. It must return the same key for every delivery of an event.
	// Default: Message.Key.
	Key func(*sqsonce.Message) (string, error)
	// OnCrash decides about an event whose last owner crashed.
	// Default: OnCrashRerun.
	OnCrash CrashPolicy
	// Retention is how long a record is retained after its acquire. It must cover the longest time in which a message can come
	// back. Standard queue: max(queue, DLQ) retention + queue retention after a redrive + 12 h. FIFO queue: queue retention +
	// DLQ retention + queue retention + 12 h, since SQS starts the retention anew on a FIFO DLQ and after every redrive. If
	// the host knows its queues, as sqsworker does, a retention that is too short for them is logged once.
	// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
	// Default: 29 days, which covers standard queues of 14 days. Limits: at least 1 h.
	Retention time.Duration

	// Other events, payloads and policies.

	// PayloadHash returns a hash of the payload. A delivery with the key of a completed event and another hash is rejected
	// with ErrPayloadMismatch, and the record stays as it is. A hash of more than 128 bytes, or with characters outside
	// printable ASCII, is stored as "sha256:" and the hex digits of its SHA-256.
	// Default: not set, payloads are not compared.
	PayloadHash func(*sqsonce.Message) string
	// TrustDedupID makes the queue's ARN, the group and the MessageDeduplicationId the key of messages without an event ID.
	// Use it only if the producers give each event a MessageDeduplicationId of its own.
	// Default: false.
	TrustDedupID bool
	// OnCompleteFailed decides about a message whose handler succeeded and whose record could not be completed.
	// Default: OnCompleteFailedRedeliver.
	OnCompleteFailed CompletePolicy
	// OnStoreDown decides about a message while the store can't be reached.
	// Default: OnStoreDownFailClosed.
	OnStoreDown StorePolicy

	// Leases, calls and memory.

	// LeaseDuration is the length of a record lease. dedup renews it after each third, until the handler has returned. That
	// includes a handler with a cancelled context, because other deliveries must not start while it runs. After a crash an event
	// waits until the lease expires. A shorter lease means a shorter wait, and more renewals, which are one write each. If the
	// message has a KillAt (on Lambda), the lease ends 2 s after KillAt and is not renewed.
	// Default: 30 s. Limits: at least 1 s.
	LeaseDuration time.Duration
	// CallTimeout is the timeout of each acquire, complete, renewal and release. An acquire that lasts a second longer fails
	// with [sqsonce.ErrUnavailable]. Under OnStoreDownRunAnyway, so does an acquire that lasts a third of the time until the
	// message's KillAt. The first complete and release run on a context of their own. A renewal ends after a third of the
	// lease at the latest.
	// Default: 5 s. Limits: positive.
	CallTimeout time.Duration
	// PeerWait is how long a delivery waits for its peers, which are other deliveries of the same event in this process. If
	// the peer succeeds, the delivery is acknowledged. If the peer fails, the next delivery runs. If the peer still runs after
	// PeerWait, the delivery is refused as in progress. While it waits, it occupies a slot of its host, and on Lambda the time
	// of the invocation. A host that can hold messages, such as sqsworker, waits without a slot instead, for as long as the
	// peer runs. A call from inside a handler of a Once does not wait. A negative value turns the wait off.
	// Default: 1 s.
	PeerWait time.Duration
	// CacheSize is how many completed keys are remembered, each for a minute. A negative value turns the cache off.
	// Default: 1,024.
	CacheSize int
	// MaxResult is the longest result that Do stores, in bytes.
	// Default: 64 KB. Limits: at most 350 KB.
	MaxResult int

	// Logs, hooks and texts.

	// Logger gets the lines about lost leases, failed renewals and applied policies, which errors don't report. docs/logs.md
	// lists them. If its slog.Handler blocks, dedup drops lines. A host of this module waits for a delivery's lines together
	// with its own. With other hosts a line may be lost if the process ends at once.
	// Default: slog.Default().
	Logger *slog.Logger
	// Hooks are called for telemetry. See [Hooks].
	// Default: not set.
	Hooks []Hooks
	// ErrorText returns the text that is written into the record for a handler's error. Use it for texts that must not be
	// kept. If it panics, the record has the error's type.
	// Default: Error.
	ErrorText func(error) string
}

// CrashPolicy decides about an event whose last owner crashed: its lease has expired, and its record was neither completed nor
// released.
type CrashPolicy int

const (
	// OnCrashRerun takes the record over when its lease has expired, and runs the handler again.
	OnCrashRerun CrashPolicy = iota
	// OnCrashBlock refuses the event with ErrCrashed until an operator reopens the record ([Reopener]) or its retention ends.
	// A delayed copy of an acquire request can reach a key without a record. It leaves a lease whose owner does not run, which
	// looks like a crash.
	OnCrashBlock
	// OnCrashDeadLetter rejects the event, so the message goes to the dead-letter queue with the reason. As under
	// OnCrashBlock, a delayed copy of an acquire looks like a crash.
	OnCrashDeadLetter
)

// CompletePolicy decides about a message whose handler succeeded and whose record could not be completed.
type CompletePolicy int

const (
	// OnCompleteFailedRedeliver repeats the complete while the host has the message: a worker until MaxExtension or its stop,
	// a function until its margin. Then the delivery fails with [sqsonce.ErrUnavailable]. This process goes on to complete the
	// record, and the handler runs again if another process takes the record over after the lease has expired. If the success has
	// a payload hash, a result or the reason of a Skip, and the store refuses its complete with and without them while it renews
	// the lease, the complete is not repeated for as long: the delivery fails.
	OnCompleteFailedRedeliver CompletePolicy = iota
	// OnCompleteFailedAcknowledge repeats the complete for CallTimeout. Then it lets the host delete the message, and the
	// event runs again only if SQS or the producer delivers it again.
	OnCompleteFailedAcknowledge
)

// StorePolicy decides about a message while the store can't be reached.
type StorePolicy int

const (
	// OnStoreDownFailClosed returns the store's error, so handlers don't run without a record. Hosts keep the message while
	// the error matches [sqsonce.ErrUnavailable].
	OnStoreDownFailClosed StorePolicy = iota
	// OnStoreDownRunAnyway runs the handler without a record, so it may run more than once. One complete is sent after the
	// run. The policy does not apply if the store is misconfigured ([sqsonce.ErrMisconfigured]).
	OnStoreDownRunAnyway
)

// resolve sets the defaults and reports everything that cannot be used.
func (o *Options) resolve(s Store, consumer string) error {
	p := host.Problems{Package: "dedup"}
	p.Add(host.IsNil(s), "store", "is nil")
	p.Consumer(consumer)

	o.LeaseDuration = cmp.Or(o.LeaseDuration, defaultLease)
	o.Retention = cmp.Or(o.Retention, host.DefaultRetention)
	o.CallTimeout = cmp.Or(o.CallTimeout, defaultCallTimeout)
	o.PeerWait = cmp.Or(o.PeerWait, defaultWait)
	o.CacheSize = cmp.Or(o.CacheSize, defaultCacheSize)
	o.MaxResult = cmp.Or(o.MaxResult, defaultMaxResult)
	o.Logger = host.QueuedLogger(o.Logger)
	p.Add(o.LeaseDuration < leastLease, "Options.LeaseDuration", "is %s, must be at least %s", o.LeaseDuration, leastLease)
	p.Add(o.Retention < leastRetention, "Options.Retention", "is %s, must be at least %s", o.Retention, leastRetention)
	p.Add(o.CallTimeout < 0, "Options.CallTimeout", "is %s, must be positive", o.CallTimeout)
	p.Add(o.MaxResult < 0 || o.MaxResult > mostResult, "Options.MaxResult", "is %d bytes, must be 1 to %d", o.MaxResult, mostResult)
	p.Add(o.OnCrash < OnCrashRerun || o.OnCrash > OnCrashDeadLetter, "Options.OnCrash", "is %d, must be OnCrashRerun, OnCrashBlock or OnCrashDeadLetter", o.OnCrash)
	p.Add(o.OnCompleteFailed < OnCompleteFailedRedeliver || o.OnCompleteFailed > OnCompleteFailedAcknowledge, "Options.OnCompleteFailed", "is %d, must be OnCompleteFailedRedeliver or OnCompleteFailedAcknowledge", o.OnCompleteFailed)
	p.Add(o.OnStoreDown < OnStoreDownFailClosed || o.OnStoreDown > OnStoreDownRunAnyway, "Options.OnStoreDown", "is %d, must be OnStoreDownFailClosed or OnStoreDownRunAnyway", o.OnStoreDown)
	return p.Err()
}
