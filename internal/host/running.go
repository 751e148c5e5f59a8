package host

import "time"

// RunningHandler is a handler that runs. It holds the handler's context, so don't keep it.
type RunningHandler struct {
	MessageID    string
	Group        string // of the message. Messages of standard queues may have one too
	ReceiveCount int    // of the newest receive of the message
	Since        time.Time
	// Lease is for how long SQS hides the message at least, as far as that is proven. If it is 0 or less, another consumer may
	// have the message.
	Lease time.Duration
	Stuck bool // it did not return within StopGrace after its context was cancelled
	// Key returns the key of the event that deduplication uses, without the consumer. It is "" before deduplication has the key, and
	// without deduplication. The key may be personal.
	Key func() string
}

// OperatorPrefix begins the owner of a record that was reopened or kept. A delivery's owner has no '/'.
const OperatorPrefix = "operator/"
