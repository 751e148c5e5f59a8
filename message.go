package sqsonce

import (
	"context"
	"time"
)

// Handler processes one message. Its error decides about the message, as the package documentation describes.
//
// ctx is cancelled with a cause ([context.Cause]) when the handler may no longer act for the message. The cause is
// [ErrLeaseLost] if another delivery may own the event, and [ErrShutdown] if the host must stop. Middleware is
// func(Handler) Handler, see [Chain].
//
// Handlers are called concurrently. Every function of this module that makes a Handler of another returns nil for a nil one,
// so that New of the hosts refuses it.
type Handler func(ctx context.Context, m *Message) error

// Chain returns the handler with the middleware around it. The first middleware is outermost: it gets a message first and the
// error last. Keep this order of the middleware that you use:
//
//  1. Control.Handler of package control, which postpones messages in a pause
//  2. middleware that changes messages: [OpenEnvelope], [S3], s3payload.Resolve
//  3. limit.Handler, whose rules may read the body
//  4. Once.Handler of package dedup, or an inbox
//  5. middleware for a single run, such as a timeout or a trace
func Chain(h Handler, middleware ...func(Handler) Handler) Handler {
	for i := len(middleware) - 1; i >= 0 && h != nil; i-- {
		if middleware[i] == nil {
			return nil
		}
		h = middleware[i](h)
	}
	return h
}

// Message is one delivery of an SQS message. Handlers must not change it, because middleware that runs after the
// handler still reads it.
type Message struct {
	// ID is the SQS message ID. It stays the same on every redelivery, and changes with a redrive from a dead-letter
	// queue.
	ID string
	// Body is the message body as SQS delivered it.
	Body string
	// Attributes are the message attributes, by name.
	Attributes map[string]Attribute

	// Group is the MessageGroupId: an ordered group on a FIFO queue, a tenant tag on a standard queue.
	Group string
	// Sequence is the FIFO SequenceNumber. It is empty on a standard queue.
	Sequence string
	// DedupID is the FIFO MessageDeduplicationId. On a FIFO dead-letter queue SQS replaces it with the message ID.
	DedupID string

	// ReceiveCount is SQS's ApproximateReceiveCount, which is 1 on the first delivery.
	ReceiveCount int
	// SentAt is when SQS accepted the message. FirstReceivedAt is when it was first received.
	SentAt, FirstReceivedAt time.Time

	// QueueARN is the ARN of the queue that delivered the message.
	QueueARN string
	// ReceiptHandle is the receipt handle of this delivery. Hosts may have a newer one, so use it only for logging and
	// tests.
	ReceiptHandle string
	// TraceHeader is the AWSTraceHeader system attribute.
	TraceHeader string

	// Envelope describes the envelope from which [OpenEnvelope] unwrapped the message.
	Envelope Envelope

	// KillAt is when the host will certainly end this process (Lambda, one invocation at a time). It is zero if that
	// time isn't known.
	KillAt time.Time
}

// Attribute is a message attribute. Type is "String", "Number" or "Binary", optionally with a custom suffix such as
// "Number.int". Binary holds the value of a Binary attribute, and String that of the others.
type Attribute struct {
	Type   string
	String string
	Binary []byte
}

// The message attributes that sqsonce writes and reads. Package ops describes the longer dead-letter-source of a restored
// message, and the format of redriven.
const (
	AttrEventID          = "event-id"           // the event's own ID, unique within its source
	AttrEventSource      = "event-source"       // the publisher's namespace
	AttrEventType        = "event-type"         // the type by which ByType chooses the handler
	AttrEventKey         = "event-key"          // a whole key, written verbatim when a message is moved between queues
	AttrRejectReason     = "reject-reason"      // why a message was sent to the dead-letter queue
	AttrDeadLetterSource = "dead-letter-source" // the ARN of the queue that a host moved the message from, if there was room: see package ops
	AttrRecordKey        = "record-key"         // in a host's copy: the key of the record, where a key function made the key, if there was room
	AttrRedriven         = "redriven"           // how often, by which run, and when first sent: see package ops
)

type messageContextKey struct{}

// newContext returns a context that carries m for [FromContext].
func newContext(ctx context.Context, m *Message) context.Context {
	return context.WithValue(ctx, messageContextKey{}, m)
}

// FromContext returns the message for which a handler made by [JSON] is called. [Message.Key] is the idempotency key for
// a service that the handler calls. Behind [OpenEnvelope] FromContext returns the unwrapped message, and [Original] the
// delivered one.
func FromContext(ctx context.Context) (*Message, bool) {
	m, ok := ctx.Value(messageContextKey{}).(*Message)
	return m, ok
}
