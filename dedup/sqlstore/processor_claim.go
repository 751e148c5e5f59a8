package sqlstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"slices"

	"github.com/sqsonce/sqsonce"
)

// job is a claimed event.
type job struct {
	seq       int64
	owner     string // of the claim: new for each, and never used again
	key       string
	message   *sqsonce.Message
	lastError string
	broken    error // the row cannot be decoded
}

// claim takes up to limit events: it counts their attempt and leases them, and that is committed before anything of them
// runs. The context of the caller ends the wait between two tries, and no statement: one that was cut off might have
// leased events that nobody knows of. Where the answer is lost all the same, they wait for the lease's end, and an attempt
// is counted.
func (p *Processor) claim(ctx context.Context, limit int) ([]job, error) {
	s, t, owner := p.inbox.store, p.inbox.text, rand.Text()
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.inbox.wait)
	defer cancel()
	if t.claim == "" {
		jobs, err := p.claimInTx(own, owner, limit)
		return jobs, explain(s.dialect, "claim", err)
	}
	jobs, err := readJobs(own, s.db, t.claim, owner, p.o.Lease.Milliseconds(), p.inbox.consumer, limit)
	for i := range jobs {
		jobs[i].owner = owner
	}
	slices.SortFunc(jobs, func(a, b job) int { return cmp.Compare(a.seq, b.seq) }) // a RETURNING has no order
	return jobs, explain(s.dialect, "claim", err)
}

// claimInTx is for MySQL, whose UPDATE returns no rows. At READ COMMITTED a lock on a row that turns out not to be due is
// given back at once; at the default level it would keep other processors from rows that nobody takes.
func (p *Processor) claimInTx(ctx context.Context, owner string, limit int) (jobs []job, err error) {
	s, t := p.inbox.store, p.inbox.text
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // after the commit it does nothing
	seqs, err := readSeqs(ctx, tx, t.lock, p.inbox.consumer, limit)
	if err != nil || len(seqs) == 0 {
		return nil, err
	}
	args := append([]any{owner, p.o.Lease.Milliseconds()}, seqs...)
	if _, err := tx.ExecContext(ctx, t.leaseAll(len(seqs)), args...); err != nil {
		return nil, err
	}
	if jobs, err = readJobs(ctx, tx, t.taken, p.inbox.consumer, owner); err != nil {
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
	defer func() { _ = rows.Close() }() // rows.Err has told
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
	defer func() { _ = rows.Close() }() // rows.Err has told
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
		if j.message, j.broken = decode(messageID, payload, attributes, attempts); j.broken != nil {
			j.message = &sqsonce.Message{ID: messageID, ReceiveCount: attempts}
		}
		jobs = append(jobs, j)
	}
	return jobs, rows.Err()
}
