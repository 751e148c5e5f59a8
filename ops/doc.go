// Package ops shows what lies in a dead-letter queue, and why: each message with its cause, its reason and the record of its
// event. It sends messages back as the same events, and keeps in a file what is deleted.
//
//	once, err := dedup.New(store, "billing")
//	dlq, err := ops.Open(ctx, client, dlqURL, func(o *ops.Options) { o.Key, o.Store = once.Key, store })
//	listing, err := dlq.List(ctx)
//	report, err := dlq.Redrive(ctx, func(o *ops.RedriveOptions) { o.Classes = []string{listing.Messages[0].Class.ID} })
//
// # Looking
//
// SQS has no peek: [DLQ.List] receives messages, keeps them hidden while it reads, and gives them back. So it adds one to their
// receive counts, and other consumers of the queue do not see them for seconds; for [Options].Hold where the process is
// killed. Nothing else is changed, neither messages nor records. On a FIFO queue SQS shows at most ten messages of a group, often
// less, until those are deleted: what lies behind them is counted in [Listing].Behind, and cannot be seen.
//
// # Cause and state
//
// A [Cause] says how the message came to the queue, a state what its event's record says: whether the event ran, and so what to do
// with the message. See [DLQ.Redrive], and the table of states in docs/operating.md.
//
// The record is found by the event's key, as the consumer of the source queue computes it. SQS's own move to a FIFO queue
// replaces the MessageDeduplicationId, so a key made of that (dedup.Options.TrustDedupID) cannot be found: that is its Message.Problem.
//
// # Redriving
//
// [DLQ.Redrive] decides about each message by the state of its event, just before it sends it: what is done, or may be, is left.
// A copy has the event's key, and is deleted from the dead-letter queue once SQS has acknowledged it. It cannot keep the order
// against what is newer in the source queue: a redriven message comes behind that. A FIFO group of which SQS shows only messages
// that are left goes no further. AWS's own redrive (StartMessageMoveTask) does none of this.
//
// # Archives
//
// [DLQ.Export] writes messages to a file, whole; [DLQ.Delete] also deletes each once its line is on the disk. So what was deleted can be read ([ReadArchive]) and sent to the dead-letter queue again ([DLQ.Restore]), as the same event of
// the same age. Nothing is deleted without a filter, or All. The file has the messages' bodies: its mode is 0600.
//
// # Replaying
//
// [DLQ.Replay] runs a completed event again, which nothing else does: one that is named, by a message of the dead-letter queue or
// of an archive, and by the run that is to be repeated. Records have no bodies: an event that is in neither cannot be replayed.
//
// # Permissions
//
// [Open] needs sqs:GetQueueAttributes, ListDeadLetterSourceQueues and ListMessageMoveTasks, List sqs:GetQueueAttributes,
// ReceiveMessage and ChangeMessageVisibility, all of them on the dead-letter queue, and what the store's Inspect needs:
// dynamodb:GetItem. Redrive needs what both need, sqs:DeleteMessage on the dead-letter queue, and sqs:SendMessage and
// GetQueueAttributes on the queues that messages go back to. Export needs what both need, Delete also sqs:DeleteMessage. Restore needs what Open needs, and sqs:SendMessage, all on the dead-letter queue. Replay needs what Redrive does,
// and what the store's Reopen needs: dynamodb:UpdateItem. On an encrypted queue also kms:Decrypt, and kms:GenerateDataKey of
// those. An error names the action that was refused.
package ops
