package sqlstore

import (
	"context"
	"database/sql"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
	"github.com/sqsonce/sqsonce/internal/cut"
)

// attemptRow is the row of an event that a [Processor] has claimed, and one attempt to handle it: see [eventRow]. The mark
// is the lease's end that the attempt's transaction has written. The owner can't be the mark, because the claim has
// committed it.
type attemptRow struct {
	inbox *Deferred
	seq   int64
	owner string // of the claim
	until int64  // the last mark; 0: none
	// skipped is the reason why the event is done without writes of the handler, or nil.
	skipped error
}

// mark extends the claim's lease by a write that always changes it. It is refused if another claim has the event by now.
// From here to the end of the transaction the row is locked, and no processor can claim it.
func (r *attemptRow) mark(ctx context.Context, tx *sql.Tx) error {
	d := r.inbox
	until, written, err := d.store.dialect.WriteReturning(ctx, tx, d.stmts().mark, d.wait.Milliseconds(), r.seq, r.owner, r.until)
	if err != nil {
		return err
	}
	if written {
		r.until = until
		return nil
	}
	status, owner, until, err := r.read(ctx, tx)
	switch {
	case isMissing(err):
		return sqsonce.ErrLeaseLost
	case err != nil:
		return err
	case owner != r.owner || status == parked:
		return sqsonce.ErrLeaseLost
	case status == pending && until == r.until:
		return errMarked
	case status == pending:
		return errContended // no other writer changes the row of a claim
	}
	return errOwnCommit
}

func (r *attemptRow) finish(ctx context.Context, tx *sql.Tx) (bool, error) {
	d := r.inbox
	return d.store.dialect.Write(ctx, tx, d.stmts().markDone, cut.Cause(r.skipped), d.retention.Milliseconds(), r.seq, r.owner, r.until)
}

func (r *attemptRow) marked(ctx context.Context, q sqldb.Queryer) (bool, error) {
	status, owner, until, err := r.read(ctx, q)
	if isMissing(err) {
		return false, nil
	}
	return status == pending && owner == r.owner && until == r.until, err
}

func (r *attemptRow) read(ctx context.Context, q sqldb.Queryer) (status, owner string, until int64, err error) {
	err = r.inbox.store.dialect.In(q).QueryRowContext(ctx, r.inbox.stmts().attempt, r.seq).Scan(&status, &owner, &until)
	return status, owner, until, err
}
