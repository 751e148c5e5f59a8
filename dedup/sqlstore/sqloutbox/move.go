package sqloutbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
)

const (
	// moveRows and moveSize limit the events of one Move, the size in characters of their bodies.
	moveRows = 100
	moveSize = 4 << 20
	// moveLooks is how often one Move looks behind events of groups that others have.
	moveLooks = 10
	// mostOrdered limits the events that are read to know the order of those.
	mostOrdered = 1000

	dueOrder = "due_at, place, later_key"
)

// Move adds events that are due to the outbox, and removes them from the scheduled ones, in one transaction. It moves at most
// 100. Any number of processes may call it, and each event is moved once. A relay calls it before each sweep.
//
// Move doesn't wait for another transaction. It leaves an event that a transaction is cancelling, with those of its group that are
// due after it, and all events of a group whose lock another transaction has. The next Move finds them. It also leaves events
// of another namespace.
//
// overdue is for how long the first event that it saw has been due, also one that it leaves, or 0 if none is due. While none is
// due, Move is one statement.
func (o *Outbox) Move(ctx context.Context) (moved int, overdue time.Duration, err error) {
	err = o.run(ctx, "move", func(ctx context.Context) error {
		moved, overdue = 0, 0
		var ms int64
		err := o.q.QueryRowContext(ctx, o.stmts().overdue, o.name).Scan(&ms)
		if errors.Is(err, sql.ErrNoRows) || err == nil && ms < 0 {
			return nil
		}
		if err != nil {
			return err
		}
		overdue = age(ms)
		moved, err = o.move(ctx)
		return err
	})
	return moved, overdue, err
}

// dueEvent is an event that the transaction has locked.
type dueEvent struct {
	key, group string
	due        int64
	size       int
}

// move may be repeated: what it has moved is not scheduled any more.
func (o *Outbox) move(ctx context.Context) (moved int, err error) {
	var opts sql.TxOptions
	if !o.dialect.OneWriter() {
		opts.Isolation = sql.LevelReadCommitted // each statement sees the commits before it, and no lock is for a gap
	}
	tx, err := o.db.BeginTx(ctx, &opts)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after the commit
	var keys, left []any
	for range moveLooks {
		locked, err := o.lockDue(ctx, tx, left)
		if err != nil {
			return 0, err
		}
		found, err := o.movable(ctx, tx, locked)
		if err != nil {
			return 0, err
		}
		keys = found.keys
		if found.full || len(keys) > moveRows/2 || len(locked) < moveRows {
			break
		}
		before := len(left)
		for _, e := range locked { // the next look finds the events of the other groups again
			if !found.groups[e.group] && !slices.Contains(left, any(e.group)) {
				left = append(left, e.group)
			}
		}
		if len(left) == before {
			break
		}
	}
	if len(keys) == 0 {
		return 0, nil
	}
	args := append([]any{o.name}, keys...)
	those := " FROM {outbox_later} WHERE aggregatetype = ? AND later_key IN (" + list(len(keys)) + ")"
	for _, text := range []string{
		"INSERT INTO {outbox} (" + eventColumns + ", created_at) SELECT " + eventColumns + ", {now}" + those + " ORDER BY " + dueOrder,
		"DELETE" + those,
	} {
		res, err := o.dialect.In(tx).ExecContext(ctx, o.place.Dialect().SQL(text), args...)
		if err != nil {
			return 0, err
		}
		if n, err := res.RowsAffected(); err != nil || n != int64(len(keys)) {
			return 0, errors.Join(fmt.Errorf("%d rows of %d events", n, len(keys)), err)
		}
	}
	return len(keys), tx.Commit()
}

// lockDue locks events that are due, in their order, without those that others have locked and without the groups of left. It
// comes before the groups' locks: neither waits, so the order of the two is in no deadlock.
func (o *Outbox) lockDue(ctx context.Context, tx *sql.Tx, left []any) ([]dueEvent, error) {
	args := append([]any{o.name, o.source}, left...)
	return sqldb.All(ctx, o.dialect.In(tx), func(r sqldb.Row) (e dueEvent, err error) {
		err = r.Scan(&e.key, &e.group, &e.due, &e.size)
		return e, err
	}, o.dueQuery(len(left)), append(args, moveRows)...)
}

func (o *Outbox) dueQuery(left int) string {
	others := ""
	if left > 0 {
		others = " AND aggregateid NOT IN (" + list(left) + ")"
	}
	return o.place.Dialect().SQL("SELECT later_key, aggregateid, due_at, length(payload) FROM {outbox_later} WHERE aggregatetype = ? AND source = ?" +
		" AND due_at <= {past}" + others + " ORDER BY " + dueOrder + " LIMIT ? {skip locked}")
}

// look is what one look of a Move has found movable.
type look struct {
	keys   []any
	groups map[string]bool // of keys
	full   bool            // it ended at moveSize
}

// movable returns the locked events that may be moved now: those whose group is free, and of it those before which no
// other event of the group is due. That is seen by a statement that begins after the one which locked them had ended, so it has
// all that was committed before them, on MariaDB too.
func (o *Outbox) movable(ctx context.Context, tx *sql.Tx, locked []dueEvent) (found look, err error) {
	if len(locked) == 0 {
		return found, nil
	}
	groups, sizes := map[uint64][]string{}, map[string]int{}
	var hashes []uint64
	for _, e := range locked {
		h := o.lockHash(e.group)
		if !slices.Contains(groups[h], e.group) {
			groups[h] = append(groups[h], e.group)
			hashes = append(hashes, h)
		}
		sizes[e.key] = e.size
	}
	taken, err := o.dialect.Outbox().Lock.Try(ctx, tx, o.place.Dialect(), hashes)
	if err != nil || len(taken) == 0 {
		return found, err
	}
	args := []any{o.name, o.source, locked[len(locked)-1].due}
	for _, h := range taken {
		for _, g := range groups[h] {
			args = append(args, g)
		}
	}
	due, err := sqldb.All(ctx, o.dialect.In(tx), func(r sqldb.Row) (e dueEvent, err error) {
		err = r.Scan(&e.key, &e.group)
		return e, err
	}, o.orderQuery(len(args)-3), append(args, mostOrdered)...)
	found.groups = map[string]bool{}
	behind, size := map[string]bool{}, 0
	for _, e := range due {
		n, mine := sizes[e.key]
		if !mine {
			behind[e.group] = true
		}
		if behind[e.group] {
			continue
		}
		if size += n; size > moveSize && len(found.keys) > 0 {
			found.full = true
			break
		}
		found.keys, found.groups[e.group] = append(found.keys, e.key), true
	}
	return found, err
}

func (o *Outbox) orderQuery(groups int) string {
	return o.place.Dialect().SQL("SELECT later_key, aggregateid FROM {outbox_later} WHERE aggregatetype = ? AND source = ? AND due_at <= ?" +
		" AND aggregateid IN (" + list(groups) + ") ORDER BY " + dueOrder + " LIMIT ?")
}
