// Package sqlstore keeps the records of package dedup in PostgreSQL, MySQL, MariaDB or SQLite, and commits a handler's own
// writes together with them.
//
// There are three ways to use it, from the one that asks least of a handler to the one that guarantees most:
//
//   - [Store] is a [dedup.Store] for dedup.Once. It works with any handler, whatever the handler writes to. A crash between
//     the handler's effect and its record runs the handler again.
//   - [Inbox] gives the handler a transaction that also holds the event's record. What the handler writes to this database
//     has its effect exactly once.
//   - [Deferred] stores the message itself and acknowledges it at once. A [Processor] runs the handler later, in a
//     transaction, with its own retries and in the order of each group.
//
// # Drivers
//
// The package imports no driver. It is tested with github.com/jackc/pgx/v5/stdlib, github.com/go-sql-driver/mysql and
// modernc.org/sqlite, on PostgreSQL 15, MariaDB 10.11, MySQL 9.7 and SQLite 3.5x. It is written for MySQL 8.0 as well, but
// not tested on it. See [PostgreSQL], [MySQL] and [SQLite] for the settings that each needs. The store depends on no
// session state and prepares no statement by name. An [Inbox] prepares its INSERT and its UPDATE through the protocol, once
// per connection, with the drivers of MySQL and SQLite. If the server refuses that, the inbox sends the text.
//
// # Tables
//
// [Migrate] creates the tables, [DDL] returns their statements, and [Store.Check] reports whether they exist. A record is
// a row of sqsonce_records:
//
//	id           the consumer's name, '#' and the event's key: the primary key
//	status       INPROGRESS or COMPLETED
//	owner        the delivery attempt; stays after a release, so that late copies of its statements are refused
//	fence        grows with every owner
//	lease_until  end of the lease; 0: released
//	expires_at   end of retention
//	attempts     receive count at the last acquire
//	error        the last failure, at most 256 bytes
//	validation   payload hash, where used
//	result       result, where used
//
// Times are milliseconds since the Unix epoch, so that time zones of drivers, sessions and columns do not matter. On MySQL
// the text columns hold bytes; CONVERT(id USING utf8mb4) shows them.
//
// Only [Store.Sweep] deletes expired rows: run [Store.SweepEvery] in one of the processes, or Sweep from a job.
//
// # Statements
//
// Each store operation is one statement in a transaction of its own. The primary key and the WHERE clause decide it. A
// first delivery costs two statements, an INSERT and an UPDATE. A duplicate costs an INSERT that finds its key and a read;
// where SQS says that it is not the first receive, it costs the read only. A redelivery after a failure costs a read and
// two UPDATEs.
//
// The store repeats statements that ended in a deadlock or a serialization failure, with jitter, and those whose
// connection broke. The owner in the record shows whether an earlier copy was executed. One case remains: a server that
// needs minutes to notice that a client is gone. An acquire that waits for a lock there may be granted after its store has
// given up. Then no handler runs, and the key waits for one lease. Under OnCrashBlock and OnCrashDeadLetter this looks
// like a crash.
//
// # Clocks
//
// The database's clock decides about leases and retention. The clocks of the hosts do not matter. A lease ends for its
// owner before it ends for others. If the database fails over to a server whose clock is ahead of the old one's, leases
// end early by that difference: another owner may start, and the first one is then refused when it renews or completes.
// If its clock steps back, the event of an owner that crashed before waits for the difference. Keep database servers on NTP.
//
// # Durability
//
// A record is as durable as its database's commits. These can lose the last completions: a failover to an asynchronous
// replica, and, with a power failure, PostgreSQL's synchronous_commit = off, MySQL's innodb_flush_log_at_trx_commit other
// than 1, and SQLite's synchronous other than FULL in WAL mode. An event whose completion was lost runs again when it is
// delivered again. Every statement goes to the server of the pool, which must be the primary.
package sqlstore
