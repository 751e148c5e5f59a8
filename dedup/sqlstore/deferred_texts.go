package sqlstore

import "strings"

// deferredTexts are the statements of a deferred inbox.
type deferredTexts struct {
	dialect Dialect
	// For operators.
	inspect, parked, unpark, count string
	// A processor's claim: one statement, or where it cannot return rows lock, lease and taken in a transaction.
	claim, lock, lease, taken string
	// How an attempt ends. Each is refused where the lease is another's by then.
	mark, standing, delay, park, giveBack string
}

const (
	pending = "PENDING"
	parked  = "PARKED"
)

func newDeferredTexts(d Dialect) deferredTexts {
	const (
		entries = "SELECT " + entryColumns + " FROM {inbox} WHERE consumer = ? AND "
		row     = "seq, id, message_id, payload, attributes, attempts, error"
		taken   = "attempts = attempts + 1, owner = ?, lease_until = {now} + ?"
		mine    = " WHERE seq = ? AND owner = ? AND status = 'PENDING'"

		// Of a group only the oldest unfinished row. The inner query locks nothing and passes over nothing: it also sees a
		// row that is locked, because its handler runs, or that is not due, because its handler failed.
		//
		// A row whose lease is over and whose handler still runs is locked, and passed over by the outer query.
		due = "SELECT seq FROM {inbox} i WHERE i.consumer = ? AND i.status = 'PENDING' AND i.due_at <= {past} AND i.lease_until < {past}" +
			" AND (i.group_id = '' OR NOT EXISTS (SELECT 1 FROM {inbox} o WHERE o.consumer = i.consumer" +
			" AND o.group_id = i.group_id AND o.status = 'PENDING' AND o.seq < i.seq))" +
			" ORDER BY i.due_at, i.seq LIMIT ? {skip locked}"
	)
	sql := func(text string) string { return d.sql(strings.ReplaceAll(text, "{past}", d.engine.past)) }
	t := deferredTexts{
		dialect: d,
		inspect: sql(entries + "id = ?"),
		parked:  sql(entries + "status = 'PARKED' ORDER BY seq LIMIT ?"),
		unpark: sql("UPDATE {inbox} SET status = 'PENDING', attempts = 0, owner = '', lease_until = 0, due_at = {now}" +
			" WHERE consumer = ? AND id = ? AND status = 'PARKED'"),
		count: sql("SELECT COALESCE(SUM(CASE status WHEN 'PENDING' THEN 1 ELSE 0 END), 0)," +
			" COALESCE(SUM(CASE status WHEN 'PARKED' THEN 1 ELSE 0 END), 0)," +
			" COALESCE(MIN(CASE status WHEN 'PENDING' THEN received_at END), 0), {now}" +
			" FROM {inbox} WHERE consumer = ? AND status <> 'DONE'"),

		lock:  sql(due),
		lease: "UPDATE {inbox} SET " + taken + " WHERE seq IN (", // completed by seqs
		taken: sql("SELECT " + row + " FROM {inbox} WHERE consumer = ? AND owner = ? ORDER BY seq"),

		mark: sql("UPDATE {inbox} SET error = '', lease_until = 0, expires_at = {greatest}(expires_at, {now} + ?)," +
			" status = 'DONE'" + mine),
		standing: sql("SELECT status, owner FROM {inbox} WHERE seq = ?"),
		delay:    sql("UPDATE {inbox} SET error = ?, lease_until = 0, due_at = {now} + ?" + mine),
		park:     sql("UPDATE {inbox} SET error = ?, lease_until = 0, status = 'PARKED'" + mine),
		giveBack: sql("UPDATE {inbox} SET attempts = attempts - 1, lease_until = 0, owner = ''" + mine),
	}
	update := "UPDATE {inbox} SET " + taken + " WHERE seq "
	switch d.engine {
	case postgresql:
		// An array is evaluated once; a subquery under IN may be again, each time with other rows.
		t.claim = sql(update + "= ANY(ARRAY(" + due + ")) RETURNING " + row)
	case sqlite:
		t.claim = sql(update + "IN (" + due + ") RETURNING " + row)
	}
	return t
}

// leaseAll completes the statement lease for that many rows.
func (t deferredTexts) leaseAll(rows int) string {
	return t.dialect.sql(t.lease + "?" + strings.Repeat(", ?", rows-1) + ")")
}

func (t deferredTexts) insert(rows int) string {
	const values = "(?, ?, ?, ?, ?, ?, ?, ?, ?, {now}, 'PENDING', {now}, {now} + ?)"
	return t.dialect.sql("INSERT INTO {inbox} (id, consumer, event_id, source, event_type, group_id, message_id, payload," +
		" attributes, received_at, status, due_at, expires_at) VALUES " + values + strings.Repeat(", "+values, rows-1) + " {ignore}")
}
