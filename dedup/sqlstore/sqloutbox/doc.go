// Package sqloutbox keeps an outbox in a table of an SQL database. An [outbox.Relay] publishes an event that your transaction
// commits with [Outbox.Add], in its group's order.
//
// # Order
//
// The order of a group is that of the commits. The number of a row, which the database makes, is that order only because
// transactions with events of one group exclude one another from before the INSERT to the commit. For that, Add locks the group
// to the end of the transaction. Clause 3.3a of docs/protocol-outbox.md has the lock of each database. See [Options.GroupLocked]
// for transactions that exclude one another already. Keep a transaction short after Add, because others of its group wait for it.
//
// One server must make the numbers, one after the other. The sequence's cache stays 1, AUTOINCREMENT stays on, and only one
// primary accepts writes. Galera and Group Replication with several writers are not supported.
//
// # Tables
//
// [Migrate] creates the tables, [DDL] returns their statements, and [Outbox.Check] reports their problems. Their names begin
// with the dialect's prefix: outbox, outbox_later, outbox_schema, and outbox_locks where groups are locked by rows. They are apart from those
// of package sqlstore, whose prefix they may share. The table outbox holds only unconfirmed events. Apart from the relay's
// deletes, only [Outbox.Discard] removes a row. Any number of outboxes share the table by name, with one outbox for each queue.
//
//	seq            the order of a group; the primary key
//	aggregatetype  the outbox's name
//	aggregateid    the group
//	id, source, type, payload, attributes, trace  the event
//	created_at     when it was added, by the database's clock
//	parked, error, parked_at  HALT or SKIP, why, and since when
//	owner, lease_until  the claim of a relay, on the first row of a group
//
// The table outbox_later has the events of [Outbox.AddAt] until they are due, with the columns of an event, and:
//
//	later_key  SHA-256 of the ID in hexadecimal; the primary key with aggregatetype
//	due_at     when the event is due
//	place      its place in the call of AddAt
//
// Times are milliseconds since the Unix epoch. The columns id, aggregatetype, aggregateid, type and payload are those of
// Debezium's outbox event router.
//
// docs/outbox.md has the permissions.
//
// # Failures
//
// A failover to an asynchronous replica loses commits, and the relay may have published events of the lost transactions. Stop
// the relays before you restore a backup. The relays publish again the events that were published since the backup.
package sqloutbox
