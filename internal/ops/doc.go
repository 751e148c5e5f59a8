// Package ops shows the messages of a dead-letter queue with their cause, their reason and the record of their event. It sends
// messages back as the same events, and archives messages in a file before it deletes them.
//
//	once, err := dedup.New(store, "billing")
//	dlq, err := ops.Open(ctx, client, dlqURL, func(o *ops.Options) { o.Key, o.Store = once.Key, store })
//	listing, err := dlq.List(ctx)
//	report, err := dlq.Redrive(ctx, func(o *ops.RedriveOptions) { o.Classes = []string{listing.Messages[0].Class.ID} })
//
// # Looking
//
// SQS has no peek. [DLQ.List] receives messages, keeps them hidden while it reads, and makes them visible again. So it adds one
// to their receive counts, and other consumers of the queue don't see them for seconds. If the process is killed, the messages
// stay hidden for [Options].Hold. List changes neither messages nor records otherwise. On a FIFO queue SQS shows at most ten
// messages of a group, often fewer, until you delete those. [Listing].Behind counts the messages behind them, which List can't
// see.
//
// # Cause and state
//
// A [Cause] says how the message came to the queue. A state says whether the event ran, by its record, and so how to treat the
// message. See [DLQ.Redrive], and the table of states in docs/operating.md.
//
// This package finds the record by the event's key, as the consumer of the source queue computes it. SQS's own move to a FIFO
// queue replaces the MessageDeduplicationId, so a record with a key that is made of this ID (dedup.Options.TrustDedupID) can't be
// found. Message.Problem then says so.
//
// # Redriving
//
// [DLQ.Redrive] decides about each message by the state of its event, just before it sends the message. It leaves events that are
// done, or may be done. A copy has the event's key, and Redrive deletes the message from the dead-letter queue once SQS has
// acknowledged the copy. A redriven message comes behind newer messages in the source queue, so their order is lost. Redrive
// stops in a FIFO group if SQS shows only messages that it leaves. AWS's own redrive (StartMessageMoveTask) doesn't have any of
// these checks.
//
// # Archives
//
// [DLQ.Export] writes complete messages to a file. [DLQ.Delete] also deletes each message once its line is on the disk. You can
// read deleted messages with [ReadArchive], and send them to the dead-letter queue again with [DLQ.Restore], as the same event of
// the same age. Delete needs a filter, or All. The file has the messages' bodies, so its mode is 0600.
//
// # Replaying
//
// Only [DLQ.Replay] runs a completed event again. You name the event by a message of the dead-letter queue or of an archive, and
// the run to repeat. Records don't have bodies, so Replay needs the message in one of the two.
//
// # Permissions
//
// Each operation needs these permissions on the dead-letter queue, unless the list says otherwise:
//
//   - [Open]: sqs:GetQueueAttributes, ListDeadLetterSourceQueues and ListMessageMoveTasks.
//   - List: sqs:GetQueueAttributes, ReceiveMessage and ChangeMessageVisibility, and the store's Inspect needs dynamodb:GetItem.
//   - Redrive: those of Open and List, sqs:DeleteMessage, and sqs:SendMessage and GetQueueAttributes on the queues that messages
//     go back to.
//   - Export: those of Open and List. Delete: also sqs:DeleteMessage.
//   - Restore: those of Open, and sqs:SendMessage.
//   - Replay: those of Redrive, and the store's Reopen needs dynamodb:UpdateItem.
//
// Encrypted queues also need kms:Decrypt, and kms:GenerateDataKey if you send to them. An error names the action that AWS
// refused.
package ops
