package ops

// Action is what a redrive did with a message.
type Action string

// The actions. A message that has one of the last four is in the dead-letter queue as it was.
const (
	Redriven       Action = "redriven"        // SQS has its copy, and it was deleted
	Undeleted      Action = "undeleted"       // SQS has its copy, and it is still in the dead-letter queue: Err says why
	UnknownOutcome Action = "unknown_outcome" // SQS may have its copy
	SendFailed     Action = "send_failed"     // SQS did not take its copy
	Left           Action = "left"            // it was not sent: Err says why
	Planned        Action = "planned"         // it would have been sent: RedriveOptions.DryRun
)

// Result is what a redrive did with one message.
type Result struct {
	ID, Group string // of the message in the dead-letter queue
	RecordKey string
	State     State // when it was decided about
	Class     Class
	// Destination is the URL of the queue that a copy goes to; "" where that is not known.
	Destination string
	Action      Action
	Err         error  // why it is not Redriven or Planned
	SentID      string // the message ID of its copy
	After       State  // Completed, Released or Crashed: what the copy's delivery came to, where that was watched
}

// Report is what a redrive did. It has one result for each message that it saw.
type Report struct {
	// Run is the run's ID, which is in the redriven attribute of what it sent.
	Run string
	// Total is how many messages the queue had at the start, by SQS's approximate count. No more are redriven. What is not in
	// Results was hidden: by another consumer, or in FIFO groups behind messages that were left.
	Total int
	// Results are in the order in which SQS returned the messages.
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
