package dedup

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// Once skips the events that a handler has completed, with one record per event in a store. It is safe for concurrent use and does not need a
// Close.
type Once struct {
	store       Store
	consumer    string
	o           Options // with defaults
	hooks       hooks
	peers       peers
	cache       cache
	ends        callEnds
	counts      counters
	noSource    sync.Once // logs an event-id without an event-source
	noID        sync.Once // the warning about messages without an event ID
	unrecorded  unrecorded
	asker       asker // nil: the store takes any record
	asking      asking
	handlers    atomic.Int64
	tooShort    sync.Once    // logs a retention that is shorter than a message can take to come back
	connections func() int   // of the store's pool at most; 0: no limit
	allowed     func() int   // connections of the store's server for all programs; 0: unknown
	warned      atomic.Int64 // see outageLevel
	apart       apartStarts
	tooFew      sync.Once // logs a pool that is smaller than the host's concurrency
	tooMany     sync.Once // logs a pool that is larger than the server allows
}

// New returns a Once that keeps its records in s under the consumer's name.
//
// Handlers that share a store and a consumer name share their events: an event that one of them completed does not run in
// another. Give each handler that must see every event its own name, and give the same handler the same name in every host.
// The name has 1 to 64 of the characters A-Z a-z 0-9 . _ / - and is part of every key. If you change the name, every event
// runs again. The name sqsonce.control is that of package control.
//
// New does not make requests or start goroutines. Its error joins a [*sqsonce.OptionError] for each argument or option that
// can't be used.
func New(s Store, consumer string, optFns ...func(*Options)) (*Once, error) {
	var o Options
	for _, fn := range optFns {
		fn(&o)
	}
	if err := o.resolve(s, consumer); err != nil {
		return nil, err
	}
	once := &Once{store: recoveringStore{s}, consumer: consumer, o: o, peers: newPeers(), cache: newCache(o.CacheSize)}
	once.apart.init(s)
	once.asker, _ = s.(asker)
	once.connections, once.allowed = func() int { return 0 }, func() int { return 0 }
	if p, ok := s.(pooled); ok {
		once.connections = p.MaxOpenConnections
	}
	if p, ok := s.(served); ok {
		once.allowed = p.ServerConnections
	}
	if once.hooks = newHooks(o.Logger, o.Hooks); once.hooks != nil {
		once.store = hookedStore{once.store, consumer, once.hooks}
	}
	return once, nil
}

// Handler returns a handler that runs h under the record of the message's event. The record is acquired before h runs and
// renewed while h runs. When h has returned, the record is completed or released, even if ctx was cancelled meanwhile.
//
// If the store does not answer, Handler retries the complete while the host has the message and time for it. It retries the
// release until the lease expires. Without one of this module's hosts, both retries end with the lease. The pauses grow from
// 1 s to 5 s. A deadline of ctx ends h, but not the calls of the store. If that time is too short, this process goes on to
// complete the record for up to 12 h. Meanwhile it doesn't call h for a redelivery of the event.
//
// The returned handler's error is:
//
//   - nil: h returned nil and the record is completed. Or the event was completed before, and h was not called.
//   - h's own error, unchanged: h returned it, and the record was released with its text. A panic is a [*sqsonce.PanicError].
//     But if h's error matches [sqsonce.ErrLeaseLost], because another record has another owner, only its text, its delay and
//     a panic's stack are kept.
//     After [runtime.Goexit] the record is released as after a panic, and the goroutine ends. The hosts of this module count
//     that as a failure.
//   - matching [sqsonce.ErrInProgress]: another delivery owns the record, and h was not called. The error is a
//     [sqsonce.RetryAfter] around an [*InProgressError]. Its delay ends one second after the other delivery's lease.
//   - matching [sqsonce.ErrLeaseLost]: the record has another owner. h may have run, but its outcome is not recorded. The host
//     must neither delete nor change the message. If the lease is lost while h runs, its context is cancelled with that cause.
//   - a [sqsonce.Reject] around [ErrPayloadMismatch], [ErrCrashed] (policy OnCrashDeadLetter) or [sqsonce.ErrNoEventID]:
//     h was not called.
//   - matching [ErrCrashed] (policy OnCrashBlock): h was not called.
//   - matching [sqsonce.ErrUnavailable]: the store did not answer, or answered with an error that says nothing about the
//     record, or ctx ended before the answer. Either h was not called. Or h succeeded, its record could not be completed while
//     the host had the message, and the policy is OnCompleteFailedRedeliver. Or h failed, and its record was not released
//     before the lease expired, or not renewed before a Reject.
//   - matching [ErrRecord]: another program has written the record. h was not called.
//   - any other: the store refused a value of the message ([*sqsonce.OptionError]), or Options.Key failed. h was not called,
//     unless the store refuses to store the result.
func (o *Once) Handler(h sqsonce.Handler) sqsonce.Handler {
	if h == nil {
		return nil
	}
	o.countHandler()
	return func(ctx context.Context, m *sqsonce.Message) error {
		t, err := o.task(ctx, m)
		if err != nil {
			return err
		}
		t.run = func(ctx context.Context, _ Lease) ending { return ending{err: h(ctx, m)} }
		return o.do(ctx, t)
	}
}

// task is one call under a record. All that the record needs is computed before the handler runs, because a handler that
// changes its message must not complete another event's record.
type task struct {
	key        string // the record's
	source     sqsonce.KeySource
	came       time.Time // zero without hooks
	validation string
	attempt    int
	killAt     time.Time
	redriven   bool // by its attribute: an operator may have reopened the record since this process saw it completed
	run        func(context.Context, Lease) ending
	replay     func(Result) error // nil: a duplicate needs no result
}

func (o *Once) task(ctx context.Context, m *sqsonce.Message) (task, error) {
	settle.Ran(ctx, false)
	settle.ShowMessage(ctx, m.ID)
	t := task{came: o.hooks.arrival(), attempt: m.ReceiveCount, killAt: m.KillAt}
	delivered := m
	if outer, ok := sqsonce.Original(ctx); ok {
		delivered = outer
	}
	_, t.redriven = delivered.Attributes[sqsonce.AttrRedriven]
	var err error
	if t.key, t.source, err = o.keyOf(ctx, m); err != nil {
		o.decided(ctx, &t, Decision{Outcome: DecidedNoKey, Err: err})
		return task{}, err
	}
	if o.o.PayloadHash != nil {
		t.validation = storable(o.o.PayloadHash(m))
	}
	return t, nil
}

// pooled is a store whose handlers or calls share a pool of connections.
type pooled interface {
	MaxOpenConnections() int // 0: no limit
}

// served is a store whose server limits the connections of all programs.
type served interface {
	ServerConnections() int // 0: unknown
}

// checkHost warns where a message of the host's queue can come back after its event's record was deleted, where handlers wait for each
// other's connections, and where the server may refuse them.
func (o *Once) checkHost(ctx context.Context) {
	n, most, allowed := settle.Concurrency(ctx), o.connections(), o.allowed()
	if may := cmp.Or(most, n); allowed > 0 && may > allowed { // without a limit the pool has a connection for each handler
		o.tooMany.Do(func() {
			o.o.Logger.WarnContext(ctx, "dedup: the pool may open more connections than the server allows to all programs: set SetMaxOpenConns below max_connections, or use a pooler",
				"consumer", o.consumer, "connections", may, "server_connections", allowed)
		})
	}
	if most > 0 && n > most {
		o.tooFew.Do(func() {
			o.o.Logger.WarnContext(ctx, "dedup: the pool has fewer connections than the host runs handlers: set SetMaxOpenConns above Concurrency, or lower Concurrency",
				"consumer", o.consumer, "connections", most, "concurrency", n)
		})
	}
	if longest := settle.LongestReturn(ctx); longest > o.o.Retention {
		o.tooShort.Do(func() {
			o.o.Logger.WarnContext(ctx, "dedup: Options.Retention is shorter than a message of this queue can take to come back, by the retention of the queue and its dead-letter queue: an event that comes back later runs again",
				"consumer", o.consumer, "retention", o.o.Retention, "longest_return", longest)
		})
	}
}

// do is the whole way of one delivery.
func (o *Once) do(ctx context.Context, t task) error {
	rl := newRecordLease(o, t)
	if rl.nested = nested(ctx); rl.nested || t.replay != nil {
		rl.tellRecording(ctx, true) // the caller's handler goes on afterwards
	} else {
		settle.Before(ctx)
	}
	defer rl.tellRecording(ctx, false)
	o.checkHost(ctx)
	if known, err := o.joinPeers(ctx, rl); known {
		return err
	}
	defer rl.end()

	if known, err := o.completeEarlier(ctx, &rl.task); known {
		rl.acquireDone(false)
		return err
	}
	own, _ := settle.Host(ctx) // a handler's deadline does not end the call before it
	var g Grant
	err := o.noteStart(own, rl)
	if err == nil {
		g, err = o.acquire(own, rl)
	}
	if g.Verdict == VerdictCompleted {
		o.cache.add(t.key, g.Result.Validation) // before the peers that wait for rl check again
	}
	rl.acquireDone(g.Verdict == VerdictGranted)
	if err != nil {
		return o.acquireFailed(ctx, rl, err)
	}
	return o.answered(ctx, rl, g)
}
