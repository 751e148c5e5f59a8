package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/internal/counter"
	"github.com/sqsonce/sqsonce/dedup/internal/field"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
)

const (
	inProgress = "INPROGRESS"
	completed  = "COMPLETED"
)

// record is a row, and the database's clock when it was read. All times are milliseconds since the Unix epoch.
type record struct {
	key, status, owner            string
	fence, until, length, expires int64
	receiveCount                  int
	kept                          dedup.Record // the result and the texts
	now                           int64
}

// recordColumns are the columns that scan reads.
var recordColumns = "id, status, owner, fence, lease_until, lease_length, expires_at, receive_count, {now}, result, " + textNames

// find reads the record of key as it is now. The error is sql.ErrNoRows if there is none.
func (s *Store) find(ctx context.Context, q sqldb.Queryer, key string) (record, error) {
	return scan(s.dialect.In(q).QueryRowContext(ctx, s.stmts().read, key))
}

// scan reads a row. A row that another program has changed is a dedup.ErrRecord, with what was read of it.
func scan(row sqldb.Row) (record, error) {
	var r record
	targets := []any{&r.key, &r.status, &r.owner, &r.fence, &r.until, &r.length, &r.expires, &r.receiveCount, &r.now, &r.kept.Result.Data}
	texts := make([]string, len(field.Texts))
	for i := range texts {
		targets = append(targets, &texts[i])
	}
	err := row.Scan(targets...)
	for i, f := range field.Texts {
		f.Set(&r.kept, texts[i])
	}
	if sqldb.IsScan(err) {
		return r, fmt.Errorf("sqlstore: key %q: %w: %w", r.key, dedup.ErrRecord, err)
	}
	if err == nil && r.status != inProgress && r.status != completed {
		err = fmt.Errorf("sqlstore: %w: status of key %q is %q", dedup.ErrRecord, r.key, r.status)
	}
	return r, err
}

func isMissing(err error) bool { return errors.Is(err, sql.ErrNoRows) }

// state is the meaning of a record for a claim that was not granted by its INSERT.
type state int

const (
	free     state = iota // it can be acquired
	owned                 // leased by the claim's own owner: an earlier copy of the acquire was granted
	released              // released by the claim's own owner, which cannot acquire it again
	leased                // another owner's lease is live
	crashed               // another owner's lease ended without a release, and the claim does not take over such a record
	done                  // completed, and retained
)

// stateFor judges the record by the clock that was read with it. Its comparisons are those of the statements.
func (r record) stateFor(c dedup.Claim) state {
	switch {
	case r.status == completed && r.expires < r.now:
		return free
	case r.status == completed:
		return done
	case r.owner == c.Owner && r.until > 0:
		return owned
	case r.owner == c.Owner:
		return released
	case r.until == 0:
		return free
	case r.until >= r.now:
		return leased
	case c.NoTakeover:
		return crashed
	default:
		return free
	}
}

// takenBy notes in the lease that takes the record whether the last owner crashed, and which one it was.
func (r record) takenBy(l *dedup.Lease) {
	if r.status == inProgress && r.until > 0 {
		l.Takeover, l.TakenFrom, l.TakenOwner = true, r.fence, r.owner
	}
}

// remaining is what can remain of the lease, in milliseconds: no more than it had when it was written, also after the
// database's clock stepped back.
func (r record) remaining() int64 { return min(r.until-r.now, r.length) }

// overlong reports whether the lease ends later than it can: the database's clock was ahead when the lease was written.
func (r record) overlong() bool { return r.until-r.now > r.length }

// isRefusal reports whether the error says what state the record is in. Such an error is not a failure: it is returned
// unchanged and not retried.
func isRefusal(err error) bool {
	switch err.(type) {
	case *dedup.InProgressError, *doneError:
		return true
	}
	return err == sqsonce.ErrLeaseLost || err == dedup.ErrChanged || errors.Is(err, dedup.ErrRecord)
}

// afterLease is the least time that a record is retained after its lease's end, so that Sweep doesn't delete a live lease.
const afterLease = time.Hour

// retention is how long the record is retained from the acquire on.
func retention(c dedup.Claim) time.Duration { return max(c.Retention, c.Lease+afterLease) }

// ownerEnd is a lease's end in the caller's clock, for its owner: never later than the database's. It is what remained when
// the statement was evaluated, counted from before it was sent. The database's clock is rounded down to the millisecond,
// so what remained may be one millisecond too long.
func ownerEnd(sent time.Time, remaining int64) time.Time {
	return sent.Add(time.Duration(remaining-1) * time.Millisecond)
}

// othersEnd is a lease's end in the caller's clock, for those who wait for it: never earlier than the database's. It is
// counted from after the reply, up to the first millisecond in which the record can be taken.
func othersEnd(remaining int64) time.Time {
	return time.Now().Add(time.Duration(max(0, remaining)+2) * time.Millisecond)
}

// statements are the store's statements in its dialect. Each one that writes is one atomic step, and its WHERE clause
// decides it. A read only says why a step was refused, or names the record that the next step may replace.
type statements struct {
	insert, read, take, renew, shorten, complete, release, reopen, reopenAny, keepNew, keepOver, keep, remove, removeAny, sweepRecords, sweepInbox string
	takeTokens, place, schedule, newSchedule                                                                                                       string // of a counter
}

// isFree is the condition that the database's clock has passed the record's lease or, after a complete, its retention.
const isFree = "(status = 'INPROGRESS' AND lease_until < {now} OR status = 'COMPLETED' AND expires_at < {now})"

// reopen releases the record that was seen to a new owner. On MySQL an assignment sees the values of those before it.
var reopen = "UPDATE {records} SET owner = ?, fence = {greatest}(fence + 1, {now}), lease_until = 0," +
	" expires_at = {greatest}(expires_at, {now} + ?), note = ?, error = COALESCE(?, error), " + emptyResult + ", status = 'INPROGRESS'" +
	" WHERE id = ? AND owner = ? AND fence = ? AND status = ?"

// keep replaces an operator's text.
var keep = "UPDATE {records} SET result = ?, " + emptyTexts + ", owner = ?, fence = {greatest}(fence + 1, {now}), lease_until = 0, lease_length = 0," +
	" expires_at = {now} + ?, receive_count = 0 WHERE id = ? AND status = 'COMPLETED'"

// micros is the database's clock in microseconds, rounded up to the millisecond.
const micros = "({now} + 1) * 1000"

// isKey is the condition that a row is a counter's: a tat is above the fence of each event, which is in milliseconds.
const isKey = "fence > 1000000000000000"

func insertArgs(c dedup.Claim) []any {
	lease := c.Lease.Milliseconds()
	return []any{c.Key, c.Owner, lease, lease, retention(c).Milliseconds(), c.ReceiveCount}
}

// takeArgs are those of take, for the record that was read.
func takeArgs(c dedup.Claim, r record) []any {
	lease := c.Lease.Milliseconds()
	return []any{c.Owner, lease, lease, retention(c).Milliseconds(), c.ReceiveCount, r.key, r.fence, r.until}
}

func newStatements(d sqldb.Dialect) statements {
	return statements{
		// A new key. If two come at once, the primary key accepts one.
		insert: d.SQL("INSERT INTO {records} (id, status, owner, fence, lease_until, lease_length, expires_at, receive_count)" +
			" VALUES (?, 'INPROGRESS', ?, " + d.Returned("{now}") + ", {now} + ?, ?, {now} + ?, ?) {ignore}" + d.Returning("fence")),

		read: d.SQL("SELECT " + recordColumns + " FROM {records} WHERE id = ?"),

		// A record that was read as free. It is taken only if it has not changed since: every acquire, renewal and release
		// changes fence or lease_until. And it is taken only if it is free by the database's clock in this statement.
		take: d.SQL("UPDATE {records} SET owner = ?, fence = " + d.Returned("{greatest}(fence + 1, {now})") + "," +
			" lease_until = {now} + ?, lease_length = ?, expires_at = {now} + ?, receive_count = ?, " + emptyResult + ", status = 'INPROGRESS'" +
			" WHERE id = ? AND fence = ? AND lease_until = ? AND " + isFree + d.Returning("fence")),

		// It always changes lease_until, which take and shorten compare.
		renew: d.SQL("UPDATE {records} SET lease_until = {greatest}(lease_until + 1, {now} + ?)," +
			" lease_length = {greatest}(lease_length, ?), expires_at = {greatest}(expires_at, {now} + ?)" +
			" WHERE id = ? AND owner = ? AND status = 'INPROGRESS' AND lease_until > 0"),

		// A lease that was read as overlong. It lasts as long again from now, because its owner may live: the owner counts from
		// before its last write, and that write is one that was read.
		shorten: d.SQL("UPDATE {records} SET lease_until = {now} + lease_length" +
			" WHERE id = ? AND fence = ? AND lease_until = ? AND lease_until > {now} + lease_length"),

		complete: d.SQL(complete + " AND status = 'INPROGRESS'"),

		// The owner stays, so that a late copy of its acquire is refused.
		release: d.SQL("UPDATE {records} SET lease_until = 0, error = ?" +
			" WHERE id = ? AND owner = ? AND status = 'INPROGRESS' AND lease_until > 0"),

		reopen:    d.SQL(reopen + " AND (status = 'COMPLETED' OR lease_until < {now})"),
		reopenAny: d.SQL(reopen),

		keepNew: d.SQL("INSERT INTO {records} (id, status, owner, result, fence, lease_until, expires_at, receive_count)" +
			" VALUES (?, 'COMPLETED', ?, ?, {now}, 0, {now} + ?, 0) {ignore}"),
		keepOver: d.SQL(keep + " AND expires_at < {now}"),
		keep:     d.SQL(keep + " AND owner = ? AND fence = ?"),

		remove:    d.SQL("DELETE FROM {records} WHERE id = ? AND (status = 'COMPLETED' OR lease_until < {now})"),
		removeAny: d.SQL("DELETE FROM {records} WHERE id = ?"),

		// A key of a counter: its fence is the tat, and its lease_length the line, in microseconds. The greatest lag of a take
		// isn't less than the floor of its pause.
		takeTokens: d.SQL("UPDATE {records} SET fence = " + d.Returned("{greatest}(fence, "+micros+" + ?) + ? - "+micros) + " + " + micros + "," +
			" expires_at = {greatest}(expires_at, {now} + ?) WHERE id = ? AND fence <= " + micros + " + ?" +
			" AND lease_length <= " + micros + " + ? AND " + isKey + d.Returning("fence - "+micros)),
		place: d.SQL("UPDATE {records} SET lease_length = " + d.Returned("{greatest}(lease_length, fence, "+micros+") + ? - "+micros) + " + " + micros + "," +
			" expires_at = {greatest}(expires_at, {now} + ?) WHERE id = ? AND " + isKey + d.Returning("lease_length - "+micros)),
		schedule: d.SQL("SELECT fence - " + micros + ", lease_length - " + micros + ", CASE WHEN " + isKey + " THEN 1 ELSE 0 END FROM {records} WHERE id = ?"),
		newSchedule: d.SQL("INSERT INTO {records} (id, status, owner, fence, lease_until, lease_length, expires_at, receive_count)" +
			" VALUES (?, 'INPROGRESS', '" + counter.Owner + "', " + micros + " + ?, 0, " + micros + " + ?, {now} + ?, 0) {ignore}"),

		// The time is one value for the whole statement, so that the index can be searched for it.
		sweepRecords: d.DeleteOldest("{records}", "id", "expires_at < {past}", "expires_at"),
		sweepInbox:   d.DeleteOldest("{inbox}", "seq", "status = 'DONE' AND expires_at < {past}", "expires_at"),
	}
}
