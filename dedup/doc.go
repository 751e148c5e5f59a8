// Package dedup runs a handler once per event.
//
// [Once] guards a [sqsonce.Handler] with a record in a [Store]: the record is acquired before the handler starts, held
// while it runs, and completed or released after it. [Do] gives any function the same guard and replays its result.
// Stores are in packages of their own; memstore is for tests.
//
//	store, err := dynamostore.New(client, "dedup")
//	once, err := dedup.New(store, "billing")
//	handler := once.Handler(sqsonce.JSON(chargeCard))
//
// # What is guaranteed
//
//   - One at a time: while one delivery holds a live lease on an event's record, no other starts the handler for it, in
//     any process or host.
//   - Once done, never again, for as long as the record is retained: also after the process died between the record and
//     the message's deletion, and, for events that carry their own ID, after a redrive from the dead-letter queue and
//     after the producer sent the event twice.
//   - A holder that lost its lease learns it, by its context's cause [sqsonce.ErrLeaseLost], and can change nothing of
//     the record any more.
//
// # What is not
//
// A process that dies between the handler's effect and its record leaves a record that looks unfinished, and the event
// runs again when the lease is over. Only an effect that commits together with the record is there exactly once: see the
// inboxes of the stores, which build on [Once.Guard]. [Options.OnCrash] can hold such events back instead.
//
// A handler that was paused (a stopped virtual machine, a frozen process) for longer than its lease may wake up beside
// its successor. Its context is cancelled then, but an effect that is already on its way cannot be called back. Where
// that matters, give the effect the number of [FenceFrom] and let its target refuse older ones.
//
// # Leases
//
// Time decides who may acquire a record; ownership decides who may renew, complete or release it. A lease of
// [Options.Lease] is renewed at a third of it until the handler has returned, also after its context was cancelled: what
// still runs must keep others away. Where the host knows when it will end the process ([sqsonce.Message.KillAt], on
// Lambda) the lease lasts until 2 s after that, and nothing is renewed.
//
// A crash delays an event by at most the lease, so a long one costs patience and a short one costs writes: one per
// renewal. Visibility timeout and lease are independent of each other.
//
// # Outcomes
//
// A nil error completes the record, and is recorded also when the host has stopped or has lost the message meanwhile. It
// is tried until the lease ends and never taken back: [Options.OnCompleteFailed] decides what becomes of the message
// where it did not succeed. Any other outcome releases the record with the error's text, and the event is free for its
// next delivery. A [sqsonce.Reject] does so when the host has the dead-letter queue's confirmation
// ([sqsonce.OnSettled]), and is never completed, so that a redrive runs the event again.
//
// # Keys
//
// A record's key is the consumer's name, '#' and the event's key; see [sqsonce.Message.Key] for where that comes
// from. [Once.Stats] counts the rungs: a count under message-id is of events that a redrive or a producer's second send
// would run again. Over 1,024 bytes the event's key is hashed with SHA-256.
//
// # Memory
//
// A second delivery of an event that this process is handling is answered without a request. It waits for the first one's
// outcome ([Options.Wait]; a sqsworker holds the message meanwhile, without a slot): after a success it is acknowledged,
// after a failure it takes its turn, and while the handler goes on it is told when the lease ends. A delivery of an event
// that this process saw completed less than a minute ago is acknowledged without a request too ([Options.CacheSize]). An
// operator who deletes a record to let its event run again therefore waits that minute.
package dedup
