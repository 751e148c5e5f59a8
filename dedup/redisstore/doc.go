// Package redisstore keeps the records of package dedup in Redis: a single server, one with Sentinel, or a cluster.
//
// [Store] is a [dedup.Store]. Each operation is one script on one key. An acquire, a renewal, a complete and a release each
// take one round trip, and so does a duplicate. The scripts check owner and fence like the other stores, recognise their
// own repetition after a lost reply, and use the time of the server's TIME command. See [Store] for clocks and retries.
//
// # What Redis can lose
//
// A store guarantees "once done, never again" for as long as it has the record. The server's configuration sets that time:
//
//   - Without an append-only file a restart loses every record since the last snapshot, or all records. A completed event
//     that is delivered again then runs again. Such a server filters most duplicates, but doesn't guarantee anything.
//   - With appendonly yes and appendfsync everysec, the default, records survive a crash of the process. A crash of the
//     machine loses up to two seconds. With appendfsync always, all acknowledged records survive that too.
//   - Replication is asynchronous. After a failover, by Sentinel or in a cluster, the new master lacks the records that the
//     old one had acknowledged and not yet sent. A completed event may run again. A second owner may acquire an event that
//     is running, until the first owner's next renewal fails with [sqsonce.ErrLeaseLost]. min-replicas-to-write and
//     min-replicas-max-lag limit how long a disconnected master accepts writes. They don't exclude the loss.
//   - An eviction policy other than noeviction deletes records when memory is full. Every record has an expiry, so
//     volatile-lru, which some managed services set, deletes records first.
//
// A server whose memory is full (maxmemory) refuses new records, and handlers don't
// start. In all versions it accepts the renewals, completes and releases of the records that it has, so an event whose
// handler has run doesn't run again because of full memory. A server that the operating system kills because memory runs
// out has restarted, see above.
//
// The first acquire of a store, and [Store.Check], refuse a server that evicts, a replica, and a server without an
// append-only file. [Options.Volatile] accepts the last one. If a server refuses INFO or leaves out these fields, as
// managed services do, the first acquire only warns.
//
// The owner of a lost record can't overwrite anything, because the server refuses its writes and doesn't create the record
// again. If a second effect is expensive, use the Inbox of package dynamostore or sqlstore, or dedup.FenceFrom.
//
// # The record
//
// A record is a hash at [Options.Prefix] + the record's key. It has about 300 bytes, and up to 300 more for a failure's
// text:
//
//	until                  end of the lease, milliseconds of the server's clock, or 0 after a release
//	lease_length           milliseconds of the lease, for a server's clock that was ahead
//
// docs/protocol.md, section 2, explains the other fields, which have the names of attributes there. A key of a [NewCounter] has the
// fields tat and line, in microseconds. The hash expires at the end of retention, and at least an hour after the lease's end. It
// must outlive its lease to show that its owner has crashed, and to refuse that owner. With the default retention of
// 29 days, a thousand events per second are 2.5 billion records. Shorten dedup.Options.Retention to the time that your queues need, or use a store that keeps its records on disk.
//
// # Permissions and versions
//
// docs/stores.md lists the commands that the store sends. go-redis sends commands of its own.
//
// Use Redis 5 or later, or Valkey. Older versions refuse a script that asks for the time and then writes. The tests run on
// Redis 7.0, and have run on Redis 5.0, 6.0, 6.2 and 8.0 and on Valkey 8.1 and 9.1.
package redisstore
