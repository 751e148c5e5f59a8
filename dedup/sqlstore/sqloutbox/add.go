package sqloutbox

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
	"github.com/sqsonce/sqsonce/fifo"
)

// The limits of one INSERT: MySQL's max_allowed_packet is 4 MiB or more by default, and SQLite takes 32,766 arguments.
const (
	insertRows  = 100
	insertBytes = 2 << 20
	// packetRest is what a packet has beside the values.
	packetRest = 64 << 10
)

// Add writes events in the caller's transaction, in the slice's order. The order of a group is that of its transactions'
// commits. So from Add to the end of the transaction, other transactions with events of the same groups wait in their Add:
// call it once, and last. One call locks its groups in an order of its own; two calls in one transaction may meet those of
// another transaction in a deadlock, which is the database's error. On SQLite the transaction has the file anyway.
//
// On PostgreSQL and MySQL an event costs two statements, and one with [Options.GroupLocked]; on SQLite it costs one. Up to
// 100 events share a statement.
//
// After any error the transaction must be rolled back: it may hold a part of the events. The errors are:
//
//   - one [*sqsonce.OptionError] per bad field, joined, where SQS would refuse the event on every queue: see [fifo.Event.Check].
//     Nothing was sent to the database.
//   - a [*sqsonce.OptionError] for an event that is larger than max_allowed_packet of MySQL, as it is stored: JSON escapes some
//     characters of attributes.
//   - [sql.ErrTxDone] if the transaction has ended.
//   - a [*sqlstore.DatabaseError]: the table does not exist, access is denied, or the server is read-only.
//   - matching [sqsonce.ErrUnavailable]: a deadlock, a lock that was not free in time, no answer. The transaction can be run
//     again. In a handler of [sqlstore.Inbox] return it.
//
// On MySQL a deadlock ends the whole transaction, and what comes after it in the same *sql.Tx is committed by itself, also an
// event: return the errors of all statements.
//
// Add does not look for an ID that is in the outbox already. SQS drops the second of two events with one ID within five
// minutes; with another body a relay that has published the first one parks the second, and another relay does not know.
func (o *Outbox) Add(ctx context.Context, tx *sql.Tx, es ...fifo.Event) error {
	if tx == nil {
		return fieldError("tx", "is nil")
	}
	var errs []error
	for i, e := range es {
		if err := e.Check(o.source); err != nil {
			errs = append(errs, fmt.Errorf("sqloutbox: add: event %d of %d: %w", i+1, len(es), err))
		}
	}
	if err := errors.Join(errs...); err != nil || len(es) == 0 {
		return err
	}
	if err := o.lock(ctx, tx, es); err != nil {
		return reporter.ExplainIn(o.dialect, "lock groups", err)
	}
	rows, err := o.newRows(ctx, tx, es)
	if err != nil {
		return err
	}
	for len(rows) > 0 {
		n := fitting(rows)
		if err := o.insert(ctx, tx, rows[:n]); err != nil {
			return reporter.ExplainIn(o.dialect, "add", err)
		}
		rows = rows[n:]
	}
	return nil
}

// newRow is an event as it is about to be stored.
type newRow struct {
	args []any
	size int
}

// newRows returns the events as they are stored, or an error for one that the database would refuse. A MySQL ends the connection over a
// packet that is too large: it would look like an outage.
func (o *Outbox) newRows(ctx context.Context, tx *sql.Tx, es []fifo.Event) ([]newRow, error) {
	rows := make([]newRow, len(es))
	largest := 0
	for i, e := range es {
		attributes, err := encodeAttributes(e.Attributes)
		if err != nil {
			return nil, err
		}
		rows[i].args = []any{o.name, e.Group, e.ID, o.source, e.Type, e.Body, attributes, e.TraceHeader}
		for _, arg := range rows[i].args {
			rows[i].size += len(arg.(string))
		}
		largest = max(largest, rows[i].size)
	}
	if largest <= 1<<20-packetRest || !o.dialect.Is(sqldb.MySQL) { // MySQL's smallest default was 1 MiB
		return rows, nil
	}
	var packet int
	if err := tx.QueryRowContext(ctx, "SELECT @@max_allowed_packet").Scan(&packet); err != nil {
		return nil, reporter.ExplainIn(o.dialect, "add", err)
	}
	for i, r := range rows {
		if r.size > packet-packetRest {
			return nil, fmt.Errorf("sqloutbox: add: event %d of %d: %w", i+1, len(es), fieldError("Event",
				fmt.Sprintf("has %d bytes as it is stored, max_allowed_packet is %d", r.size, packet)))
		}
	}
	return rows, nil
}

// fitting returns how many of the rows go into one INSERT.
func fitting(rows []newRow) int {
	size := 0
	for n, r := range rows[:min(len(rows), insertRows)] {
		if size += r.size; size > insertBytes && n > 0 {
			return n
		}
	}
	return min(len(rows), insertRows)
}

func (o *Outbox) insert(ctx context.Context, tx *sql.Tx, rows []newRow) error {
	const values = "(?, ?, {bytes}, ?, {bytes}, {bytes}, {bytes}, {bytes}, {now})"
	var args []any
	for _, r := range rows {
		args = append(args, r.args...)
	}
	_, err := tx.ExecContext(ctx, o.dialect.SQL("INSERT INTO {outbox}"+
		" (aggregatetype, aggregateid, id, source, type, payload, attributes, trace, created_at) VALUES "+
		values+strings.Repeat(", "+values, len(rows)-1)), args...)
	return err
}

// stripes is how many rows the table of locks has on MySQL. Two groups share one with a probability of 1/4,096: then they
// wait for one another, and nothing else.
const stripes = 4096

// lockRows limits the stripes of one statement: with more, MySQL might prefer to read, and lock, the whole table.
const lockRows = 64

// lock takes the groups' locks, which the transaction holds to its end, before an INSERT makes a number. An identity alone is
// no order: a transaction with a lower number may be committed later. It takes them in one order for all transactions.
func (o *Outbox) lock(ctx context.Context, tx *sql.Tx, es []fifo.Event) error {
	switch {
	case o.groupLocked, o.dialect.Is(sqldb.SQLite):
		return nil
	case o.dialect.Is(sqldb.PostgreSQL):
		_, err := tx.ExecContext(ctx, o.stmts.advisory, o.lockNumbers(es))
		return err
	default:
		return o.lockStripes(ctx, tx, es)
	}
}

// lockNumbers are the advisory locks of the events' groups. The statement orders them; one that is named twice is taken twice,
// and counted by the database.
func (o *Outbox) lockNumbers(es []fifo.Event) string {
	all := make([]string, len(es))
	for i, e := range es {
		all[i] = strconv.FormatInt(int64(o.lockHash(e.Group)), 10)
	}
	return strings.Join(all, ",")
}

func (o *Outbox) lockStripes(ctx context.Context, tx *sql.Tx, es []fifo.Event) error {
	var all []int
	for _, e := range es {
		all = append(all, int(o.lockHash(e.Group)%stripes))
	}
	slices.Sort(all)
	for some := range slices.Chunk(slices.Compact(all), lockRows) {
		if err := o.lockRows(ctx, tx, some); err != nil {
			return err
		}
	}
	return nil
}

// lockRows locks rows of the table of locks. A row that is not there is no lock, so all of them must come back.
func (o *Outbox) lockRows(ctx context.Context, tx *sql.Tx, some []int) error {
	args := make([]any, len(some))
	for i, stripe := range some {
		args[i] = stripe
	}
	rows, err := tx.QueryContext(ctx, o.dialect.SQL("SELECT stripe FROM {outbox_locks} WHERE stripe IN ("+list(len(some))+") ORDER BY stripe FOR UPDATE"), args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // rows.Err reports the errors
	locked := 0
	for rows.Next() {
		locked++
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if locked != len(some) {
		return reporter.Unusable(o.dialect, ErrLockRows, fmt.Sprintf("%d of %d rows", locked, len(some)), nil)
	}
	return nil
}

// lockHash is the same in every process and every release, whatever the prefix of the tables: the same table may be named
// with its schema in one process and without it in another.
func (o *Outbox) lockHash(group string) uint64 {
	sum := sha256.Sum256([]byte("sqsonce outbox\x00" + o.name + "\x00" + group))
	return binary.BigEndian.Uint64(sum[:])
}

// list returns n arguments.
func list(n int) string { return "?" + strings.Repeat(", ?", n-1) }
