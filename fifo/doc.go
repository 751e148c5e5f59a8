// Package fifo is the publisher of events, for FIFO and standard queues of SQS. SQS and the consumer recognise an event that it
// sends again.
//
// An [Event] has an ID. Your application makes the ID once, when the event happens, and stores it with the event. The publisher
// derives the MessageDeduplicationId from it ([DedupID]) and sends the ID as a message attribute, so that a consumer computes
// the same key for every delivery: in the queue, in the dead-letter queue and after a redrive. The package never makes an ID
// from the time or from random numbers.
//
// # Why not Date.now()
//
// A MessageDeduplicationId such as `${type}-${orderId}-${Date.now()}` fails in three ways:
//
//   - It is made for each send. If SQS accepts a message and the response is lost, the second send has another ID, and the
//     queue has two messages. Deduplication exists for this case. Tests don't show it, because the SDK's own retries repeat the
//     request with the same ID.
//   - Two events of one order in one millisecond get the same ID. SQS answers the second send with success and drops the
//     message. A clock that is set back repeats IDs too.
//   - The consumer's key has the same fault. Both copies look new, and the handler runs twice.
//
// A random UUID that is made for each send fails in the first and the third way. `${type}-${orderId}` fails in the opposite
// way, because two updates of an order within five minutes become one message. The ID must name the occurrence: the order and
// its version, the ID of an outbox row, a UUID that is stored with the event before the first send.
//
// # Guarantees
//
// The queue contains an event once, and in the order of its group, however many attempts fail within the deduplication
// interval. SQS remembers a MessageDeduplicationId for five minutes after it accepts the message. A lost response doesn't say
// whether SQS accepted the message. So the publisher sends the event again with the same ID, until 285 s after the start of the
// first attempt with an unknown outcome. After that the outcome stays unknown, with the error [ErrUnknownOutcome]. If you
// publish the event again before, you continue the same window.
//
// If an attempt certainly left the queue unchanged, the publisher repeats it for as long as the caller waits. Examples are
// throttling, a missing connection, and an entry that SQS failed at by its own fault. An attempt with HTTP 5xx, or whose
// response is lost, has an unknown outcome instead. Only the context of Publish and PublishAll ends the attempts, or of Close
// for the events of Enqueue. A line at WARN says once a minute that an event waits so. A failure that a person must correct,
// such as denied access, fails the event at once with [ErrNotSent]. See docs/publisher.md for outages and permissions.
//
// A standard queue doesn't recognise copies. There the publisher repeats an attempt with an unknown outcome at most twice, so
// that one event makes three messages at most.
//
// At most one event of a group is in flight. The next one is sent when SQS has answered. An event that fails also fails the
// accepted events behind it in its group ([ErrGroupHalted]). New ones fail too, until you have read the results of all of them
// or called [Publisher.Resume]. Then publish them again in their order.
//
// Every error says whether the event is certainly not in the queue, because it matches [ErrNotSent] or [ErrUnknownOutcome]. The
// publisher logs a failure once, even if you don't read it, and gives it to Options.OnFailure.
// A process that ends loses its accepted events that SQS has not confirmed. If that must not happen, use a transactional
// outbox, which publishes each event again until it succeeds. Its ID stays the same, so you can publish it any number of times.
//
// [Options.Hooks] are for telemetry: each event from its acceptance to its result, and each request. A hook may give an event
// trace context for its consumer ([Carry]), and can't change anything else. [Publisher.Stats] has counters and the pending
// events.
//
// # Which method to use
//
// [Publisher.Publish] waits for the result. Concurrent calls share requests of up to ten messages. [Publisher.Enqueue] doesn't
// wait. Read its results with [PublishResult.Get], or the failed ones with [Publisher.Flush]. [Publisher.PublishAll] is for
// Lambda functions. It doesn't linger, and its goroutines end with the call, so a freeze of the process can't interrupt a send.
// [Publisher.Close] sends all accepted events and returns an error for
// each that it could not send.
package fifo
