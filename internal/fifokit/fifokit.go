// Package fifokit is for programs of ours that change events, or messages, before a publisher sends them, and for relays. The
// functions are fifo's, see its kit.go.
package fifokit

import (
	"context"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/hook"
)

var (
	// Forward sends a received message as it is, with a MessageDeduplicationId of the caller's.
	Forward = hook.Take[func(*fifo.Publisher, context.Context, *sqsonce.Message, string) (fifo.Receipt, error)]("fifo.forward")
	// Check returns the event's key, and the bytes of its message as SQS counts them.
	Check = hook.Take[func(*fifo.Publisher, fifo.Event) (key string, size int64, err error)]("fifo.check")
	// Fits reports whether the queue accepts a message of so many bytes.
	Fits = hook.Take[func(*fifo.Publisher, context.Context, int64) bool]("fifo.fits")
	// Refuse returns the error of an event that the caller refuses to publish.
	Refuse = hook.Take[func(*fifo.Publisher, context.Context, fifo.Event, error) error]("fifo.refuse")
	// PublishAll is the Publisher's, without the events for which refused has an error.
	PublishAll = hook.Take[func(p *fifo.Publisher, ctx context.Context, es []fifo.Event, refused []error) ([]fifo.Receipt, error)]("fifo.publishAll")
	// Namespace is that of the events' keys.
	Namespace = hook.Take[func(*fifo.Publisher) string]("fifo.namespace")
	// IsFIFO reports whether the queue is a FIFO queue.
	IsFIFO = hook.Take[func(*fifo.Publisher) bool]("fifo.isFIFO")

	openLane = hook.Take[func(*fifo.Publisher, context.Context) (enqueue, func())]("fifo.openLane")
)

type enqueue = func(context.Context, fifo.Event) (*fifo.PublishResult, error)

// Lane is one user's share of a publisher.
type Lane enqueue

// Enqueue accepts one event and returns at once. It is safe for concurrent use.
func (l Lane) Enqueue(ctx context.Context, e fifo.Event) (*fifo.PublishResult, error) {
	return l(ctx, e)
}

// OpenLane opens a lane of the publisher, which ends with ctx.
func OpenLane(p *fifo.Publisher, ctx context.Context) (l Lane, closeLane func()) {
	return openLane(p, ctx)
}
