package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/question"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// errCrashed is stored with an event whose attempts ended without an outcome.
var errCrashed = errors.New("sqlstore: the attempts ended without an outcome: their process or connection died")

// handlerError is the error that a handler returned. An ErrLeaseLost in it is of another lease than the event's.
type handlerError struct{ error }

func (e handlerError) Unwrap() error { return e.error }

// handle runs one claimed event and records the attempt's outcome.
func (p *Processor) handle(ctx context.Context, j job, h func(context.Context, *sqsonce.Message, *sql.Tx) error) {
	if limit := p.o.MaxAttempts; limit > 0 && j.message.ReceiveCount > limit && j.diedAlone() {
		p.counters.crashed.Add(1)
		cause := errCrashed
		if j.lastError != "" {
			cause = errors.Join(errCrashed, errors.New(j.lastError))
		}
		p.park(ctx, j, cause)
		return
	}
	row := &attemptRow{inbox: p.inbox, seq: j.seq, owner: j.owner}
	t := eventTx{store: p.inbox.store, wait: p.inbox.wait, row: row}
	err := j.decodeErr
	if err == nil {
		if err = t.begin(ctx); err != nil {
			err = sqsonce.Unavailable(err) // no fault of the event: its handler did not run
		}
	}
	if err == nil {
		err = host.Contain(func() error { // a Goexit would end the event without an outcome
			return t.run(ctx, func(ctx context.Context, tx *sql.Tx) error {
				if err := h(settle.CountsAttempts(ctx), j.message, tx); err != nil {
					return handlerError{err}
				}
				return nil
			})
		})
	}
	skipped := err
	if host.Void(err) {
		row.skipped = errors.New(p.inbox.textOf(err))
		err = t.skip(ctx, err)
	}
	err = t.abort(ctx, err)
	_, byHandler := errors.AsType[handlerError](err)
	switch {
	case err == nil, errors.Is(err, errOwnCommit):
		if row.skipped == nil {
			p.counters.done.Add(1)
		} else {
			p.counters.skipped.Add(1)
			line := host.Outcomes[sqsonce.OutcomeOf(skipped).Kind].Line
			p.o.Logger.InfoContext(ctx, "sqlstore: processor: "+line, "key", j.key, "message_id", j.message.ID, "attempt", j.message.ReceiveCount, "error", skipped)
		}
	case errors.Is(err, sqsonce.ErrLeaseLost) && !byHandler:
		p.counters.lost.Add(1)
		p.o.Logger.WarnContext(ctx, "sqlstore: processor: lease lost, and the attempt was rolled back: another process has the event", "key", j.key, "message_id", j.message.ID, "attempt", j.message.ReceiveCount)
	default:
		if question.IsFromStore(err) && !byHandler && !errors.Is(err, sqsonce.ErrUnavailable) {
			if down := p.ask(ctx, row); down != nil {
				err = sqsonce.Unavailable(fmt.Errorf("%w: other writes are refused too: %w", err, down))
			}
		}
		p.fail(ctx, j, err)
	}
}

// ask tells whether the database takes the transaction of an attempt whose handler wrote nothing: it extends the claim's lease.
func (p *Processor) ask(ctx context.Context, r *attemptRow) error {
	t := eventTx{store: p.inbox.store, wait: p.inbox.wait, row: &attemptRow{inbox: r.inbox, seq: r.seq, owner: r.owner}}
	if err := t.begin(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	return t.close((*sql.Tx).Commit)
}

// fail records an attempt that was rolled back.
func (p *Processor) fail(ctx context.Context, j job, cause error) {
	attempt := j.message.ReceiveCount
	asked := sqsonce.OutcomeOf(cause)
	switch {
	case asked.Kind == sqsonce.OutcomePostponed:
		p.counters.postponed.Add(1)
		p.o.Logger.DebugContext(ctx, "sqlstore: processor: event postponed", "key", j.key, "message_id", j.message.ID, "again_in", asked.After, "error", cause)
		p.record(ctx, j, "postpone", p.inbox.stmts().postpone, asked.After.Milliseconds(), j.seq, j.owner)
	case errors.Is(context.Cause(ctx), sqsonce.ErrShutdown):
		p.record(ctx, j, "undo attempt", p.inbox.stmts().undo, j.seq, j.owner)
	case !asked.Retry && !asked.Reject && errors.Is(cause, sqsonce.ErrUnavailable):
		p.again(ctx, j, cause, maxUnavailable/2+rand.N(maxUnavailable/2), p.inbox.stmts().unavailable)
	case asked.Reject, p.o.MaxAttempts > 0 && attempt >= p.o.MaxAttempts, j.decodeErr != nil:
		p.park(ctx, j, cause)
	case asked.Retry:
		p.again(ctx, j, cause, asked.After, p.inbox.stmts().delay)
	default:
		p.again(ctx, j, cause, p.backoff(ctx, attempt), p.inbox.stmts().delay)
	}
}

// maxUnavailable is the longest time that an event waits after it failed because a dependency of every event was down.
const maxUnavailable = 30 * time.Second

// again records a failure after which the event runs again.
func (p *Processor) again(ctx context.Context, j job, cause error, delay time.Duration, text string) {
	p.counters.failed.Add(1)
	p.o.Logger.WarnContext(ctx, "sqlstore: processor: attempt failed", "key", j.key, "message_id", j.message.ID, "attempt", j.message.ReceiveCount, "again_in", delay, "error", cause)
	p.record(ctx, j, "record failure", text, p.inbox.textOf(cause), delay.Milliseconds(), j.seq, j.owner)
}

// backoff returns what the option says, or the default if it fails.
func (p *Processor) backoff(ctx context.Context, attempt int) (delay time.Duration) {
	if err := host.Recover(func() { delay = max(0, p.o.Backoff(attempt)) }); err != nil {
		p.o.Logger.ErrorContext(ctx, "sqlstore: processor: ProcessorOptions.Backoff failed: the default is used", "error", err)
		return defaultBackoff(attempt)
	}
	return delay
}

func (p *Processor) park(ctx context.Context, j job, cause error) {
	p.counters.parked.Add(1)
	p.o.Logger.ErrorContext(ctx, "sqlstore: processor: event parked", "key", j.key, "message_id", j.message.ID, "attempt", j.message.ReceiveCount, "error", cause)
	p.record(ctx, j, "park", p.inbox.stmts().park, p.inbox.textOf(cause), j.seq, j.owner)
}

// record writes an attempt's outcome, if this claim still has the event. It is repeated for as long as a lease: without it
// the attempt looks like a crash. The event is then claimed again as a suspect, with its attempt counted. The end of ctx
// leaves one attempt.
func (p *Processor) record(ctx context.Context, j job, op, text string, args ...any) {
	end := time.Now().Add(p.o.LeaseDuration)
	for {
		err := p.recordOnce(context.WithoutCancel(ctx), op, text, args...)
		if err == nil {
			return
		}
		if isPermanent(err) || time.Now().After(end) || !host.Wait(ctx, sqldb.MaxPause) {
			p.o.Logger.ErrorContext(ctx, "sqlstore: processor: outcome not recorded: the event runs again after its lease ends", "key", j.key, "message_id", j.message.ID, "error", err)
			return
		}
	}
}

func (p *Processor) recordOnce(ctx context.Context, op, text string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, p.inbox.wait)
	defer cancel()
	s := p.inbox.store
	return s.retry(ctx, op, func(ctx context.Context) error {
		_, err := s.dialect.Write(ctx, s.db, text, args...)
		return err
	})
}
