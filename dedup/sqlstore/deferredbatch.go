package sqlstore

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
	"github.com/sqsonce/sqsonce/internal/question"
)

const (
	// batchBytes limits a statement of several rows. MySQL's max_allowed_packet is 4 MiB or more by default.
	batchBytes = 2 << 20
	// largeRow is SQS's largest message. A database may refuse a larger row for its size.
	largeRow = 1 << 20
)

func (r row) size() int { return len(r.key) + len(r.message.Body) + len(r.attributes) }

// insert stores the rows, and returns an error for each.
func (d *Deferred) insert(ctx context.Context, rows []row) []error {
	if err := d.store.ensureChecked(ctx); err != nil {
		return all(rows, d.store.explain("receive", err))
	}
	var errs []error
	for len(errs) < len(rows) {
		rest := rows[len(errs):]
		errs = append(errs, d.insertHalves(ctx, rest[:fitting(rest)])...)
	}
	return errs
}

// fitting returns how many of the rows go into one statement.
func fitting(rows []row) int {
	size := 0
	for n, r := range rows {
		if size += r.size(); size > batchBytes && n > 0 {
			return n
		}
	}
	return len(rows)
}

func all(rows []row, err error) []error {
	errs := make([]error, len(rows))
	for i := range errs {
		errs[i] = err
	}
	return errs
}

// insertHalves stores rows in one statement. One row may be the reason why it fails, so it is repeated in halves: no row fails
// with another one's error. Where the database takes no other row either, none of these is the reason.
func (d *Deferred) insertHalves(ctx context.Context, rows []row) []error {
	inserted, err := d.insertBatch(ctx, rows)
	switch {
	case err == nil && (d.validate == nil || inserted == int64(len(rows))):
		return make([]error, len(rows))
	case err == nil || d.store.dialect.Classify(err) == sqldb.Duplicate:
		// MySQL refuses the whole statement for one duplicate. And the number of rows does not say which ones are
		// duplicates, whose payloads have to be compared.
		errs := make([]error, len(rows))
		for i, r := range rows {
			errs[i] = d.insertOne(ctx, r)
		}
		return errs
	case isDatabaseError(err), d.store.dialect.RolledBack(err), !d.takesRows(ctx):
		return all(rows, d.store.explain("receive", err))
	case len(rows) > 1:
		half := (len(rows) + 1) / 2
		return append(d.insertHalves(ctx, rows[:half]), d.insertHalves(ctx, rows[half:])...)
	case rows[0].size() > largeRow:
		return []error{fmt.Errorf("sqlstore: receive: %w: %v", fieldError("Message.Body", fmt.Sprintf("cannot be stored: the row of %d bytes may be too large for the database", rows[0].size())), err)}
	}
	return []error{d.store.explain("receive", err)}
}

// takesRows reports whether the database takes a small row, which is rolled back. A row that is too large for MySQL ends the
// connection, which the pool then has for the next statement: only another failure counts.
func (d *Deferred) takesRows(ctx context.Context) bool {
	small := row{key: d.consumer + question.KeyPrefix + rand.Text(), message: &sqsonce.Message{}, attributes: []byte("{}")}
	return d.store.retry(ctx, "ask", func(ctx context.Context) error {
		tx, err := d.store.db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		_, err = d.store.dialect.In(tx).ExecContext(ctx, d.stmts().insert(1), small.args(d)...)
		return err
	}) == nil
}
