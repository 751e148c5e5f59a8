package fifo

import (
	"cmp"
	"context"
	"errors"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

// forward sends a received message as it is, and waits for its result as Publish does. The body, attributes, group and trace
// header are those of m. It adds and removes nothing, so a [Carry] of the hooks isn't sent. Use it in programs that send
// messages back to the queue that they came from. Pass m as SQS delivered it. If [sqsonce.OpenEnvelope] has opened the message,
// pass [sqsonce.Original] of it.
//
// dedupID is the MessageDeduplicationId on a FIFO queue. It isn't sent to a standard queue, but tells the publisher which
// messages are the same. It is required and has 1 to 128 printable ASCII characters without spaces. Use the same dedupID each
// time that you send this message again, and one that differs from the message's own. Within five minutes of the message's own,
// SQS answers success and drops the message.
//
// For the publisher the message is an event whose ID is dedupID. It shares requests and groups with events, has the same
// window, and halts those behind it when it fails. Two calls with one dedupID are two calls of one event ([ErrDedupConflict]).
// Hooks, Options.OnFailure, Stats, log lines and [PublishError] see that event, whose Attributes are all of the message's. If a
// message fails, forward it again. Don't publish it, because that would give it another identity.
//
// The error is a [*PublishError]. For a message that SQS would refuse it wraps one [*sqsonce.OptionError] per bad field, of
// dedupID or Message, and nothing was sent. It reports more than ten attributes, a missing group for a FIFO queue, and more
// bytes than the queue accepts (if its limit is known, see fits).
//
// A message whose event key is made of its ID has another key in the next queue. Give it an event-key attribute first.
func (p *Publisher) forward(ctx context.Context, m *sqsonce.Message, dedupID string) (Receipt, error) {
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
