package fifo

import (
	"cmp"
	"context"
	"errors"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

// Forward sends a received message as it is, and waits for its result as Publish does. Body, attributes, group and trace header
// are those of m. Nothing is added, also no [Carry] of the hooks, and nothing is left out. It is for programs that send messages
// back to the queue that they came from. m is the message as SQS delivered it, not what [sqsonce.OpenEnvelope] took out of it: see
// [sqsonce.Original].
//
// dedupID is the MessageDeduplicationId on a FIFO queue. A standard queue gets none; there dedupID only tells the publisher which
// messages are the same. Required; 1 to 128 printable ASCII characters, no space. It must be the same each time that this message
// is sent again, and another one than the message's own: within five minutes of that, SQS answers success and drops the message.
//
// For the publisher the message is an event whose ID is dedupID: it shares requests and groups with events, has the same window,
// halts those behind it when it fails, and two calls with one dedupID are two of one event ([ErrDedupConflict]). Hooks,
// Options.OnFailure, Stats, log lines and [PublishError] see that event, whose Attributes are all of the message's. What has failed
// must be forwarded again, not published: that would give it another identity.
//
// The error is a [*PublishError]. For a message that SQS would refuse it wraps one [*sqsonce.OptionError] per bad field, of dedupID
// or Message, and nothing was sent: more than ten attributes, more bytes than the queue accepts (where its limit is known, see
// Fits), no group for a FIFO queue.
//
// A message whose event key is made of its ID has another key in the next queue: give it an event-key attribute first.
func (p *Publisher) Forward(ctx context.Context, m *sqsonce.Message, dedupID string) (Receipt, error) {
	return p.publish(ctx, &entry{forward: true, event: Event{
		ID: dedupID, Group: m.Group, Body: m.Body, TraceHeader: m.TraceHeader, Attributes: m.Attributes,
	}})
}

// validateForwarded is validate for a forwarded message.
func (e *Event) validateForwarded(fifo bool) error {
	errs := checkAttributes("Message.Attributes", e.Attributes, host.MaxAttributes, nil)
	errs = append(errs, cmp.Or(checkText("dedupID", e.ID), checkToken("dedupID", e.ID)),
		checkGroup("Message.Group", e.Group, fifo), checkText("Message.Body", e.Body))
	if e.TraceHeader != "" {
		errs = append(errs, checkText("Message.TraceHeader", e.TraceHeader))
	}
	return errors.Join(errs...)
}
