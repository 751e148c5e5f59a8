package dedup

import (
	"context"
	"errors"
	"time"

	"github.com/sqsonce/sqsonce"
)

// Once runs a handler once per event: it guards each call with a record in a store. It is safe for concurrent use and
// has nothing to close.
type Once struct {
	store    Store
	consumer string
	o        Options // with defaults
	memory   memory
	counts   counters
}

// New returns a Once that keeps its records in s under the consumer's name. Handlers that share a store and a consumer
// name share their events: give every handler that must see an event by itself a name of its own, and the same handler
// the same name in every host. The name has 1 to 64 of the characters A-Z a-z 0-9 . _ / - and is part of every key:
// changing it lets every event run again.
//
// It makes no call and starts nothing. The error joins a [*sqsonce.FieldError] for every argument or option that cannot
// be used.
func New(s Store, consumer string, optFns ...func(*Options)) (*Once, error) {
	var o Options
	for _, fn := range optFns {
		fn(&o)
	}
	if err := o.complete(s, consumer); err != nil {
		return nil, err
	}
	return &Once{store: s, consumer: consumer, o: o, memory: newMemory(o.CacheSize)}, nil
}

// Handler returns h guarded by the event's record. Before h runs, the record is acquired; while it runs, the record is
// renewed; after it, the record is completed or released, also where ctx has ended by then.
//
// The returned handler's error is:
//
//   - nil: h returned nil and the record is completed, or the event was completed before and h was not called.
//   - h's own error, unchanged: h returned it and the record was released with its text. A panic is a
//     [*sqsonce.PanicError]. After [runtime.Goexit] the record is released as after a panic, and the goroutine ends: the
//     hosts of this module take that for a failure.
//   - matching [sqsonce.ErrInProgress]: another delivery holds the event and h was not called. It is a
//     [*sqsonce.RetryError] whose delay ends a second after the holder's lease, around an [*InProgressError].
//   - matching [sqsonce.ErrLeaseLost]: another owner took the record over. h may have run; its outcome is not recorded.
//     The message must be neither deleted nor changed. While h runs its context ends with that cause.
//   - a [*sqsonce.RejectError] of [ErrPayloadMismatch], of [ErrCrashed] (policy DeadLetter), or of
//     [sqsonce.ErrNoEventID]: h was not called.
//   - matching [ErrCrashed] (policy Block): h was not called.
//   - any other: the store failed. h was not called; or it succeeded, its record could not be completed before the lease
//     ended, and the policy is Redeliver.
//
// A second delivery of an event that this process is handling waits for that handler for at most Options.Wait, or its
// host holds the message meanwhile, as sqsworker does. Such a delivery, and one of an event that this process saw
// completed within the last minute, is answered from memory, without a request.
func (o *Once) Handler(h sqsonce.Handler) sqsonce.Handler {
	if h == nil {
		err := &sqsonce.FieldError{Package: "dedup", Field: "handler", Problem: "is nil"}
		return func(context.Context, *sqsonce.Message) error { return err }
	}
	return func(ctx context.Context, m *sqsonce.Message) error {
		t, err := o.task(m)
		if err != nil {
			return err
		}
		t.run = func(ctx context.Context, l Lease) (Result, bool, error) {
			return Result{Validation: l.Validation}, false, h(ctx, m)
		}
		return o.do(ctx, t)
	}
}

// task is one guarded call. Everything about the record is computed before the handler runs: a handler that changes its
// message must not complete another event's record.
type task struct {
	key        string // the record's
	validation string
	attempt    int
	killAt     time.Time
	run        func(context.Context, Lease) (r Result, completed bool, err error)
	replay     func(Result) error // nil: a duplicate needs no result
}

func (o *Once) task(m *sqsonce.Message) (task, error) {
	key, err := o.keyOf(m)
	if err != nil {
		return task{}, err
	}
	t := task{key: key, attempt: m.ReceiveCount, killAt: m.KillAt}
	if o.o.Validate != nil {
		t.validation = o.o.Validate(m)
	}
	return t, nil
}

func (o *Once) do(ctx context.Context, t task) error {
	h := newHold(o, t)
	if err, answered := o.fromMemory(ctx, t, h); answered {
		return err
	}
	defer h.end()

	l, err := o.acquire(ctx, h)
	if e, ok := errors.AsType[*CompletedError](err); ok {
		o.memory.complete(t.key, e.Result.Validation) // before those that wait for h look again
	}
	h.decide(err)
	if err != nil {
		return o.refused(ctx, t, err)
	}
	return o.run(ctx, t, h, l)
}
