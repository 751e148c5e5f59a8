// Package dedup runs a handler once per event.
//
// SQS delivers a message at least once, and a producer may send an event more than once. [Once] keeps one record per
// event in a [Store]. It acquires the record before the handler starts, renews the record lease while the handler runs,
// and completes or releases the record when the handler has returned. A delivery of a completed event is acknowledged
// and does not run.
//
//	store, err := dynamostore.New(client, "dedup")
//	once, err := dedup.New(store, "billing")
//	handler := once.Handler(sqsonce.JSON(chargeCard))
//
// The handler is for either host, lambda or sqsworker. [Do] does the same for any function and replays its result.
// Stores are packages of their own: dynamostore, sqlstore and redisstore, and memstore for tests.
//
// # Guarantees
//
//   - One at a time: while one delivery owns a live lease on an event's record, no other delivery starts the handler for
//     that event, in any process or host.
//   - Once done, never again, while the record is retained. This holds after a process died between the complete and the
//     message's deletion. For events that carry their own ID it also holds after a redrive from the dead-letter queue,
//     and after the producer sent the event twice.
//   - A delivery that lost its lease can no longer change the record. Its handler's context is cancelled with cause
//     [sqsonce.ErrLeaseLost].
//
// # Limits
//
// A process can die after the handler's effect and before the complete. The event then runs again when the lease is
// over. [Options.OnCrash] can block such events instead. An effect happens exactly once only if it commits in one
// transaction with the record: use an inbox of a store (dynamostore.Inbox, sqlstore.Inbox).
//
// A process can be paused for longer than its lease (a stopped virtual machine, a frozen process). When it resumes,
// another delivery may run the same event. The handler's context is then cancelled, but a request that the handler has
// already sent is not undone. Where that matters, send the number of [FenceFrom] with the request, and let its target
// refuse smaller numbers.
//
// # Record lease
//
// The delivery that acquired a record is its owner. Another delivery can acquire the record when the owner has released
// it, or when its lease is over: a takeover. A takeover follows a crash, or a store that the owner could not reach. Time
// decides who may acquire a record. Ownership decides who may renew, complete or release it.
//
// A record lease lasts [Options.LeaseDuration] and is renewed at a third of that until the handler has returned. Renewal goes on
// after the handler's context was cancelled: the handler still runs, so no other delivery may start. Where the host
// knows when it will end the process ([sqsonce.Message.KillAt], on Lambda) the lease lasts until 2 s after that, and is
// not renewed.
//
// So after a crash an event waits until the lease is over. A shorter lease means a shorter wait and more renewals; each
// renewal is one write. The lease and SQS's visibility timeout are independent.
//
// # Outcomes
//
// When the handler returns nil, the record is completed, also where the host has stopped or has lost the message
// meanwhile. The complete is retried while the host has the message, also after the lease's end, and the record is never released.
// After that the process goes on to complete it for up to 12 h, and a copy of the event that comes here does so first.
// [Options.OnCompleteFailed] decides about the message if no complete succeeded. A [sqsonce.Skip] is completed in the same way.
//
// When the handler fails, the record is released with the error's text, and the next delivery runs the event. After a
// [sqsonce.Reject] the record is released when the host has settled the message ([sqsonce.OnSettled]). A rejected event
// is never completed, so that a redrive runs it again.
//
// # Keys
//
// A record's key is the consumer's name, '#' and the event's key of [sqsonce.Message.Key] or [Options.Key]. An event's
// key is hashed with SHA-256 where the record's key would be longer than 1,024 bytes. [Once.Stats] counts where the keys
// came from. A key that comes from the message ID does not survive a redrive by SQS or a second send: the event runs again.
// One that comes from an event-id without an event-source does not survive a move to another queue.
//
// # Duplicates in one process
//
// Several deliveries of one event often reach one process together. While one of them runs, its peers make no request:
// they wait for it, for at most [Options.PeerWait]. If it succeeds, they are acknowledged. If it fails, the next one runs. If
// it still runs, they are refused as in progress. A sqsworker waits for its handler instead: it holds the message, which
// then occupies no slot, for as long as the peer runs.
//
// A delivery of an event that this process completed in the last minute is acknowledged without a request
// ([Options.CacheSize]). An operator who reopens a record ([Reopener]) and sends its event again therefore waits 65 s in between.
//
// # Hooks
//
// [Options.Hooks] are for telemetry: what is decided about each delivery, each call of the store, and what should be rare. They
// change nothing, and without them nothing is measured. [Once.Stats] has the counts alone.
//
// # Inboxes
//
// [Once.Guard], [Once.CountHandler], [LeaseFrom] and [StopRenewal] are for authors of an inbox. Handlers need none of them.
package dedup
