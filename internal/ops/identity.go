package ops

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/eventkey"
	"github.com/sqsonce/sqsonce/internal/host"
)

// history is the content of the redriven attribute: "times run first-sent-ms".
type history struct {
	times int
	run   string
	first time.Time // when the event's first message was sent
}

// historyOf returns the zero history for an attribute that is missing, or not of this form.
func historyOf(attrs map[string]sqsonce.Attribute) (h history) {
	fields := strings.Split(attrs[sqsonce.AttrRedriven].String, " ")
	if len(fields) != 3 {
		return history{}
	}
	times, err := strconv.Atoi(fields[0])
	ms, errFirst := strconv.ParseInt(fields[2], 10, 64)
	if err != nil || errFirst != nil || times < 1 {
		return history{}
	}
	return history{times, fields[1], time.UnixMilli(ms)}
}

// copyOf returns what a run sends for the message: as it is, without what hosts wrote on the way to the dead-letter queue, and
// with an event-key only where the copy alone would have another key. The redriven attribute gives way to everything.
func (d *DLQ) copyOf(m *Message, run string, fits func(size int) bool) (*sqsonce.Message, error) {
	c := m.Message
	if c.Attributes = maps.Clone(c.Attributes); c.Attributes == nil {
		c.Attributes = map[string]sqsonce.Attribute{}
	}
	for _, name := range []string{sqsonce.AttrRejectReason, sqsonce.AttrDeadLetterSource, sqsonce.AttrRecordKey} {
		delete(c.Attributes, name)
	}
	if err := d.keepKey(m, &c); err != nil {
		return nil, err
	}
	if len(c.Attributes) > host.MaxAttributes || !fits(host.MessageBytes(c.Body, c.Attributes)) {
		return nil, ErrNoRoom
	}
	d.addHistory(m, &c, run, fits)
	return &c, nil
}

// keepKey gives the copy the key of the message, and proves it: c is asked for its key as its consumer will see it. A key that only
// the consumer's function makes it leaves to that: a canary shows whether the copy has it.
func (d *DLQ) keepKey(m *Message, c *sqsonce.Message) error {
	want, err := d.recordKey(m)
	if err != nil || d.copiedKey(m) != "" {
		return err
	}
	keeps := func() bool {
		sent := *c
		sent.ID, sent.Sequence, sent.ReceiptHandle, sent.SentAt = "redriven", "", "", time.Time{}
		if sent.FirstReceivedAt = (time.Time{}); sent.DedupID != "" {
			sent.DedupID = "redriven"
		}
		key, err := d.callKey(sent)
		return err == nil && key == want
	}
	if keeps() {
		return nil
	}
	trusted := func(m *sqsonce.Message) (string, error) {
		key, _ := eventkey.OfDedupID(m.QueueARN, m.Group, m.DedupID)
		return key, nil
	}
	for _, of := range []func(*sqsonce.Message) (string, error){ownKey, trusted} {
		if key, err := d.callWith(m.Message, of, d.opts.S3); err == nil {
			c.Attributes[sqsonce.AttrEventKey] = sqsonce.Attribute{Type: "String", String: key}
			if keeps() {
				return nil
			}
		}
	}
	return ErrKeyChanges
}

func (d *DLQ) addHistory(m *Message, c *sqsonce.Message, run string, fits func(size int) bool) {
	h := historyOf(m.Attributes)
	if _, there := m.Attributes[sqsonce.AttrRedriven]; there && h.times == 0 {
		return // somebody else's
	}
	with := *c
	with.Attributes = maps.Clone(c.Attributes)
	with.Attributes[sqsonce.AttrRedriven] = sqsonce.Attribute{Type: "String", String: fmt.Sprintf("%d %s %d", h.times+1, run, m.firstSent().UnixMilli())}
	if len(with.Attributes) <= host.MaxAttributes && fits(host.MessageBytes(with.Body, with.Attributes)) {
		*c = with
	}
}

// dedupID returns the MessageDeduplicationId of a message's copy: the same one each time that this message is redriven, also by
// another process, and another one once it has come back. It is not the event's own, which SQS may still remember.
func dedupID(m *sqsonce.Message) string {
	source, id := m.Attributes[sqsonce.AttrEventSource].String, m.Attributes[sqsonce.AttrEventID].String
	if source == "" || id == "" {
		source = ""
		id, _, _ = m.Key() // the message ID tells messages apart that have none
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%s\x00%s", len(source), source, id, m.ID))
	return "redrive|" + hex.EncodeToString(sum[:])
}

// destination returns the URL of the queue that the message goes back to, or "". Only queues that SQS or Options name are: an
// attribute is the sender's to write.
func (d *DLQ) destination(m *Message) string {
	url := d.urls[m.QueueARN]
	if url == d.url || host.IsFIFO(url) != d.fifo {
		return ""
	}
	return url
}

// origin is the content of the dead-letter-source attribute: "source" of a host's copy, "source cause first-sent-ms" of a
// restored message, which lacks a DeadLetterQueueSourceArn and a SentTimestamp of its own. The source of a restored message is
// "-" if it was not known.
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
