package sqloutbox

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

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
// commits. So from Add to the end of the transaction, other transactions with events of the same groups wait in their Add. Call
// it once, and last. One call locks its groups in an order of its own. Two calls in one transaction may meet those of another
// transaction in a deadlock, which is the database's error. On SQLite the transaction has the file anyway.
//
// An event costs two statements, the lock of its group and the INSERT. With [Options.GroupLocked] and on SQLite it costs one. Up
// to 100 events share a statement.
//
// After any error you must roll back the transaction, because it may hold a part of the events. The errors are:
//
//   - one [*sqsonce.OptionError] per bad field, joined, if SQS would refuse the event on every queue, see [fifo.Event.Check].
//     The database didn't get a statement.
//   - a [*sqsonce.OptionError] for an event that is larger than max_allowed_packet of MySQL, in its stored form, in which JSON
//     escapes some characters of attributes.
//   - [sql.ErrTxDone] if the transaction has ended.
//   - matching [sqsonce.ErrUnavailable]: the table does not exist, access is denied, or the server is read-only.
//   - matching [sqsonce.ErrUnavailable]: a deadlock, a lock that was not free in time, or a missing answer. You can run the
//     transaction again. In a handler of [sqlstore.Inbox] return it.
//
// On MySQL a deadlock ends the whole transaction. The later statements of the same *sql.Tx are committed by themselves, also an
// event, so return the errors of all statements.
//
// Add names the table with the schema in which the pool of [New] finds it, whatever is left in the session of the transaction.
// Without that pool, or while the pool has no free connection at the first Add, the transaction's session finds the table. Name
// the schema in the dialect's prefix then.
//
// Add doesn't look for an ID that is in the outbox already. SQS drops the second of two events with one ID within five minutes.
// If the second has another body, a relay that has published the first one parks it, and another relay doesn't know.
func (o *Outbox) Add(ctx context.Context, tx *sql.Tx, es ...fifo.Event) error {
	if err := checkEvents(tx, o.source, es); err != nil || len(es) == 0 {
		return err
	}
	if err := o.findPlace(ctx); err != nil {
		return err
	}
	if err := o.lock(ctx, tx, es); err != nil {
		return reporter.ExplainIn(o.dialect, "lock groups", err)
	}
	rows, err := o.newRows(ctx, tx, es)
	if err != nil {
		return err
	}
	return o.insert(ctx, tx, "INSERT INTO {outbox} ("+eventColumns+", created_at) VALUES ", "("+eventValues+", {now})", rows)
}

func checkEvents(tx *sql.Tx, source string, es []fifo.Event) error {
	if tx == nil {
		return fieldError("tx", "is nil")
	}
	var errs []error
	for i, e := range es {
		if err := e.Check(source); err != nil {
			errs = append(errs, fmt.Errorf("sqloutbox: add: event %d of %d: %w", i+1, len(es), err))
		}
	}
	return errors.Join(errs...)
}

// findPlace finds the place of the tables through the pool: a handler may have changed the session of its transaction. It does
// not wait for a connection, because the transaction may have the pool's last one.
func (o *Outbox) findPlace(ctx context.Context) error {
	if o.db == nil || o.place.Found() {
		return nil
	}
	if pool := o.db.Stats(); pool.MaxOpenConnections > 0 && pool.InUse >= pool.MaxOpenConnections {
		return nil
	}
	return o.base.Retry(ctx, "find the tables", func(ctx context.Context) error { return o.place.Find(ctx, o.db) })
}

// eventColumns are the columns of an event, and eventValues their values: see newRow.
const (
	eventColumns = "aggregatetype, aggregateid, id, source, type, payload, attributes, trace"
	eventValues  = "?, ?, {bytes}, ?, {bytes}, {bytes}, {bytes}, {bytes}"
)

// newRow is an event as it is about to be stored.
type newRow struct {
	args []any
	size int
}

// newRows returns the events as they are stored, or an error for one that the database would refuse. A MySQL ends the
// connection over a packet that is too large: it would look like an outage.
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
	query, limited := o.dialect.LargestStatement()
	if !limited || largest <= 1<<20-packetRest { // the smallest default was 1 MiB
		return rows, nil
	}
	var packet int
	if err := tx.QueryRowContext(ctx, query).Scan(&packet); err != nil {
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

// insert runs a statement that ends in values, of one row.
func (o *Outbox) insert(ctx context.Context, tx *sql.Tx, statement, values string, rows []newRow) error {
	for len(rows) > 0 {
		n := fitting(rows)
		var args []any
		for _, r := range rows[:n] {
			args = append(args, r.args...)
		}
		_, err := tx.ExecContext(ctx, o.place.Dialect().SQL(statement+values+strings.Repeat(", "+values, n-1)), args...)
		if err != nil {
			return reporter.ExplainIn(o.dialect, "add", err)
		}
		rows = rows[n:]
	}
	return nil
}

// lock takes the groups' locks, which the transaction holds to its end, before an INSERT makes a number. An identity alone is
// no order: a transaction with a lower number may be committed later. It takes them in one order for all transactions.
func (o *Outbox) lock(ctx context.Context, tx *sql.Tx, es []fifo.Event) error {
	if o.groupLocked {
		return nil
	}
	hashes := make([]uint64, len(es))
	for i, e := range es {
		hashes[i] = o.lockHash(e.Group)
	}
	problem, err := o.dialect.Outbox().Lock.Take(ctx, tx, o.place.Dialect().For(nil), hashes) // the transaction may be of another driver
	if problem != "" {
		return reporter.Unusable(o.dialect, errLockRows, problem, nil)
	}
	return err
}

// lockHash is the same in every process and every release, whatever the prefix of the tables: the same table may be named
// with its schema in one process and without it in another.
func (o *Outbox) lockHash(group string) uint64 {
	sum := sha256.Sum256([]byte("sqsonce outbox\x00" + o.name + "\x00" + group))
	return binary.BigEndian.Uint64(sum[:])
}

// list returns n arguments.
func list(n int) string { return "?" + strings.Repeat(", ?", n-1) }
