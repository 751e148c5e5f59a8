// Package settle is what a host and middleware tell each other through the handler's context.
//
// A host settles each message once: the message is in the dead-letter queue, or the delivery failed, or it is done.
// Middleware can leave work until then. A host that can hold messages says so, and middleware then does not wait inside
// the handler.
package settle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// New returns the context to call one handler with, and the function that settles its message.
//
// A host calls settle once for each call of a handler, whatever the outcome, and before it deletes a rejected message:
// with true when the dead-letter queue has confirmed the message, else with false. Later calls do nothing. settle runs
// what was left by [Later] in the reverse order, and waits for it; it may take as long as a call of the store.
//
// What was left may be the user's code. A panic in one function does not keep the others from running;
// settle returns an error with the panic's value and stack.
func New(ctx context.Context) (_ context.Context, settle func(deadLettered bool) error) {
	s := &settlement{Context: ctx}
	return s, s.settle
}

// Settle is the function that New returned with ctx, for a host that settles the message elsewhere.
func Settle(ctx context.Context, deadLettered bool) error {
	return ctx.Value(settlementKey{}).(*settlement).settle(deadLettered)
}

// Later leaves f to the host that called the handler with ctx. It returns false, and does nothing, where ctx is not from
// such a host or the message is settled already: the caller then acts at once.
func Later(ctx context.Context, f func(deadLettered bool)) bool {
	s, ok := ctx.Value(settlementKey{}).(*settlement)
	return ok && s.add(f)
}

// Host returns a context with the values of ctx that ends when the host has no more time for the message, or no longer has it. A
// deadline that was set for the handler, by the host or by middleware, does not end it. hosted is false, and the context ctx itself,
// where ctx is not from a host.
func Host(ctx context.Context) (_ context.Context, hosted bool) {
	s, ok := ctx.Value(settlementKey{}).(*settlement)
	switch {
	case !ok:
		return ctx, false
	case ctx.Done() == s.Context.Done():
		return ctx, true
	}
	return hostContext{s.Context, ctx}, true
}

// hostContext ends as the host's, and has the values of the handler's.
type hostContext struct {
	context.Context
	values context.Context
}

func (c hostContext) Value(key any) any { return c.values.Value(key) }

// AfterFunc lets package context derive from c without a goroutine.
func (c hostContext) AfterFunc(f func()) (stop func() bool) { return context.AfterFunc(c.Context, f) }

// Record tells the host that middleware has the message, and not the handler, until [Recorded] is called: it records the outcome of a
// handler that has returned, or answers a call that a handler makes. A handler whose own deadline has passed is not stuck meanwhile.
func Record(ctx context.Context) { record(ctx, 1) }

// Recorded ends a [Record].
func Recorded(ctx context.Context) { record(ctx, -1) }

func record(ctx context.Context, by int64) {
	if s, ok := ctx.Value(settlementKey{}).(*settlement); ok {
		s.recording.Add(by)
		return
	}
	calls, _ := ctx.Value(batchKey{}).([]context.Context)
	for _, call := range calls {
		record(call, by)
	}
}

// WithBatch returns ctx, which is of no host, for the handler of a batch: a [Record] with it is one for the host of each call.
func WithBatch(ctx context.Context, calls []context.Context) context.Context {
	return context.WithValue(ctx, batchKey{}, calls)
}

type batchKey struct{}

// Recording reports whether a [Record] has not ended. ctx is that of New.
func Recording(ctx context.Context) bool {
	s, ok := ctx.Value(settlementKey{}).(*settlement)
	return ok && s.recording.Load() > 0
}

// Before tells the host that middleware has the message, and has not called its handler: while it waits for its store, for example.
// It holds until [Ran] says that the handler is called.
func Before(ctx context.Context) {
	if s, ok := ctx.Value(settlementKey{}).(*settlement); ok {
		s.before.Store(true)
	}
}

// InHandler reports whether the handler itself runs, as far as middleware tells: it is called, and no [Record] is under way.
func InHandler(ctx context.Context) bool {
	s, ok := ctx.Value(settlementKey{}).(*settlement)
	return ok && !s.before.Load() && s.recording.Load() == 0
}

type settlementKey struct{}

// settlement is the context that New returns.
type settlement struct {
	context.Context        // the host's
	holder          Holder // see HeldBy
	recording       atomic.Int64
	before          atomic.Bool
	unrun           atomic.Bool  // see Ran
	calls, skips    atomic.Int64 // see Told

	mu      sync.Mutex
	settled bool
	facts   facts
	later   []func(deadLettered bool)
}

// String prints no fields: what prints a context, as mocks do, would read them while they change.
func (s *settlement) String() string { return fmt.Sprint(s.Context) + ".settlement" }

func (s *settlement) Value(key any) any {
	if key == (settlementKey{}) {
		return s
	}
	return s.Context.Value(key)
}

// facts are what a host and middleware tell each other. The first of each counts, that of the outermost middleware.
type facts struct {
	message     string // its ID
	kept        string // the key of its event, for the copy in the dead-letter queue
	event       string // the key of its event
	record      string // the key of its record, which only a key function knows
	concurrency int    // of the host
}

// tell does nothing where ctx is not from a host.
func tell(ctx context.Context, f facts) {
	s, ok := ctx.Value(settlementKey{}).(*settlement)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.facts.event == "" {
		s.facts.event, s.facts.record = f.event, f.record
	}
	s.facts.message, s.facts.kept = cmp.Or(s.facts.message, f.message), cmp.Or(s.facts.kept, f.kept)
	s.facts.concurrency = cmp.Or(s.facts.concurrency, f.concurrency)
}

func told(ctx context.Context) facts {
	s, ok := ctx.Value(settlementKey{}).(*settlement)
	if !ok {
		return facts{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.facts
}

// RunsAtOnce tells middleware how many handlers the host runs at once at most.
func RunsAtOnce(ctx context.Context, n int) { tell(ctx, facts{concurrency: n}) }

// Concurrency returns the number of [RunsAtOnce], or 0.
func Concurrency(ctx context.Context) int { return told(ctx).concurrency }

// ShowMessage has [MessageID] return a message's ID: for log lines about its record.
func ShowMessage(ctx context.Context, id string) { tell(ctx, facts{message: id}) }

// MessageID returns the ID of [ShowMessage], or "". ctx is that of New, or derived from it.
func MessageID(ctx context.Context) string { return told(ctx).message }

// KeepKey tells the host the event's key where a copy of the message would not have it by itself: one that middleware made
// of what the copy does not keep. The host writes it into the copy for the dead-letter queue.
func KeepKey(ctx context.Context, key string) { tell(ctx, facts{kept: key, event: key}) }

// KeptKey returns the key of [KeepKey], or "". ctx is that of New.
func KeptKey(ctx context.Context) string { return told(ctx).kept }

// ShowKey tells the host the event's key where [KeepKey] does not, because a key function finds it in the copy: for those who look
// at what runs, and with its record's key for those who look into the dead-letter queue without the function. The first key counts, which is that of
// the outermost consumer: an inner one has its record under another name.
func ShowKey(ctx context.Context, key, record string) { tell(ctx, facts{event: key, record: record}) }

// RecordKey returns the record's key of [ShowKey], or "". ctx is that of New.
func RecordKey(ctx context.Context) string { return told(ctx).record }

// KnownKey returns the first key of [KeepKey] and [ShowKey], or "". ctx is that of New.
func KnownKey(ctx context.Context) string { return told(ctx).event }

func (s *settlement) add(f func(bool)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.settled {
		return false
	}
	s.later = append(s.later, f)
	return true
}

func (s *settlement) settle(deadLettered bool) error {
	s.mu.Lock()
	later := s.later
	s.settled, s.later = true, nil
	s.mu.Unlock()
	// Outside the lock: what was left may call the store, and a handler that still runs may call Later.
	var errs []error
	for i := len(later) - 1; i >= 0; i-- {
		errs = append(errs, run(later[i], deadLettered))
	}
	return errors.Join(errs...)
}

// run calls f on a goroutine of its own, which runtime.Goexit ends in place of the host's, and returns its panic or Goexit as an error.
func run(f func(bool), deadLettered bool) (err error) {
	ended := make(chan struct{})
	go func() {
		returned := false
		defer close(ended)
		defer func() {
			// recover returns nil after Goexit only: panic(nil) is a *runtime.PanicNilError.
			if v := recover(); v != nil {
				err = fmt.Errorf("function given to OnSettled panicked: %v\n%s", v, debug.Stack())
			} else if !returned {
				err = errors.New("function given to OnSettled called runtime.Goexit")
			}
		}()
		f(deadLettered)
		returned = true
	}()
	<-ended
	return err
}
