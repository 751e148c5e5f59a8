// Package fifo publishes events to SQS so that SQS and the consumer recognise an event that is sent again.
//
// An [Event] has an ID. The application makes the ID once, when the event happens, and stores it with the event. The
// publisher derives the MessageDeduplicationId from it ([DedupID]) and sends the ID as a message attribute, so that a
// consumer computes the same key for every delivery: in the queue, in the dead-letter queue and after a redrive. The
// package never makes an ID from the time or from random numbers.
//
// # Why not Date.now()
//
// A MessageDeduplicationId such as `${type}-${orderId}-${Date.now()}` fails in three ways:
//
//   - It is made for each send. SQS accepts a message, the response is lost, and the caller sends the message again: the
//     second send has another ID, and the queue has two messages. This is the case that deduplication exists for. Tests
//     do not show it, because the SDK's own retries repeat the request with the same ID.
//   - Two events of one order in one millisecond get the same ID: SQS answers the second send with success and drops the
//     message. A clock that is set back repeats IDs too.
//   - The consumer's key has the same fault: both copies look new, and the handler runs twice.
//
// A random UUID that is made for each send fails in the first and the third way. `${type}-${orderId}` fails in the
// opposite way: two updates of an order within five minutes become one message. The ID must name the occurrence: the order
// and its version, the ID of an outbox row, a UUID that is stored with the event before the first send.
//
// # Guarantees
//
// While an event can be sent within the deduplication interval, the queue contains it once and in the order of its group,
// however many attempts fail. SQS remembers a MessageDeduplicationId for five minutes after it accepts the message. A lost
// response does not tell whether SQS accepted the message, so the publisher sends the event again with the same ID, until
// 285 s after the start of the first attempt with an unknown outcome. After that the outcome stays unknown, and the error says
// so: [ErrUnknownOutcome]. A caller that publishes the event again before continues the same window.
//
// An attempt that certainly put nothing into the queue is repeated for as long as the caller waits: SQS throttles, fails in
// the service, or cannot be reached. Neither that nor a clock that is set ends the attempts; the context of Publish and
// PublishAll does, and for the events of Enqueue the one of Close. A line at WARN says once a minute that an event waits so.
// What a person must correct fails at once, with [ErrNotSent]: access denied, no such queue, a certificate that is not trusted.
// If there are no credentials, or SQS refuses them as expired or the signature for its time, attempts are repeated for 5 s: one
// failed fetch passes, and the SDK corrects its clock by SQS's.
//
// A standard queue recognises no copy. There an attempt with an unknown outcome is repeated twice at most, so that one event
// makes three messages at most.
//
// At most one event of a group is in flight; the next one is sent when SQS has answered. An event that fails also fails the
// accepted events behind it in its group, and those that come until the caller has read the results of all of them
// ([ErrGroupHalted], [Publisher.Resume]). The caller then publishes them again in their order.
//
// Every error says whether the event is certainly not in the queue: it matches [ErrNotSent] or [ErrUnknownOutcome]. A failure
// is logged once, also where nobody reads it, and given to Options.OnFailure.
//
// A process that ends loses its accepted events that SQS has not confirmed. Where that must not happen, use a transactional
// outbox: publish each event again until it succeeds. Its ID stays the same, so it can be published any number of times.
//
// # Hooks
//
// [Options.Hooks] are for telemetry: each event from its acceptance to its result, and each request. A hook may give an event trace
// context for its consumer ([Carry]), and changes nothing else. [Publisher.Stats] has counters, and what is pending.
//
// # IAM
//
// sqs:SendMessage on the queue. Without sqs:GetQueueAttributes the largest message of the queue is taken for 1 MiB: see [Client].
// With a customer-managed KMS key of the queue also kms:GenerateDataKey and kms:Decrypt for it.
//
// # Which method to use
//
// [Publisher.Publish] waits for the result; concurrent calls share requests of up to ten messages. [Publisher.Enqueue]
// does not wait: read its results with [PublishResult.Get], or those that failed with [Publisher.Flush]. [Publisher.PublishAll] is
// for Lambda functions: it does not linger, and no goroutine of the call runs after it, so a freeze of the process cannot
// interrupt a send. [Publisher.OpenLane] does the same for a program that publishes for longer than one call, such as the relay of
// an outbox. [Publisher.Forward] sends a received message as it is. [Publisher.Close] sends all accepted events and
// returns an error for each that it could not send.
package fifo
