package fifo

import "github.com/sqsonce/sqsonce"

// Event is one occurrence to be published.
type Event struct {
	// ID names the occurrence, not the thing it happened to: "ord-42/v3", the ID of an outbox row, a UUID stored with
	// the event. It is made before the first attempt to publish and is the same in every later one. Required; any
	// text that SQS takes.
	ID string
	// Group is the MessageGroupId: events of one group are delivered in the order they were published. Required; 1 to 128
	// printable ASCII characters without the space. It must depend on the event alone: an event sent again under another
	// group is another message on a queue that deduplicates by group.
	Group string
	// Body is the message body. Required; valid UTF-8 of the characters XML allows.
	Body string
	// Type is written as the event-type attribute. Default: none.
	Type string
	// TraceHeader is sent as the AWSTraceHeader system attribute, which does not count towards the message's size.
	// Default: none.
	TraceHeader string
	// Attributes are further message attributes: at most 7, since SQS takes ten and three are written here. Default: none.
	Attributes map[string]sqsonce.Attribute
}

// DedupID returns the MessageDeduplicationId of the event that namespace names id: [sqsonce.EventKey], which is also the
// key that consumers guard the event by. An empty id is [sqsonce.ErrNoEventID].
func DedupID(namespace, id string) (string, error) { return sqsonce.EventKey(namespace, id) }

// Receipt says how an event got into the queue.
type Receipt struct {
	// MessageID is the SQS message ID.
	MessageID string
	// Sequence is the FIFO SequenceNumber; empty on a standard queue.
	Sequence string
	// DedupID is the MessageDeduplicationId that was sent; empty on a standard queue.
	DedupID string
	// Attempts is how many requests it took. More than one may mean more than one message on a standard queue.
	Attempts int
}
