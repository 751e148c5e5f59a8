// Package dedup skips events that a handler has completed, and runs each event in one process at a time.
//
// SQS delivers a message at least once, and a producer may send an event more than once. [Once] keeps one record per event in
// a [Store]. It acquires the record before the handler starts and renews the record lease while the handler runs. When the
// handler has returned, it completes or releases the record. A delivery of a completed event is acknowledged and does not run.
//
//	store, err := dynamostore.New(client, "dedup")
//	once, err := dedup.New(store, "billing")
//	handler := once.Handler(sqsonce.JSON(chargeCard))
//
// The handler is for either host, lambda or sqsworker. [Do] does the same for any function and replays its result. Stores are
// packages of their own: dynamostore, sqlstore and redisstore, and memstore for tests. The pages docs/concepts.md and
// docs/protocol.md describe outcomes, fencing, holding and the rules in detail.
//
// # Guarantees
//
//   - One start at a time: while one delivery owns a live lease on an event's record, the handler does not start for another
//     delivery of that event, in any process or host.
//   - Once done, never again, while the record is retained. This also holds if a process died between the complete and the
//     message's deletion. For events that carry their own ID it also holds after a redrive from the dead-letter queue, and
//     after the producer sent the event twice.
//   - A delivery that lost its lease can't change the record. Its handler's context is cancelled with cause
//     [sqsonce.ErrLeaseLost].
//
// # Limits
//
// A process can die after the handler's effect and before the complete. The event then runs again after the lease has expired.
// [Options.OnCrash] can block such events instead. An effect happens exactly once only if it commits in one transaction with
// the record. Use an inbox of a store for that (dynamostore.Inbox, sqlstore.Inbox).
//
// A process can be paused for longer than its lease (a stopped virtual machine, a frozen process) while another delivery runs
// the event. When it resumes, its handler's context is cancelled, but a request that the handler has already sent is not
// undone. If that matters, send the number of [FenceFrom] with the request, and let its target refuse smaller numbers.
//
// # Record lease
//
// The delivery that acquired a record is its owner. Another delivery can acquire the record after the owner has released it,
// or after its lease has expired. The second case is a takeover. It follows a crash, or a store that the owner could not
// reach. Time decides who may acquire a record. Ownership decides who may renew, complete or release it. The lease and SQS's
// visibility timeout are independent. [Options.LeaseDuration] describes the renewals and [Once.Handler] the end of a run.
//
// # Keys and duplicates
//
// A record's key is the consumer's name, '#' and the event's key of [sqsonce.Message.Key] or [Options.Key]. An event's key is
// hashed with SHA-256 if the record's key would be longer than 1,024 bytes. [Once.Stats] counts the sources of the keys. A key
// from the message ID does not survive a redrive by SQS or a second send, so the event runs again. A key from an event-id
// without an event-source does not survive a move to another queue.
//
// While a delivery runs, its peers in the same process wait for it without requests ([Options.PeerWait]). Deliveries of an
// event that this process completed in the last minute are acknowledged without a request ([Options.CacheSize]).
//
// # Hooks
//
// [Options.Hooks] are for telemetry. They show the decision about each delivery, each call of the store, and rare incidents.
// They don't change the result. Without them dedup keeps only the counts of [Once.Stats].
package dedup
