package sqsonce

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce/internal/guard"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// BatchOptions configure [Batch].
type BatchOptions struct {
	// Size is the maximum number of messages in one call.
	// Default: 10.
	Size int
	// Linger is how long the first message of a batch waits for more messages. With a negative value a batch consists
	// of the messages that are waiting already.
	// Default: 10 ms.
	Linger time.Duration
	// Around is called before each call of h, for telemetry. It gets the contexts of the calls in the batch, in the
	// order of the messages. h gets the returned context, which must be derived from ctx. done is called with h's
	// results, one for each message, and may be nil. The rules of [Hooks] apply, and a panic is logged with
	// slog.Default().
	// Default: not set.
	Around func(ctx context.Context, calls []context.Context, ms []*Message) (_ context.Context, done func(errs []error))
}

// Batch returns a handler that gathers concurrent calls into one call of h and gives each call its own error. It works
// in every host and inside dedup's Once.
//
// h returns one error for each message, in the order of the messages. A nil slice means that all messages succeeded. A
// slice of another length fails every message, because Batch can't know which error belongs to which message. A panic
// fails every message with a [*PanicError].
//
// A batch's context is without values. With the values of one message, a handler could use the fencing number of the
// wrong event. The context is cancelled when the contexts of all messages of the batch are cancelled. h does not learn
// that one message has lost its lease. The complete of that message's record is refused later.
//
// If a call's context is cancelled before its batch starts, the call returns the context's cause, and h never sees its
// message. If the context is cancelled later, the call waits for h, which may still work on the message.
//
// Set the host's concurrency to at least Size, or a batch starts only after Linger.
func Batch(h func(context.Context, []*Message) []error, optFns ...func(*BatchOptions)) Handler {
	if h == nil {
		return nil
	}
	o := BatchOptions{}
	for _, fn := range optFns {
		fn(&o)
	}
	if o.Size <= 0 {
		o.Size = 10
	}
	if o.Linger == 0 {
		o.Linger = 10 * time.Millisecond
	}
	b := &batcher{handle: h, size: o.Size, linger: max(o.Linger, 0)}
	if o.Around != nil {
		b.around = &batchHook{o.Around, guard.New(nil, "BatchOptions.Around")}
	}
	return b.call
}

type batcher struct {
	handle func(context.Context, []*Message) []error
	size   int
	linger time.Duration
	around *batchHook // nil: none

	mu      sync.Mutex
	waiting []*batchEntry
	timer   *time.Timer // set while entries wait
}

type batchEntry struct {
	ctx  context.Context
	m    *Message
	done chan error // buffered: the batch never waits for a caller
}

func (b *batcher) call(ctx context.Context, m *Message) error {
	if ctx.Err() != nil {
		return settle.NotRun(context.Cause(ctx))
	}
	e := &batchEntry{ctx: ctx, m: m, done: make(chan error, 1)}
	b.mu.Lock()
	b.waiting = append(b.waiting, e)
	switch {
	case len(b.waiting) >= b.size:
		b.startLocked()
	case b.timer == nil:
		// Also for a zero linger: other calls may come before the timer's goroutine runs.
		var t *time.Timer
		t = time.AfterFunc(b.linger, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			// A timer that fires while a full batch starts waits for the lock. It may then find the first message of the
			// next batch, whose linger is not over.
			if b.timer == t {
				b.startLocked()
			}
		})
		b.timer = t
	}
	b.mu.Unlock()

	select {
	case err := <-e.done:
		return err
	case <-ctx.Done():
	}
	if b.withdraw(e) {
		return settle.NotRun(context.Cause(ctx))
	}
	return <-e.done
}

// withdraw removes an entry whose batch has not started.
func (b *batcher) withdraw(e *batchEntry) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, w := range b.waiting {
		if w == e {
			b.waiting = append(b.waiting[:i], b.waiting[i+1:]...)
			return true
		}
	}
	return false
}

func (b *batcher) startLocked() {
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
	// A call whose context was just cancelled may not have withdrawn its message yet.
	entries := b.waiting[:0]
	for _, e := range b.waiting {
		if e.ctx.Err() != nil {
			e.done <- settle.NotRun(context.Cause(e.ctx))
			continue
		}
		entries = append(entries, e)
	}
	b.waiting = nil
	if len(entries) > 0 {
		go b.run(entries)
	}
}

func (b *batcher) run(entries []*batchEntry) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	var mu sync.Mutex
	live := len(entries)
	ms, calls := make([]*Message, len(entries)), make([]context.Context, len(entries))
	for i, e := range entries {
		ms[i], calls[i] = e.m, e.ctx
		stop := context.AfterFunc(e.ctx, func() {
			mu.Lock()
			defer mu.Unlock()
			if live--; live == 0 {
				cancel(context.Cause(e.ctx))
			}
		})
		defer stop()
	}

	// The results start as failed, and stay failed if h does not return: after a panic or runtime.Goexit.
	var errs []error
	all := error(&PanicError{})
	done := func([]error) {}
	defer func() {
		for i, e := range entries {
			e.done <- errs[i]
		}
	}()
	defer func() {
		if v := recover(); v != nil {
			all = &PanicError{Value: v, Stack: debug.Stack()}
		}
		if all != nil {
			errs = slices.Repeat([]error{all}, len(entries))
		}
		done(errs)
	}()
	ctx, done = b.around.begin(settle.WithBatch(ctx, calls), calls, ms)
	errs = b.handle(ctx, ms)
	switch {
	case errs == nil:
		errs, all = make([]error, len(ms)), nil
	case len(errs) != len(ms):
		all = fmt.Errorf("%w: %d for %d messages", errBatchResults, len(errs), len(ms))
	default:
		all = nil
	}
}

var errBatchResults = errors.New("sqsonce: batch handler returned the wrong number of errors")
