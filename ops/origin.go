package ops

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

// origin is what the dead-letter-source attribute says: "source" of a host's copy, "source cause first-sent-ms" of a restored
// message, which has no DeadLetterQueueSourceArn and no SentTimestamp of its own. The source of that is "-" where nothing said it.
type origin struct {
	source string
	cause  Cause     // "": there is no attribute
	first  time.Time // when the event's first message was sent; zero: not said
}

const noSource = "-"

// originOf returns the zero origin for an attribute that is missing. One that is not of these forms is a host's.
func originOf(attrs map[string]sqsonce.Attribute) origin {
	value := attrs[sqsonce.AttrDeadLetterSource].String
	if value == "" {
		return origin{}
	}
	o := origin{source: value, cause: CauseRejected}
	if fields := strings.Split(value, " "); len(fields) == 3 && slices.Contains(causes, Cause(fields[1])) {
		if ms, err := strconv.ParseInt(fields[2], 10, 64); err == nil {
			o = origin{fields[0], Cause(fields[1]), time.UnixMilli(ms)}
		}
		if o.source == noSource {
			o.source = ""
		}
	}
	return o
}

// originAttribute returns what a restored copy of the message says. A source that nothing but Options said is not made a fact.
func (d *DLQ) originAttribute(m *Message) sqsonce.Attribute {
	source := m.QueueARN
	stated := m.Cause == CauseReceivesUsedUp || originOf(m.Attributes).source != ""
	if _, err := host.ParseQueueARN(source); err != nil || !stated && source == d.source {
		source = noSource
	}
	return sqsonce.Attribute{Type: "String", String: fmt.Sprintf("%s %s %d", source, m.Cause, m.firstSent().UnixMilli())}
}

// firstSent returns when the event's first message was sent, as far as is known: what was redriven or restored is a newer one.
func (m *Message) firstSent() time.Time {
	first := m.SentAt
	for _, t := range []time.Time{historyOf(m.Attributes).first, originOf(m.Attributes).first} {
		if !t.IsZero() && t.Before(first) {
			first = t
		}
	}
	return first
}
