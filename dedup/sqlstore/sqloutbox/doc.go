// Package sqloutbox keeps an outbox in a table of PostgreSQL, MySQL, MariaDB or SQLite: an event that a transaction commits
// with [Outbox.Add] is published by an [outbox.Relay], in its group's order.
//
// # Order
//
// The order of a group is that of the commits. The number of a row, which the database makes, is that order only because
// transactions with events of one group exclude one another from before the INSERT to the commit. On PostgreSQL Add takes an
// advisory lock for that, on MySQL and MariaDB a row of the table outbox_locks, and on SQLite the transaction has the file.
// See [Options.GroupLocked] for transactions that exclude one another already. A transaction that adds should be short after
// Add: it is what others of its group wait for.
//
// The numbers must be made one after the other, by one server: the sequence's cache stays 1, AUTOINCREMENT stays on, and only
// one primary takes writes. Galera and Group Replication with several writers are not supported.
//
// # Tables
//
// [Migrate] creates the tables, [DDL] returns their statements, [Outbox.Check] reports what is wrong with them. Their names
// begin with the dialect's prefix: outbox, outbox_schema, and on MySQL outbox_locks. They are apart from those of package
// sqlstore, whose prefix they may share. The table outbox holds only what is not yet confirmed; nothing else removes a row but
// [Outbox.Discard]. Any number of outboxes share it by name: one outbox for each queue.
//
//	seq            the order of a group; the primary key
//	aggregatetype  the outbox's name
//	aggregateid    the group
//	id, source, type, payload, attributes, trace  the event
//	created_at     when it was added, by the database's clock
//	parked, error, parked_at  HALT or SKIP, why, and since when
//	owner, lease_until  the claim of a relay, on the first row of a group
//
// Times are milliseconds since the Unix epoch. The columns id, aggregatetype, aggregateid, type and payload are those of
// Debezium's outbox event router.
//
// Whoever adds needs INSERT on outbox, and on MySQL SELECT and UPDATE on outbox_locks. A relay needs SELECT, UPDATE and DELETE
// on outbox, and SELECT on the two others.
//
// # Failures
//
// A failover to an asynchronous replica loses commits: events of transactions that are gone have perhaps been published.
// Stop the relays before a backup is restored. What was published since the backup is published again.
package sqloutbox
