package host

import "time"

// DefaultRetention is that of dedup.Options, and of all that deals with its records.
const DefaultRetention = 29 * 24 * time.Hour

// returnMargin is the longest visibility timeout: a message can be in flight for so long when its retention ends.
const returnMargin = 12 * time.Hour

// LongestReturn is how long after its first delivery a message can come back from a queue of that retention, once through a
// dead-letter queue and a redrive; a record of its event that is deleted earlier does not stop it. 0: retention is not
// known.
//
// A message that SQS moves from a standard queue keeps the time when it was sent, so that the longer retention of the two
// counts. On FIFO the move starts the retention anew, as the redrive does on both. dead is 0 where it is not known: the
// result is then the least that it can be.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
func LongestReturn(fifo bool, retention time.Duration, hasDLQ bool, dead time.Duration) time.Duration {
	switch {
	case retention <= 0:
		return 0
	case !hasDLQ:
		return retention + returnMargin
	case fifo:
		return retention + dead + retention + returnMargin
	}
	return max(retention, dead) + retention + returnMargin
}
