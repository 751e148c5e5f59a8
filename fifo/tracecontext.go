package fifo

import (
	"regexp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

// Carry is trace context for the event's consumer. It gives way to the event. It doesn't replace a value that the event sets
// itself, and never makes an event fail. The publisher leaves out an attribute if it doesn't fit into the ten attributes of a
// message or into the queue's longest message. While that length isn't known, because it requires sqs:GetQueueAttributes, there
// is room up to 1 KiB. The publisher also leaves out values that SQS would refuse.
//
// All attempts of one call send the same. When an event is published again, the publisher doesn't compare it
// ([ErrDedupConflict]). SQS drops the copy, and the consumer gets the trace context of the first one.
type Carry struct {
	// TraceHeader is sent as the AWSTraceHeader system attribute, which doesn't count towards the room. It must have X-Ray's
	// "Root=1-...".
	TraceHeader string
	// TraceParent and TraceState are sent as the message attributes "traceparent" and "tracestate". TraceState is sent only
	// together with TraceParent. An event with one of these attributes gets neither.
	TraceParent, TraceState string
}

const (
	attrTraceParent = "traceparent"
	attrTraceState  = "tracestate"
)

// traceHeaders have a trace ID in X-Ray's form: SQS wants "a correctly formatted AWS X-Ray trace header string".
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
var traceHeaders = regexp.MustCompile(`^([A-Za-z]+=[^;]*;)*Root=1-[0-9a-f]{8}-[0-9a-f]{24}(;|$)`)

// or returns c with what other has besides: of hooks that are set together, the first decides.
func (c Carry) or(other Carry) Carry {
	if c.TraceHeader == "" {
		c.TraceHeader = other.TraceHeader
	}
	if c.TraceParent == "" {
		c.TraceParent, c.TraceState = other.TraceParent, other.TraceState
	}
	return c
}

// fit leaves out of the carry of an entry, which was checked, what has no room.
func (p *Publisher) fit(e *entry) {
	c := &e.hooked.carry
	if e.forward { // the trace context is the message's own
		*c = Carry{}
		return
	}
	if !traceHeaders.MatchString(c.TraceHeader) || checkText("", c.TraceHeader) != nil {
		c.TraceHeader = ""
	}
	_, parent := e.event.Attributes[attrTraceParent]
	_, state := e.event.Attributes[attrTraceState]
	room := host.MaxAttributes - len(e.event.sentAttributes(p.namespace))
	add := func(name string, value *string, fits bool) bool {
		size := int64(len(name) + len("String") + len(*value))
		if !fits || room == 0 || checkText("", *value) != nil || !p.hasRoom(e.messageSize()+size) {
			*value = ""
			return false
		}
		room--
		e.carried += size
		return true
	}
	add(attrTraceState, &c.TraceState, add(attrTraceParent, &c.TraceParent, !parent && !state))
}

// attributes returns the message attributes of a carry that fits.
func (c *Carry) attributes() map[string]sqsonce.Attribute {
	all := make(map[string]sqsonce.Attribute, 2)
	for name, value := range map[string]string{attrTraceParent: c.TraceParent, attrTraceState: c.TraceState} {
		if value != "" {
			all[name] = sqsonce.Attribute{Type: "String", String: value}
		}
	}
	return all
}
