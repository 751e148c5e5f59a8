package sqsonce

import (
	"context"
	"slices"
	"time"
)

// Handler processes one message. Its error decides what becomes of the message: see the package documentation.
//
// ctx is cancelled with a cause ([context.Cause]) when the handler may no longer act for the message: [ErrLeaseLost]
// when another delivery may own the event, [ErrShutdown] when the host must stop. Middleware is func(Handler) Handler.
//
// Handlers are called concurrently.
type Handler func(ctx context.Context, m *Message) error

// Chain returns the handler with the middleware around it. The first middleware is outermost: it gets a message first and the error
// last. From outside to inside: what changes messages, such as [OpenEnvelope]; dedup; what is about one run, such as a timeout or a trace.
func Chain(h Handler, middleware ...func(Handler) Handler) Handler {
	for _, m := range slices.Backward(middleware) {
		h = m(h)
	}
	return h
}

// Message is one delivery of an SQS message. Handlers must not change it: middleware that runs after the handler still
// reads it.
type Message struct {
	// ID is the SQS message ID: the same on every redelivery, a new one after a redrive from a dead-letter queue.
	ID string
	// Body is the message body as SQS delivered it.
	Body string
	// Attributes are the message attributes, by name.
	Attributes map[string]Attribute

	// Group is the MessageGroupId: an ordered group on a FIFO queue, a tenant tag on a standard queue.
	Group string
	// Sequence is the FIFO SequenceNumber; empty on a standard queue.
	Sequence string
	// DedupID is the FIFO MessageDeduplicationId; on a FIFO dead-letter queue SQS replaces it with the message ID.
	DedupID string

	// ReceiveCount is SQS's ApproximateReceiveCount: 1 on the first delivery.
	ReceiveCount int
	// SentAt is when SQS accepted the message; FirstReceivedAt is when it was first received.
	SentAt, FirstReceivedAt time.Time

	// QueueARN names the queue the message was received from.
	QueueARN string
	// ReceiptHandle is the handle of this delivery. Hosts may hold a newer one; it is here for logging and tests.
	ReceiptHandle string
	// TraceHeader is the AWSTraceHeader system attribute.
	TraceHeader string

	// Envelope says what [OpenEnvelope] took the message out of.
	Envelope Envelope

	// KillAt is when the host will certainly end this process (Lambda, one invocation at a time). Zero: not known.
	KillAt time.Time
}

// Attribute is a message attribute. Type is "String", "Number" or "Binary", optionally with a custom suffix such as
// "Number.int"; Binary holds the value of the last, String that of the others.
type Attribute struct {
	Type   string
	String string
	Binary []byte
}

// The message attributes that sqsonce writes and reads.
const (
	AttrEventID          = "event-id"           // the event's own ID, unique within its source
	AttrEventSource      = "event-source"       // the publisher's namespace
	AttrEventType        = "event-type"         // what ByType routes on
	AttrEventKey         = "event-key"          // a whole key, written verbatim when a message is moved between queues
	AttrRejectReason     = "reject-reason"      // why a message was sent to the dead-letter queue
	AttrDeadLetterSource = "dead-letter-source" // the ARN of the queue from which a host sent it there, where there was room; of a restored message more: see package ops
	AttrRedriven         = "redriven"           // how often the message was redriven, by which run, and when it was first sent: see package ops
)

type messageContextKey struct{}

// newContext returns a context that carries m for [FromContext].
func newContext(ctx context.Context, m *Message) context.Context {
	return context.WithValue(ctx, messageContextKey{}, m)
}

// FromContext returns the message that a handler made by [JSON] is called for. Behind [OpenEnvelope] that is the message in the
// envelope; see [Original].
func FromContext(ctx context.Context) (*Message, bool) {
	m, ok := ctx.Value(messageContextKey{}).(*Message)
	return m, ok
}
