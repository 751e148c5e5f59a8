// Package outbox publishes events that were committed with a transaction.
//
// A producer that commits and dies before it publishes loses the event. One that publishes first and then can't commit invents
// it. With an outbox the event is a part of the transaction, and a [Relay] publishes it afterwards. Packages dynamooutbox and
// sqloutbox have the stores, and the calls that add events. docs/protocol-outbox.md is the specification.
//
// # Guarantees
//
// A committed event isn't lost. It stays in the outbox until SQS has confirmed it, for as long as that takes. The relay sends
// only committed events. On a FIFO queue SQS accepts the events of a group, each for the first time, in the order of their
// commits. That holds for any number of relays, even if they crash, freeze and come back. SQS drops a copy within five minutes.
// A later copy reaches the consumer, whose record knows it (package dedup).
//
// The order isn't guaranteed between groups, for an event that was skipped, against messages of other publishers to the same
// group, and on a standard queue.
//
// # Which call
//
//	Drain   in the process that has just committed, and for a DynamoDB stream: the groups that it names
//	Sweep   in a function, by a schedule: all groups
//	Run     in a process of its own, or in the producer: a sweep every second, and Ring in between
//
// Drain, Ring and streams are doorbells. They save time, and may be lost. A sweep is not optional. Use one doorbell, because
// with two of them two relays send the same events at the same moment.
//
// # Failures
//
// An event that SQS refuses for good, because of its own contents, halts its group until an operator decides with
// [Relay.Unpark] or [Relay.Discard]. With [Options].OnRefused the group skips the event instead. A refusal of the whole request
// (access, the queue, a key) doesn't park events. They wait, and their age grows. While every visit fails, Run pauses for up to
// 30 s between rounds.
//
// While a relay can't delete the events that SQS has confirmed, it stops sending events of their groups. While it owes Groups x
// Page deletes, it stops sending altogether. A relay whose deletes are refused for good stops, because it would publish the
// same events every five minutes.
//
// Set alarms on the age of the oldest event, the number of halted groups, and on how long a scheduled event has been due. They
// are in the line "outbox: swept" (oldest_seconds, halted, overdue_seconds) and in [Relay.Backlog].
//
// # Stopping
//
// Cancel the context. Drain and Sweep cancel their requests and return within 5 s. Run lets them end, and returns within 10 s.
// The events that were in flight may be published again.
package outbox
