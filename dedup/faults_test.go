package dedup_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/internal/granted"
	"github.com/sqsonce/sqsonce/internal/must"
)

var errStore = errors.New("store unreachable")

// faults is a store whose calls a test counts and can make fail.
type faults struct {
	dedup.Store
	before func(ctx context.Context, op string, n int) error // n counts the calls of op from 1; after an error the call is not made
	after  func(ctx context.Context, op string, n int) error // an error is returned instead of the answer

	answer func(dedup.Grant, error) (dedup.Grant, error) // an acquire's, in place of the store's; nil: the store's

	isDown atomic.Bool

	mu    sync.Mutex
	calls []string
	count map[string]int
}

func newFaults() *faults { return &faults{Store: memstore.New(), count: make(map[string]int)} }

// withFaults runs a test with such a store, in virtual time.
func withFaults(t *testing.T, run func(t *testing.T, f *faults)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { run(t, newFaults()) })
}

// failing fails the calls of op that are listed, counted from 1, or all of them.
func failing(op string, err error, nth ...int) func(context.Context, string, int) error {
	return func(_ context.Context, called string, n int) error {
		if called == op && (len(nth) == 0 || slices.Contains(nth, n)) {
			return err
		}
		return nil
	}
}

// slow delays the calls of op by d.
func slow(op string, d time.Duration) func(context.Context, string, int) error {
	return func(_ context.Context, called string, _ int) error {
		if called == op {
			time.Sleep(d)
		}
		return nil
	}
}

// hanging lets the calls of op end with their contexts only.
func hanging(op string) func(context.Context, string, int) error {
	return func(ctx context.Context, called string, _ int) error {
		if called == op {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		return nil
	}
}

// fail makes every call of op return err. The call does not reach the store.
func (f *faults) fail(op string, err error) { f.before = failing(op, err) }

// lose makes the store refuse the owner of every acquire.
func (f *faults) lose() {
	f.answer = func(dedup.Grant, error) (dedup.Grant, error) { return dedup.Grant{Verdict: dedup.VerdictLost}, nil }
}

// down makes every call of the ops return err until up.
func (f *faults) down(err error, ops ...string) {
	f.before = func(_ context.Context, called string, _ int) error {
		if f.isDown.Load() && slices.Contains(ops, called) {
			return err
		}
		return nil
	}
	f.isDown.Store(true)
}

func (f *faults) up() { f.isDown.Store(false) }

func (f *faults) call(ctx context.Context, op string, do func() error) error {
	f.mu.Lock()
	f.calls = append(f.calls, op)
	f.count[op]++
	n := f.count[op]
	f.mu.Unlock()
	if f.before != nil {
		if err := f.before(ctx, op, n); err != nil {
			return err
		}
	}
	err := do()
	if f.after != nil {
		if lost := f.after(ctx, op, n); lost != nil {
			return lost
		}
	}
	return err
}

func (f *faults) Acquire(ctx context.Context, c dedup.Claim) (g dedup.Grant, err error) {
	err = f.call(ctx, "acquire", func() (err error) { g, err = f.Store.Acquire(ctx, c); return err })
	if f.answer != nil {
		return f.answer(g, err)
	}
	return g, err
}

func (f *faults) Renew(ctx context.Context, l dedup.Lease, d time.Duration) (got dedup.Lease, err error) {
	err = f.call(ctx, "renew", func() (err error) { got, err = f.Store.Renew(ctx, l, d); return err })
	return got, err
}

func (f *faults) Complete(ctx context.Context, l dedup.Lease, r dedup.Result) error {
	return f.call(ctx, "complete", func() error { return f.Store.Complete(ctx, l, r) })
}

func (f *faults) Release(ctx context.Context, l dedup.Lease, cause error) error {
	return f.call(ctx, "release", func() error { return f.Store.Release(ctx, l, cause) })
}

func (f *faults) seen(op string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count[op]
}

func (f *faults) log() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fmt.Sprint(f.calls)
}

func newOnce(t testing.TB, s dedup.Store, optFns ...func(*dedup.Options)) *dedup.Once {
	t.Helper()
	o := must.Get(dedup.New(s, "billing", optFns...))(t)
	return o
}

func message(id string) *sqsonce.Message {
	return &sqsonce.Message{ID: "msg-" + id, Body: "{}", ReceiveCount: 1, QueueARN: "arn:aws:sqs:eu-west-1:1:orders",
		Attributes: map[string]sqsonce.Attribute{
			sqsonce.AttrEventID:     {Type: "String", String: id},
			sqsonce.AttrEventSource: {Type: "String", String: "orders"},
		}}
}

// recordKey is the key of message(id)'s record.
func recordKey(id string) string { return "billing#orders|" + id }

// effects counts the runs of a handler.
type effects struct {
	mu sync.Mutex
	n  int
}

func (e *effects) handler(context.Context, *sqsonce.Message) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.n++
	return nil
}

func (e *effects) got() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.n
}

// other acquires the key as another process does.
func other(t testing.TB, s dedup.Store, key string) (dedup.Lease, error) {
	t.Helper()
	return granted.Lease(s.Acquire(t.Context(), dedup.Claim{Key: key, Owner: "other process", Lease: time.Minute, Retention: time.Hour}))
}

func inProgress(err error) bool { return errors.Is(err, sqsonce.ErrInProgress) }

// hang is a handler that returns nil after d, also where its context is cancelled.
func hang(d time.Duration) sqsonce.Handler {
	return func(context.Context, *sqsonce.Message) error { time.Sleep(d); return nil }
}
