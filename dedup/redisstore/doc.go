// Package redisstore keeps the records of package dedup in Redis: a single server, one with Sentinel, or a cluster.
//
// [Store] is a [dedup.Store]. Each operation is one script on one key: an acquire, a renewal, a complete and a release
// are one round trip each, and so is a duplicate. The scripts check owner and fence as the other stores do, recognise
// their own repetition after a lost reply, and use the time of the server's TIME command.
//
// # What Redis can lose
//
// A store guarantees "once done, never again" for as long as it has the record. How long Redis has it depends on its
// configuration:
//
//   - Without an append-only file a restart loses every record since the last snapshot, or all records. A completed event
//     that is delivered again then runs again. Such a server filters most duplicates, and guarantees nothing.
//   - With appendonly yes and appendfsync everysec, the default, a crash of the process loses nothing, and a crash of the
//     machine loses up to two seconds. With appendfsync always it loses nothing that was acknowledged.
//   - Replication is asynchronous. After a failover, by Sentinel or in a cluster, the new master lacks what the old one had
//     acknowledged and not yet sent. A completed event may run again. An event that is running may be acquired by a second
//     owner, until the first owner's next renewal fails with [sqsonce.ErrLeaseLost]. min-replicas-to-write and
//     min-replicas-max-lag limit how long a disconnected master accepts writes; they do not exclude the loss.
//   - An eviction policy other than noeviction deletes records when memory is full. Every record has an expiry, so
//     volatile-lru, which some managed services set, deletes records first.
//
// A server whose memory is full (maxmemory) refuses new records, and no handler starts: the error matches [ErrMemory]. It
// takes the renewals, completes and releases of the records that it has, in all versions: an event whose handler has run
// does not run again because of it. A server that the operating system ends for want of memory has restarted, see above.
//
// The first acquire of a store, and [Store.Check], refuse a server that evicts, a replica, and a server without an
// append-only file ([Options.Volatile] accepts that one). Of a server that refuses INFO, or leaves out what they look for,
// as managed services do, the first acquire only warns.
//
// A lost record does not make its owner overwrite anything: the owner is refused, and the record is not created again. If a
// second effect is expensive, commit the record with the effect in one transaction: use the Inbox of package dynamostore
// or sqlstore. Or give the number of dedup.FenceFrom to the system that has the effect, and let it refuse smaller ones.
//
// # The record
//
// A record is a hash at [Options.Prefix] + the record's key. It has about 250 bytes, and up to 300 more for a failure's
// text:
//
//	status                 INPROGRESS or COMPLETED
//	owner                  the delivery attempt; stays after a release, so that late copies of its commands are refused
//	fence                  grows with every owner
//	until                  end of the lease, milliseconds of the server's clock; 0: released
//	receive_count          receive count at the last acquire
//	error                  the last failure, at most 256 bytes
//	data, validation       result and payload hash, where used
//
// The hash expires at the end of retention, and at least an hour after the lease's end. It does not expire with its lease:
// then it could neither show that its owner had crashed nor refuse that owner. With the default retention of 29 days, a
// thousand events per second are 2.5 billion records. Shorten dedup.Options.Retention to what your queues need, or use a
// store that keeps its records on disk.
//
// # Clocks
//
// Only the server's clock decides. For its owner a lease lasts from when the owner sent the request; for others it lasts
// from when the server received it. A server's clock that jumps forward by more than the rest of a lease ends it too
// early for others. A failover does the same if the two servers' clocks differ. Synchronise the servers' clocks, and let
// them adjust slowly.
//
// A server that stalls, or the network to it, executes requests later, also those that were given up. So an acquire says
// when it was sent, in the server's time as its last replies told it. The server refuses it if it is older than its caller's
// patience, and than two seconds, or seems to come from the future by more than 100 ms. Then it is sent again, with the
// right time: the first acquire of a store, and the first one after a failover to a server with another clock, are two
// requests, as are acquires that change between nodes of a cluster whose clocks differ by more.
//
// # Retries
//
// go-redis retries by itself. The store retries for two more seconds if the server cannot be reached, or says that it is
// loading, failing over or moving slots. A failover takes longer; the message then comes again after it. A call with an
// unknown outcome is an error, of an acquire [dedup.ErrOutcomeUnknown]: package dedup then releases what it may have
// acquired. A release that arrives before its acquire is repeated after 2.1 s, when the acquire is refused. What remains: if
// dedup.Options.CallTimeout is shorter, the process ends meanwhile, or the server's clock is set back during a stall, the
// acquire may be stored, and the key then waits for a lease that nobody uses; under dedup.OnCrashBlock and dedup.OnCrashDeadLetter it looks
// like a crash.
//
// A key whose value is not a record is [dedup.ErrRecord]. All other errors of the server and the network match
// [sqsonce.ErrUnavailable], and [sqsonce.ErrMisconfigured] where no retry helps.
//
// # Permissions
//
// The commands are EVALSHA, EVAL, TIME, HMGET, HSET, HDEL, EXISTS, DEL, PTTL and PEXPIREAT on the prefix's keys, INFO for
// the check, SCAN for [Store.List], and those that go-redis itself sends.
//
// # Versions
//
// Redis 5 or later, or Valkey. Older versions refuse a script that asks for the time and then writes. The tests run on
// Redis 7.0, and have run on Redis 5.0, 6.0, 6.2 and 8.0 and on Valkey 8.1 and 9.1.
package redisstore
