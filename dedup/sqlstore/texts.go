package sqlstore

import (
	"context"
	"database/sql"
	"errors"
)

// texts are the store's statements in its dialect. Each that writes is one atomic step of a record's life, whose WHERE
// decides it; a read is only to say why a step was not taken, or to name the record that the next step may replace.
type texts struct {
	insert, read, take, renew, complete, release, remove, removeAny, sweepRecords, sweepInbox string
}

func newTexts(d Dialect) texts {
	return texts{
		// A fresh key. Of two at once the primary key lets one in.
		insert: d.sql("INSERT INTO {records} (id, status, owner, fence, lease_until, expires_at, attempts)" +
			" VALUES (?, 'INPROGRESS', ?, " + d.kept("{now}") + ", {now} + ?, {now} + ?, ?) {ignore}" + d.returned("fence")),

		read: d.sql("SELECT status, owner, fence, lease_until, expires_at, attempts, error, validation, result, {now}" +
			" FROM {records} WHERE id = ?"),

		// A record that was read as free. It is taken only as it was read: fence and lease_until change with every acquire,
		// renewal and release of it. And only if it is free by the database's clock, in this statement.
		take: d.sql("UPDATE {records} SET owner = ?, fence = " + d.kept("{greatest}(fence + 1, {now})") + "," +
			" lease_until = {now} + ?, expires_at = {now} + ?, attempts = ?, validation = '', result = NULL, status = 'INPROGRESS'" +
			" WHERE id = ? AND fence = ? AND lease_until = ? AND (status = 'INPROGRESS' AND lease_until < {now}" +
			" OR status = 'COMPLETED' AND expires_at < {now})" + d.returned("fence")),

		// By what is left rather than by the end, so that MySQL can hand it back.
		renew: d.sql("UPDATE {records} SET lease_until = " + d.kept("{greatest}(lease_until - {now}, ?)") + " + {now}," +
			" expires_at = {greatest}(expires_at, {now} + ?)" +
			" WHERE id = ? AND owner = ? AND status = 'INPROGRESS' AND lease_until > 0" + d.returned("lease_until - {now}")),

		complete: d.sql("UPDATE {records} SET result = ?, validation = ?, status = 'COMPLETED'" +
			" WHERE id = ? AND owner = ? AND status = 'INPROGRESS'"),

		// The owner stays: a late copy of its acquire is refused by that. Without an error the last one stays too.
		release: d.sql("UPDATE {records} SET lease_until = 0, error = COALESCE(?, error)" +
			" WHERE id = ? AND owner = ? AND status = 'INPROGRESS' AND lease_until > 0"),

		remove:    d.sql("DELETE FROM {records} WHERE id = ? AND (status = 'COMPLETED' OR lease_until < {now})"),
		removeAny: d.sql("DELETE FROM {records} WHERE id = ?"),

		sweepRecords: d.sweep("{records}", "id", "expires_at < {past}"),
		sweepInbox:   d.sweep("{inbox}", "seq", "status = 'DONE' AND expires_at < {past}"),
	}
}

// kept marks the number that a statement hands back, where the database does it by LAST_INSERT_ID(number): the server's
// answer to an INSERT or UPDATE carries that number, and 0 where no row was written.
func (d Dialect) kept(number string) string {
	if d.engine.returning {
		return number
	}
	return "LAST_INSERT_ID(" + number + ")"
}

func (d Dialect) returned(number string) string {
	if d.engine.returning {
		return " RETURNING " + number
	}
	return ""
}

// writeKept runs a statement with a number to hand back. It reports false where no row was written: the key is there, or
// the WHERE was not met.
func (d Dialect) writeKept(ctx context.Context, q queryer, text string, args ...any) (number int64, written bool, err error) {
	if d.engine.returning {
		err := q.QueryRowContext(ctx, text, args...).Scan(&number)
		if errors.Is(err, sql.ErrNoRows) {
			return 0, false, nil
		}
		return number, err == nil, err
	}
	res, err := q.ExecContext(ctx, text, args...)
	if err != nil {
		if d.classify(err) == duplicate {
			return 0, false, nil
		}
		return 0, false, err
	}
	// Not the rows affected: MySQL counts a row that was written with the values it had only where the driver asks for it.
	number, err = res.LastInsertId()
	return number, number > 0, err
}
