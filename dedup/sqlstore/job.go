package sqlstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

// job is a claimed event, and one attempt to handle it.
type job struct {
	seq       int64
	owner     string // of the claim: new for each one, and never used again
	key       string
	message   *sqsonce.Message
	lastError string
	decodeErr error // the row cannot be decoded
}

// claim claims up to limit events: it counts an attempt for each and leases it, and commits that before any handler runs.
// The end of the caller's context cancels no statement, because a cancelled one might have leased events of which no
// processor knows. If the reply is lost all the same, those events wait for the lease's end, and an attempt is counted.
func (p *Processor) claim(ctx context.Context, limit int) ([]job, error) {
	s, stmts, owner := p.inbox.store, p.inbox.stmts, rand.Text()
	claimCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.inbox.wait)
	defer cancel()
	if stmts.claim == "" {
		jobs, err := p.claimInTx(claimCtx, owner, limit)
		return jobs, explain(s.dialect, "claim", err)
	}
	jobs, err := readJobs(claimCtx, s.db, stmts.claim, owner, p.o.Lease.Milliseconds(), p.inbox.consumer, limit)
	for i := range jobs {
		jobs[i].owner = owner
	}
	slices.SortFunc(jobs, func(a, b job) int { return cmp.Compare(a.seq, b.seq) }) // RETURNING has no order
	return jobs, explain(s.dialect, "claim", err)
}

// claimInTx is for MySQL, whose UPDATE returns no rows. At READ COMMITTED a lock on a row that turns out not to be due is
// released at once. At the default level it would block other processors from rows that nobody claims.
func (p *Processor) claimInTx(ctx context.Context, owner string, limit int) (jobs []job, err error) {
	s, stmts := p.inbox.store, p.inbox.stmts
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after the commit
	seqs, err := readSeqs(ctx, tx, stmts.lock, p.inbox.consumer, limit)
	if err != nil || len(seqs) == 0 {
		return nil, err
	}
	args := append([]any{owner, p.o.Lease.Milliseconds()}, seqs...)
	if _, err := tx.ExecContext(ctx, stmts.leaseRows(len(seqs)), args...); err != nil {
		return nil, err
	}
	if jobs, err = readJobs(ctx, tx, stmts.claimed, p.inbox.consumer, owner); err != nil {
		return nil, err
	}
	for i := range jobs {
		jobs[i].owner = owner
	}
	return jobs, tx.Commit()
}

type rowsQueryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func readSeqs(ctx context.Context, q rowsQueryer, text string, args ...any) (seqs []any, err error) {
	rows, err := q.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // rows.Err reports the errors
	for rows.Next() {
		var seq int64
		if err := rows.Scan(&seq); err != nil {
			return nil, err
		}
		seqs = append(seqs, seq)
	}
	return seqs, rows.Err()
}

func readJobs(ctx context.Context, q rowsQueryer, text string, args ...any) (jobs []job, err error) {
	rows, err := q.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // rows.Err reports the errors
	for rows.Next() {
		var (
			j                     job
			messageID, attributes string
			payload               []byte
			attempts              int
		)
		if err := rows.Scan(&j.seq, &j.key, &messageID, &payload, &attributes, &attempts, &j.lastError); err != nil {
			return nil, err
		}
		if j.message, j.decodeErr = decode(messageID, payload, attributes, attempts); j.decodeErr != nil {
			j.message = &sqsonce.Message{ID: messageID, ReceiveCount: attempts}
		}
		jobs = append(jobs, j)
	}
	return jobs, rows.Err()
}

// errCrashed is stored with an event whose attempts ended without an outcome.
var errCrashed = errors.New("sqlstore: the attempts ended without an outcome: their process or connection died")

// handle runs one claimed event and records the attempt's outcome.
func (p *Processor) handle(ctx context.Context, j job, h func(context.Context, *sqsonce.Message, *sql.Tx) error) {
	if limit := p.o.MaxAttempts; limit > 0 && j.message.ReceiveCount > limit {
		// The attempts before this one were counted, and the last of them recorded no failure.
		p.counters.crashed.Add(1)
		cause := errCrashed
		if j.lastError != "" {
			cause = errors.Join(errCrashed, errors.New(j.lastError))
		}
		p.park(ctx, j, cause)
		return
	}
	t := eventTx{store: p.inbox.store, wait: p.inbox.wait, row: &attemptRow{inbox: p.inbox, seq: j.seq, owner: j.owner}}
	err := j.decodeErr
	if err == nil {
		err = t.begin(ctx)
	}
	if err == nil {
		err = recovered(func() error {
			return t.run(ctx, func(ctx context.Context, tx *sql.Tx) error { return h(ctx, j.message, tx) })
		})
	}
	err = t.abort(ctx, err)
	switch {
	case err == nil, errors.Is(err, errOwnCommit):
		p.counters.done.Add(1)
	case errors.Is(err, sqsonce.ErrLeaseLost):
		p.counters.lost.Add(1)
		p.o.Logger.WarnContext(ctx, "sqlstore: processor: lease lost; nothing of the attempt was committed", "key", j.key, "attempt", j.message.ReceiveCount)
	default:
		p.fail(ctx, j, err)
	}
}

// fail records an attempt that was rolled back.
func (p *Processor) fail(ctx context.Context, j job, cause error) {
	attempt := j.message.ReceiveCount
	retry, reject := host.Asked(cause)
	switch {
	case errors.Is(context.Cause(ctx), sqsonce.ErrShutdown):
		p.record(ctx, j, "undo attempt", p.inbox.stmts.undo, j.seq, j.owner)
	case reject != nil, p.o.MaxAttempts > 0 && attempt >= p.o.MaxAttempts, j.decodeErr != nil:
		p.park(ctx, j, cause)
	default:
		delay := time.Duration(0)
		if retry != nil {
			delay = retry.After
		} else {
			delay = max(0, p.o.Backoff(attempt))
		}
		p.counters.failed.Add(1)
		p.o.Logger.WarnContext(ctx, "sqlstore: processor: attempt failed", "key", j.key, "attempt", attempt, "again_in", delay, "error", cause)
		p.record(ctx, j, "record failure", p.inbox.stmts.delay, errorText(cause), delay.Milliseconds(), j.seq, j.owner)
	}
}

func (p *Processor) park(ctx context.Context, j job, cause error) {
	p.counters.parked.Add(1)
	p.o.Logger.ErrorContext(ctx, "sqlstore: processor: event parked", "key", j.key, "attempt", j.message.ReceiveCount, "error", cause)
	p.record(ctx, j, "park", p.inbox.stmts.park, errorText(cause), j.seq, j.owner)
}

// record writes an attempt's outcome, if this claim still has the event. If that fails, the event is claimed again after
// its lease, with its attempt counted.
func (p *Processor) record(ctx context.Context, j job, op, text string, args ...any) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.inbox.wait)
	defer cancel()
	s := p.inbox.store
	err := s.retry(ctx, op, func(ctx context.Context) error {
		_, err := s.dialect.write(ctx, s.db, text, args...)
		return err
	})
	if err != nil {
		p.o.Logger.ErrorContext(ctx, "sqlstore: processor: outcome not recorded; the event is tried again after its lease", "key", j.key, "error", err)
	}
}

// recovered runs f and turns a panic or runtime.Goexit into a [*sqsonce.PanicError]. f has a goroutine of its own, because
// Goexit would end the caller's.
func recovered(f func() error) (err error) {
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		host.Run(f, func(e error) { err = e })
	}()
	<-returned
	return err
}
