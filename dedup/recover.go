package dedup

import (
	"context"
	"errors"
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
)

// recoveringStore turns a panic of a store into an error with an unknown outcome. A panic that went on would skip the steps
// after a call: the release of the record, the peers that wait for the answer, and on a timer's goroutine the whole process.
type recoveringStore struct{ Store }

// Acquire returns a verdict or an error, never both or none.
func (s recoveringStore) Acquire(ctx context.Context, c Claim) (g Grant, err error) {
	p := host.Recover(func() { g, err = s.Store.Acquire(ctx, c) })
	if err = checkGrant(c, g, orPanic(err, p), context.Cause(ctx)); err != nil {
		if errors.Is(err, context.Canceled) && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = timedOut{err}
		}
		return Grant{}, err
	}
	return g, nil
}

// timedOut makes the error of an acquire whose patience has ended match context.DeadlineExceeded. A store that has derived a context from
// the acquire's returns context.Canceled: see patientContext.
type timedOut struct{ error }

func (e timedOut) Error() string { return "acquire timed out: " + e.error.Error() }

func (e timedOut) Is(target error) bool {
	return target == context.DeadlineExceeded || target != context.Canceled && errors.Is(e.error, target)
}

func (e timedOut) As(target any) bool { return errors.As(e.error, target) }

func (s recoveringStore) Renew(ctx context.Context, l Lease, d time.Duration) (renewed Lease, err error) {
	p := host.Recover(func() { renewed, err = s.Store.Renew(ctx, l, d) })
	return renewed, orPanic(err, p)
}

func (s recoveringStore) Complete(ctx context.Context, l Lease, r Result) (err error) {
	p := host.Recover(func() { err = s.Store.Complete(ctx, l, r) })
	return orPanic(err, p)
}

func (s recoveringStore) Release(ctx context.Context, l Lease, cause error) (err error) {
	p := host.Recover(func() { err = s.Store.Release(ctx, l, cause) })
	return orPanic(err, p)
}

// Inspect is that of a store that is an [Inspector].
func (s recoveringStore) Inspect(ctx context.Context, key string) (r Record, err error) {
	p := host.Recover(func() { r, err = s.Store.(Inspector).Inspect(ctx, key) })
	return r, orPanic(err, p)
}

func orPanic(err, panicked error) error {
	if panicked != nil {
		return panicked
	}
	return host.Usable(err)
}
