package dedup

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/guard"
)

// Hooks are functions for telemetry that a Once calls for its decisions, store calls and incidents. The rules of
// [sqsonce.Hooks] apply. The context is that of the delivery, and that of the
// handler while it runs. Work for the delivery after its end has a context with the same values and another end. A call
// of [Do] is a delivery too.
type Hooks struct {
	// Decided is called once for each delivery, after the decision whether its handler runs, and before it runs.
	Decided func(ctx context.Context, d Decision)
	// Called is called after each call of the store. For an inbox these are the calls of its transaction. sqlstore's inbox
	// renews without a request, and an inbox does not call complete if the handler's transaction completes the record.
	Called func(ctx context.Context, c StoreCall)
	// Incident is called for incidents that neither a decision nor a call's result shows.
	Incident func(ctx context.Context, i Incident)
}

// Decision is the decision about a delivery before its handler.
type Decision struct {
	Consumer  string
	Key       string            // the record's key, which may be personal data
	KeySource sqsonce.KeySource // 0 for Do
	Outcome   DecisionOutcome
	Memory    bool          // answered without a request
	Elapsed   time.Duration // since the delivery came, including waits for another one in this process
	Fence     int64         // set if the handler runs under a record
	Until     time.Time     // the end of the other owner's lease, if in progress
	Err       error         // set if something failed: the store, Options.Key, the host's context
}

// DecisionOutcome names a decision. The texts are stable, because metrics use them.
type DecisionOutcome string

// The decisions. After the first three the handler runs.
const (
	DecidedFirst      DecisionOutcome = "first"       // the record had no earlier owner, or was released
	DecidedTakeover   DecisionOutcome = "takeover"    // the last owner crashed
	DecidedUnguarded  DecisionOutcome = "unguarded"   // the store is down, policy OnStoreDownRunAnyway
	DecidedDuplicate  DecisionOutcome = "duplicate"   // the event was completed before
	DecidedSuspect    DecisionOutcome = "suspect"     // the last owner crashed: the host runs the event apart from others, in its own delivery
	DecidedInProgress DecisionOutcome = "in_progress" // another delivery is in progress
	DecidedCrashed    DecisionOutcome = "crashed"     // the last owner crashed, policy OnCrashBlock or OnCrashDeadLetter
	DecidedMismatch   DecisionOutcome = "mismatch"    // another payload under the key of a completed event
	DecidedNoKey      DecisionOutcome = "no_key"      // the event does not have an ID, or Options.Key failed
	DecidedLost       DecisionOutcome = "lease_lost"  // the lease was lost before the start
	DecidedStoreError DecisionOutcome = "store_error"
	DecidedCancelled  DecisionOutcome = "cancelled" // the host's context ended first
)

// StoreCall is one call of the store.
type StoreCall struct {
	Consumer  string
	Key       string // the record's key
	Operation string // "acquire", "renew", "complete" or "release"
	Result    string // "ok", "completed", "in_progress", "crashed", "lease_lost" or "error"
	Elapsed   time.Duration
	Until     time.Time // the lease's end, after an acquire or renewal that succeeded
	// Err is set if Result is "error". A renewal that is under way when its handler returns is cancelled, and its error
	// usually matches context.Canceled.
	Err error
}

// Incident is an occurrence that should be rare.
type Incident struct {
	Consumer string
	Key      string // the record's key
	Kind     IncidentKind
	Fence    int64 // 0 if not known
	Err      error // nil for an own retry, a lease that ended, and a foreign writer that an acquire found
}

// IncidentKind names an incident. The texts are stable, because metrics use them.
type IncidentKind string

// The incidents. The first three say that a delivery whose handler was started has lost its lease. Such an incident comes once,
// before the loss cancels the handler's context. An acquire that finds a record of a foreign writer reports the third too.
const (
	IncidentTakenOver     IncidentKind = "taken_over"     // another owner has the record, or it was deleted
	IncidentExpired       IncidentKind = "expired"        // the lease ended before a renewal was answered
	IncidentForeignWriter IncidentKind = "foreign_writer" // a writer that does not check ownership wrote the record
	IncidentNotCompleted  IncidentKind = "not_completed"  // the handler succeeded, but its record could not be completed
	IncidentNotReleased   IncidentKind = "not_released"   // the event waits for the lease's end
	IncidentOwnRetry      IncidentKind = "own_retry"      // an acquire was granted before, and its first answer was lost
)

// hooks are those of the options, guarded. They are never called under a lock.
type hooks []guarded

type guarded struct {
	Hooks
	decided, called, incident *guard.Guard
}

func newHooks(log *slog.Logger, all []Hooks) (hs hooks) {
	for _, h := range all {
		hs = append(hs, guarded{h, guard.New(log, "dedup: Hooks.Decided"), guard.New(log, "dedup: Hooks.Called"), guard.New(log, "dedup: Hooks.Incident")})
	}
	return hs
}

// arrival is when a delivery came; zero where no hook asks for it.
func (hs hooks) arrival() (t time.Time) {
	if hs != nil {
		t = time.Now()
	}
	return t
}

func (o *Once) decided(ctx context.Context, t *task, d Decision) {
	if o.hooks == nil {
		return
	}
	d.Consumer, d.Key, d.KeySource, d.Elapsed = o.consumer, t.key, t.source, time.Since(t.came)
	for i := range o.hooks {
		if h := &o.hooks[i]; h.Decided != nil {
			h.decided.Call(ctx, func() { h.Decided(ctx, d) })
		}
	}
}

func (o *Once) incident(ctx context.Context, i Incident) {
	i.Consumer = o.consumer
	for n := range o.hooks {
		if h := &o.hooks[n]; h.Incident != nil {
			h.incident.Call(ctx, func() { h.Incident(ctx, i) })
		}
	}
}

// failedOutcome is the decision about a delivery for which the store has failed. After the context's end an error that is neither the
// context's nor of an unknown outcome is the store's own answer.
func failedOutcome(ctx context.Context, err error) DecisionOutcome {
	if ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)) || errors.Is(err, ErrOutcomeUnknown)) {
		return DecidedCancelled
	}
	return DecidedStoreError
}

// hookedStore calls the hooks after each call of a store. A Once without hooks has none.
type hookedStore struct {
	store    Store
	consumer string
	hooks    hooks
}

func (s hookedStore) Acquire(ctx context.Context, c Claim) (Grant, error) {
	begun := time.Now()
	g, err := s.store.Acquire(ctx, c)
	s.called(ctx, StoreCall{Key: c.Key, Operation: "acquire", Result: resultOfVerdict(g.Verdict), Elapsed: time.Since(begun), Until: g.Lease.Until}, err)
	return g, err
}

func (s hookedStore) Renew(ctx context.Context, l Lease, d time.Duration) (Lease, error) {
	begun := time.Now()
	renewed, err := s.store.Renew(ctx, l, d)
	s.called(ctx, StoreCall{Key: l.Key, Operation: "renew", Result: resultOf(err), Elapsed: time.Since(begun), Until: renewed.Until}, err)
	return renewed, err
}

func (s hookedStore) Complete(ctx context.Context, l Lease, r Result) error {
	begun := time.Now()
	err := s.store.Complete(ctx, l, r)
	s.called(ctx, StoreCall{Key: l.Key, Operation: "complete", Result: resultOf(err), Elapsed: time.Since(begun)}, err)
	return err
}

func (s hookedStore) Release(ctx context.Context, l Lease, cause error) error {
	begun := time.Now()
	err := s.store.Release(ctx, l, cause)
	s.called(ctx, StoreCall{Key: l.Key, Operation: "release", Result: resultOf(err), Elapsed: time.Since(begun)}, err)
	return err
}

func (s hookedStore) called(ctx context.Context, c StoreCall, err error) {
	c.Consumer = s.consumer
	if err != nil {
		c.Until = time.Time{}
	}
	if c.Result == "error" {
		c.Err = err
	}
	for i := range s.hooks {
		if h := &s.hooks[i]; h.Called != nil {
			h.called.Call(ctx, func() { h.Called(ctx, c) })
		}
	}
}

// resultOfVerdict is an acquire's StoreCall.Result.
func resultOfVerdict(v Verdict) string {
	switch {
	case v == VerdictGranted:
		return "ok"
	case v.known():
		return v.String()
	}
	return "error"
}

func resultOf(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, sqsonce.ErrLeaseLost):
		return "lease_lost"
	}
	return "error"
}
