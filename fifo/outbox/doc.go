// Package outbox publishes events that were committed with a transaction.
//
// A producer that commits and dies before it publishes loses the event; one that publishes first and then cannot commit invents it.
// With an outbox the event is a part of the transaction, and a [Relay] publishes it afterwards. Packages dynamooutbox and sqloutbox
// have the stores, and how events get into them. docs/protocol-outbox.md is the specification.
//
// # Guarantees
//
// No committed event is lost: it is in the outbox until SQS has confirmed it, for as long as that takes. Nothing else is sent. On
// a FIFO queue the events of a group are accepted, each for the first time, in the order of their commits, whatever relays do: any
// number of them, crashing, frozen and coming back. A copy is dropped by SQS within five minutes; a later one reaches the
// consumer, whose record knows it (package dedup). Not promised: order between groups, of an event that was skipped, against
// messages of other publishers to the same group, and on a standard queue.
//
// # Which call
//
//	Drain   in the process that has just committed, and for a DynamoDB stream: the groups that it names
//	Sweep   in a function, by a schedule: all groups
//	Run     in a process of its own, or beside the producer: a sweep every second, and Ring in between
//
// Drain, Ring and streams are doorbells: they save time, and may be lost. A sweep is not optional. One doorbell is enough: two of
// them make two relays send the same events at the same moment.
//
// # Failures
//
// An event that SQS refuses for good, because of its own contents, halts its group (or is skipped: [Options].OnRefused) until an
// operator decides with [Relay.Unpark] or [Relay.Discard]. A refusal of the whole request (access, the queue, a key) parks
// nothing: the events wait, and their age grows. While nothing succeeds Run pauses for up to 30 s between rounds.
//
// While a relay cannot delete what SQS has confirmed it sends nothing more of those groups, and while it owes Groups x Page deletes
// nothing at all. A relay whose deletes are refused for good stops: it would publish the same events every five minutes.
//
// What to alarm on: the age of the oldest event and the number of halted groups, which are in the line "outbox: swept"
// (oldest_seconds, halted) and in [Relay.Backlog].
//
// # Stopping
//
// Cancel the context. Drain and Sweep cancel their requests and return within 5 s; Run lets them end, and returns within 10 s. What was
// in flight may be published again.
package outbox
