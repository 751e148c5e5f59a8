// Package sqlstore keeps the records of package dedup in PostgreSQL, MySQL, MariaDB or SQLite, and commits a handler's own
// writes with them.
//
// There are three ways to use it, from the one that asks least of a handler to the one that promises most:
//
//   - [Store] is a [dedup.Store] for dedup.Once: any handler, whatever it writes to. A crash between the handler's effect
//     and its record runs the handler again.
//   - [Inbox] gives the handler a transaction that also holds the event's record: what the handler writes to this database
//     has its effect exactly once.
//   - [Deferred] stores the message itself and acknowledges it at once; a [Processor] runs the handler later, in a
//     transaction, with its own retries and in the order of each group.
//
// # Drivers
//
// The package imports none. It is tested with github.com/jackc/pgx/v5/stdlib, github.com/go-sql-driver/mysql and
// modernc.org/sqlite, on PostgreSQL 15, MariaDB 10.11, MySQL 9.7 and SQLite 3.5x. It is written for MySQL 8.0 as well, and
// has not been run on it. See [PostgreSQL], [MySQL] and [SQLite] for the settings that each needs. The store keeps no
// session's state and prepares no statement by name. An [Inbox] prepares its INSERT by the protocol, once for each
// connection, with the drivers of MySQL and SQLite; where that is refused it sends the text.
//
// # The tables
//
// [Migrate] makes them and [DDL] prints them; [Store.Check] tells whether they are there. A record is a row of
// sqsonce_records:
//
//	id           the consumer's name, '#' and the event's key: the primary key
//	status       INPROGRESS or COMPLETED
//	owner        the delivery attempt; stays after a release and refuses late copies of its statements
//	fence        grows with every owner
//	lease_until  end of the lease; 0: released
//	expires_at   end of retention
//	attempts     receive count at the last acquire
//	error        the last failure, at most 256 bytes
//	validation   payload hash, where used
//	result       result, where used
//
// Times are milliseconds of the epoch, so that no driver, session or column has a say in time zones. On MySQL texts are
// bytes; CONVERT(id USING utf8mb4) shows them.
//
// Nothing deletes what is over but [Store.Sweep]: run [Store.SweepEvery] in one of the processes, or Sweep from a job.
//
// # Statements
//
// Every step of a record's life is one statement that is a transaction of its own, and the primary key and its WHERE
// decide it. A first delivery costs two: an INSERT and an UPDATE. A duplicate costs an INSERT that finds its key and a
// read, or the read alone where SQS says that it is not the first receive. A redelivery after a failure costs a read and
// two UPDATEs.
//
// Statements that a deadlock or a serialization failure ended are run again, with jitter, and so are those whose
// connection broke: the owner in the record tells whether an earlier one was executed. What remains is a server that takes
// minutes to find out that a client is gone: an acquire that waits for a lock there may still be granted after its store
// has given up. Nobody runs then, and the key waits for one lease; under the policies Block and DeadLetter it looks like a
// crash.
//
// # Clocks
//
// The database's clock decides about leases and retention; how the clocks of hosts are set does not matter. A lease ends
// for its holder before it ends for anybody else. Where the database fails over to a server whose clock is ahead of the
// old one's, leases end early by that much: a holder is then refused when it renews or completes, and another may have
// started before. Keep database servers on NTP.
//
// # Durability
//
// A record is as durable as its database's commits. A failover to an asynchronous replica, or PostgreSQL's
// synchronous_commit = off, MySQL's innodb_flush_log_at_trx_commit other than 1 and SQLite's synchronous other than FULL
// (in WAL mode) with a power failure, can lose the last completions: their events run again when they are delivered again.
// Every statement goes to the server of the pool: it must be the primary.
package sqlstore
