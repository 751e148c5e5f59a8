// Package redisstore keeps the records of package dedup in Redis: a plain server, one behind Sentinel, or a cluster.
//
// [Store] is a [dedup.Store]. Each step of a record's life is one script on one key: an acquire, a renewal, a complete or
// a release is one round trip, and a duplicate is one too. The scripts carry owner and fence in their conditions as the
// other stores do, recognise their own repetition after a lost reply, and take the time from the server's TIME.
//
// # What Redis can lose
//
// A store promises "once done, never again" as long as it keeps its records. Redis keeps them as well as it is told to:
//
//   - Without an append-only file a restart forgets every record since the last snapshot, or all. A completed event that
//     is delivered again runs again. The server is then a filter for most duplicates, not a guarantee.
//   - With appendonly yes and appendfsync everysec, the default, the crash of the process loses nothing, and that of the
//     machine up to two seconds. With appendfsync always it loses nothing that was acknowledged.
//   - Replication is asynchronous. After a failover, of Sentinel's or a cluster's, the new master does not know what the
//     old one had acknowledged and not yet sent: a completed event may run again, and a held one may be given to a second
//     holder while the first one works, until its next renewal tells it ([sqsonce.ErrLeaseLost]). min-replicas-to-write
//     and min-replicas-max-lag bound how long a master that is cut off goes on; they do not close the gap.
//   - An eviction policy other than noeviction forgets records when memory is full, in the order of its own choosing:
//     with every record having an expiry, volatile-lru, which some managed services set, takes them first.
//
// [Store.Check] refuses a server that evicts, a replica, and a server without an append-only file; call it at the start.
// A lost lease is no danger to what is recorded: a record that is gone refuses its holder, and is never brought back.
// Where a second effect costs money, keep the record where the effect is, in one transaction: package dynamostore's
// Inbox, or sqlstore's. Or give the outside system dedup.FenceFrom's number.
//
// # The record
//
// A hash at [Options.Prefix] + the record's key, of some 250 bytes and at most 300 more for a failure's text:
//
//	status                 INPROGRESS or COMPLETED
//	owner                  the delivery attempt; stays after a release and refuses late copies of its commands
//	fence                  grows with every owner
//	until                  end of the lease, milliseconds of the server's clock; 0: released
//	attempts               receive count at the last acquire
//	error                  the last failure, at most 256 bytes
//	data, validation       result and payload hash, where used
//
// The key's expiry is the end of retention, and at least an hour after the lease's end. Leases never expire keys: a record
// that went away with its lease could neither say that its holder vanished nor refuse it. At the default retention of 29
// days a thousand events a second are 2.5 billion records: shorten dedup.Options.Retention to what your queues need, or
// take a store that keeps its records on disk.
//
// # Clocks
//
// Only the server's clock decides. A lease that it grants ends for the holder so long after the holder had sent its
// request, and for everybody else at the server. A clock that is stepped forward by more than what is left of a lease
// ends it for others too early; a failover does that where the two servers' clocks are apart. Keep them in step with one
// another, and by slewing.
//
// # Retries
//
// go-redis retries by itself. The store goes on for two seconds after that, where the server could not be reached or said
// that it is loading, failing over or moving slots; a failover takes longer, and the message comes again after it. A call
// whose outcome stays unknown is an error. What an acquire of that kind may have taken is released in the background;
// where that fails too, the key waits for one lease that nobody holds. Refusals that no retry mends are a [*ServerError].
//
// # Permissions
//
// The commands are EVALSHA, EVAL, TIME, HMGET, HSET, HDEL, EXISTS, DEL, PTTL and PEXPIREAT on the prefix's keys, INFO for
// [Store.Check], and what go-redis itself sends.
//
// # Versions
//
// Redis 5 or later, or Valkey. Older ones refuse a script that asks for the time and then writes. The tests run on Redis
// 7.0, and were run on Redis 5.0, 6.0, 6.2 and 8.0 and on Valkey 8.1 and 9.1.
package redisstore
