// Package fifo publishes events to SQS so that a repeated send is recognised as one, by SQS and by the consumer.
//
// An [Event] names itself: its ID is made once, when the event happens, and kept. The MessageDeduplicationId is derived
// from it ([DedupID]) and the ID travels as a message attribute, so that a consumer's key is the same in every delivery,
// in the dead-letter queue and after a redrive. The package has no generator of IDs from time or chance.
//
// # Why not Date.now()
//
// A MessageDeduplicationId of the kind `${type}-${orderId}-${Date.now()}` is wrong in both directions:
//
//   - It is made per send. SQS accepts a message, the answer is lost, the caller sends again: another ID, two messages.
//     That was the only case deduplication is for. The SDK's own retries repeat the request and so hide it from tests.
//   - Two events of an order in one millisecond have one ID: SQS answers success to the second and drops it. A clock
//     that is set back repeats IDs, too.
//   - The consumer's key inherits the fault: both copies look new, and the handler runs twice.
//
// A random UUID made at the send is the same fault without the collisions. `${type}-${orderId}` is the opposite one: two
// updates of an order within five minutes become one. The ID has to name the occurrence: the order and its version, the
// ID of an outbox row, a UUID stored with the event before the first send.
//
// # What is promised
//
// While attempts fail and heal within the deduplication interval, an event is in the queue once and in its group's
// order. SQS remembers a MessageDeduplicationId for five minutes from the acceptance, and an answer that was lost leaves
// open whether it was accepted. So an event is sent again under the same ID until 285 s after its first attempt began;
// after that the outcome stays open, and the error says so: [ErrUnknownOutcome].
//
// At most one event of a group is in a request, and the next follows when it was answered. An event that fails takes the
// group's waiting ones with it ([ErrGroupHalted]): whoever publishes them again does it in their order.
//
// A process that ends takes its unanswered events with it. Where that must not happen, events come from a transactional
// outbox, and are published again until they are answered: as often as need be, since their IDs are the same.
//
// # Where to publish from
//
// [Publisher.Publish] waits for the answer; concurrent calls share requests of up to ten messages. [Publisher.Enqueue]
// does not wait. [Publisher.PublishAll] is for Lambda functions: it does not linger and leaves no goroutine behind that a
// freeze would stop halfway. [Publisher.Close] drains and names what it could not settle.
package fifo
