// Package sqlstore keeps the records of package dedup in an SQL database, and commits a handler's own writes together with
// them. Each kind of database has a [Dialect].
//
// There are three ways to use it. The first asks least of a handler, and the last guarantees most:
//
//   - [Store] is a [dedup.Store] for dedup.Once. It works with any handler, whatever the handler writes to. A crash between
//     the handler's effect and its record runs the handler again.
//   - [Inbox] gives the handler a transaction that also holds the event's record. The handler's writes to this database
//     have their effect exactly once.
//   - [Deferred] stores the message itself and acknowledges it at once. A [Processor] runs the handler later, in a
//     transaction, with its own retries and in the order of each group.
//
// # Drivers
//
// Your program imports the driver. Each [Dialect] says which one, with the versions and the settings of its database.
// docs/stores.md lists the connection poolers.
//
// # Tables
//
// [Migrate] creates the tables, [DDL] returns their statements, and [Store.Check] reports whether they exist. A record is a
// row of sqsonce_records:
//
//	lease_until   end of the lease, or 0 after a release
//	lease_length  how long the lease was when it was written
//	expires_at    end of retention
//	result        what dedup.Do replays
//
// docs/protocol.md, section 2, explains the other columns, which have the names of attributes there. Times are milliseconds
// since the Unix epoch, so that time zones of drivers, sessions and columns don't matter.
//
// Only [Store.Sweep] deletes expired rows. Run [Store.SweepEvery] in one of the processes, or Sweep from a job.
//
// # Clocks and durability
//
// The database's clock decides about leases and retention. The clocks of the hosts don't matter. A lease ends for its owner
// before it ends for others. If the database fails over to a server whose clock is ahead of the old one's, leases end early
// by that difference. Another owner may then start, and the database refuses the first one's next renewal or complete. If
// the clock steps back, the event of an owner that crashed before waits for the length of its lease once more. Keep database
// servers on NTP.
//
// A record is as durable as its database's commits. These can lose the last completions in a failover to an asynchronous
// replica, and in a power failure with the setting that the [Dialect] names. An event whose completion was lost runs again
// when it is delivered again. Every statement goes to the server of the pool, which must be the primary.
package sqlstore
