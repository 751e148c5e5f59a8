// Package ops shows the messages of a dead-letter queue with their cause, their reason and the record of their event. It sends
// messages back as the same events, archives messages in a file before it deletes them, and runs completed events again. The command
// sqsonce is made of it. docs/operating.md has the permissions that its operations need.
//
// # Looking
//
// SQS has no peek. [DLQ.List] receives messages, keeps them hidden while it reads, and makes them visible again. So it adds one
// to their receive counts, and other consumers of the queue don't see them for seconds. If the process is killed, the messages
// stay hidden for [Options].Hold. List changes neither messages nor records otherwise. On a FIFO queue SQS shows at most ten
// messages of a group until you delete those. [Listing].Behind counts the messages behind them, which List can't see.
//
// # Cause and state
//
// A [Cause] says how the message came to the queue. A state says whether the event ran, by its record, and so how to treat the
// message. See [DLQ.Redrive], and the table of states in docs/operating.md.
//
// This package finds the record by the event's key, as the consumer of the source queue computes it. SQS's own move to a FIFO
// queue replaces the MessageDeduplicationId, so a record with a key that is made of this ID (dedup.Options.TrustDedupID) can't be
// found. Message.Problem then says so.
package ops
