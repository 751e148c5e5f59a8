package ops

import "github.com/sqsonce/sqsonce/dedup"

// Action is what became of a message.
type Action string

// The actions. A message that a redrive has given one of the last four is in the dead-letter queue as it was.
const (
	ActionExported       Action = "exported"        // its line is in the archive, and it is in the dead-letter queue as it was
	ActionDeleted        Action = "deleted"         // its line is in the archive, and it was deleted
	ActionRestored       Action = "restored"        // the dead-letter queue has a copy of it again
	ActionRedriven       Action = "redriven"        // SQS has its copy, and it was deleted
	ActionReplayed       Action = "replayed"        // SQS has its copy, and it is not in the dead-letter queue: DLQ.Replay
	ActionUndeleted      Action = "undeleted"       // SQS has its copy, or the archive its line, and it is still in the dead-letter queue: Err says why
	ActionUnknownOutcome Action = "unknown_outcome" // SQS may have its copy
	ActionSendFailed     Action = "send_failed"     // SQS did not take its copy
	ActionLeft           Action = "left"            // it was not sent, and not archived: Err says why
	ActionPlanned        Action = "planned"         // it would have been sent, or archived: DryRun
)

// Result is what became of one message.
type Result struct {
	ID, Group string // of the message in the dead-letter queue, or in the archive
	RecordKey string
	State     dedup.RecordState // when it was decided about
	Class     Class
	// Destination is the URL of the queue that a copy goes to; "" where that is not known.
	Destination string
	Action      Action
	Err         error             // why it is none of Redriven, Replayed, Exported, Deleted, Restored and Planned
	SentID      string            // the message ID of its copy
	After       dedup.RecordState // Completed, Released or Crashed: what the copy's delivery came to, where that was watched
}

// Report is what a redrive, an export, a delete or a restore did. It has one result for each message that it saw.
type Report struct {
	// Run is the run's ID, which is in the redriven attribute of what a redrive sent, and in the lines of an archive.
	Run string
	// Total is how many messages the queue had at the start, by SQS's approximate count. No more are redriven, or archived. What is
	// not in Results was hidden: by another consumer, or in FIFO groups behind messages that were left. Of a restore it is how many
	// messages were read.
	Total int
	// Behind is how many messages of a FIFO queue an export or a delete has not seen: SQS did not show them, behind what it left.
	Behind int
	// Torn is the number of the archive's last line, where that was not written to its end. An export or a delete has removed it, a
	// restore does not use it: its message was not deleted for it. 0: there was none.
	Torn int
	// Results are in the order in which SQS returned the messages, or in that of the archive.
	Results []*Result
}

// Count returns how many messages had one of these actions.
func (r *Report) Count(actions ...Action) (n int) {
	for _, result := range r.Results {
		for _, a := range actions {
			if result.Action == a {
				n++
			}
		}
	}
	return n
}
