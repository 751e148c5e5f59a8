package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"runtime/debug"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/stack"
)

// errCrashed is kept with an event whose attempts ended without an outcome.
var errCrashed = errors.New("sqlstore: the attempts ended without an outcome: the process or its connection died")

// handle runs one claimed event and records its outcome.
func (p *Processor) handle(ctx context.Context, j job, h func(context.Context, *sqsonce.Message, *sql.Tx) error) {
	if most := p.o.MaxAttempts; most > 0 && j.message.ReceiveCount > most {
		// The attempts before this one were counted and none of them came to record a failure.
		p.counts.crashed.Add(1)
		p.park(ctx, j, errors.Join(errCrashed, last(j)))
		return
	}
	g := guarded{store: p.inbox.store, wait: p.inbox.wait, mark: func(ctx context.Context, tx *sql.Tx) error {
		return p.mark(ctx, tx, j)
	}}
	err := j.broken
	if err == nil {
		err = g.begin(ctx)
	}
	if err == nil {
		err = safely(func() error {
			return g.run(ctx, func(tx *sql.Tx) error { return h(ctx, j.message, tx) })
		})
	}
	g.rollback()
	switch {
	case err == nil, errors.Is(err, errOurs):
		p.counts.done.Add(1)
	case errors.Is(err, sqsonce.ErrLeaseLost):
		p.counts.lost.Add(1)
		p.o.Logger.WarnContext(ctx, "sqlstore: processor: lease lost, nothing was committed", "key", j.key, "attempt", j.message.ReceiveCount)
	default:
		p.failed(ctx, j, err)
	}
}

func last(j job) error {
	if j.lastError == "" {
		return nil
	}
	return errors.New(j.lastError)
}

// mark is the statement that makes the handler's transaction count once, and the fence: it is refused where another claim
// has the event by now. From here to the transaction's end the row is locked, and no processor can claim it.
func (p *Processor) mark(ctx context.Context, tx *sql.Tx, j job) error {
	s := p.inbox.store
	written, err := s.dialect.write(ctx, tx, p.inbox.text.mark, p.inbox.retention.Milliseconds(), j.seq, j.owner)
	if err != nil || written {
		return err
	}
	var status, owner string
	err = tx.QueryRowContext(ctx, p.inbox.text.standing, j.seq).Scan(&status, &owner)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return sqsonce.ErrLeaseLost
	case err != nil:
		return err
	case owner == j.owner && status != pending && status != parked:
		return errOurs
	}
	return sqsonce.ErrLeaseLost
}

// failed records an attempt that was rolled back.
func (p *Processor) failed(ctx context.Context, j job, cause error) {
	attempt := j.message.ReceiveCount
	retry, reject := host.Asked(cause)
	switch {
	case errors.Is(context.Cause(ctx), sqsonce.ErrShutdown):
		p.record(ctx, j, "give back", p.inbox.text.giveBack, j.seq, j.owner)
	case reject != nil, p.o.MaxAttempts > 0 && attempt >= p.o.MaxAttempts, j.broken != nil:
		p.park(ctx, j, cause)
	default:
		delay := time.Duration(0)
		if retry != nil {
			delay = retry.After
		} else {
			delay = max(0, p.o.Backoff(attempt))
		}
		p.counts.failed.Add(1)
		p.o.Logger.WarnContext(ctx, "sqlstore: processor: attempt failed", "key", j.key, "attempt", attempt, "again_in", delay, "error", cause)
		p.record(ctx, j, "failure", p.inbox.text.delay, errorText(cause), delay.Milliseconds(), j.seq, j.owner)
	}
}

func (p *Processor) park(ctx context.Context, j job, cause error) {
	p.counts.parked.Add(1)
	p.o.Logger.ErrorContext(ctx, "sqlstore: processor: event parked", "key", j.key, "attempt", j.message.ReceiveCount, "error", cause)
	p.record(ctx, j, "park", p.inbox.text.park, errorText(cause), j.seq, j.owner)
}

// record writes an attempt's outcome, where the event is still ours. Where that fails the event comes back when the lease
// is over, with its attempt counted.
func (p *Processor) record(ctx context.Context, j job, op, text string, args ...any) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.inbox.wait)
	defer cancel()
	s := p.inbox.store
	err := s.retry(ctx, op, func(ctx context.Context) error {
		_, err := s.dialect.write(ctx, s.db, text, args...)
		return err
	})
	if err != nil {
		p.o.Logger.ErrorContext(ctx, "sqlstore: processor: outcome not recorded, the event comes back when its lease is over", "key", j.key, "error", err)
	}
}

// safely turns a panic, or runtime.Goexit, into an error. The call has a goroutine of its own, since Goexit would end the
// caller's.
func safely(f func() error) (err error) {
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		stack.Grow()
		ended := false
		defer func() {
			if !ended {
				err = &sqsonce.PanicError{Value: recover(), Stack: debug.Stack()}
			}
		}()
		err = f()
		ended = true
	}()
	<-returned
	return err
}
