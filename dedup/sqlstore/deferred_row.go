package sqlstore

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce"
)

// row is a message on its way into the table.
type row struct {
	key        string
	message    *sqsonce.Message
	attributes []byte
}

// envelope is what the column attributes holds: the message's own attributes, and what else SQS said of it.
type envelope struct {
	Attributes      map[string]sqsonce.Attribute `json:"attributes,omitempty"`
	QueueARN        string                       `json:"queueArn,omitempty"`
	Group           string                       `json:"group,omitempty"`
	Sequence        string                       `json:"sequence,omitempty"`
	DedupID         string                       `json:"dedupId,omitempty"`
	TraceHeader     string                       `json:"traceHeader,omitempty"`
	SentAt          time.Time                    `json:"sentAt,omitzero"`
	FirstReceivedAt time.Time                    `json:"firstReceivedAt,omitzero"`
}

func newRow(key string, m *sqsonce.Message) (row, error) {
	text, err := json.Marshal(envelope{
		Attributes: m.Attributes, QueueARN: m.QueueARN, Group: m.Group, Sequence: m.Sequence, DedupID: m.DedupID,
		TraceHeader: m.TraceHeader, SentAt: m.SentAt, FirstReceivedAt: m.FirstReceivedAt,
	})
	if err != nil {
		return row{}, fmt.Errorf("sqlstore: receive: attributes of %s: %w", key, err)
	}
	return row{key: key, message: m, attributes: text}, nil
}

// args are the statement's for one row. The columns event_id, source and event_type are for an operator's queries, and
// hold what fits; the whole is in attributes.
func (r row) args(d *Deferred) []any {
	m := r.message
	_, event, _ := strings.Cut(r.key, "#")
	return []any{
		r.key, d.consumer, event,
		column(m.Attributes[sqsonce.AttrEventSource].String), column(m.Attributes[sqsonce.AttrEventType].String),
		orderedBy(m), column(m.ID), []byte(m.Body), string(r.attributes), d.retention.Milliseconds(),
	}
}

// orderedBy is the group inside which messages are handled one after the other. Only a FIFO queue's is: on a standard
// queue, whose messages have no sequence number, the group is a tenant's tag.
func orderedBy(m *sqsonce.Message) string {
	if m.Sequence == "" {
		return ""
	}
	return m.Group
}

func column(text string) string {
	const most = 128
	return strings.ToValidUTF8(strings.ReplaceAll(text[:min(len(text), most)], "\x00", ""), "")
}

// decode makes the message again. Its receive count is the processor's attempts.
func decode(messageID string, payload []byte, attributes string, attempts int) (*sqsonce.Message, error) {
	var e envelope
	if err := json.Unmarshal([]byte(attributes), &e); err != nil {
		return nil, fmt.Errorf("sqlstore: inbox: attributes of message %s: %w", messageID, err)
	}
	return &sqsonce.Message{
		ID: messageID, Body: string(payload), Attributes: e.Attributes, Group: e.Group, Sequence: e.Sequence,
		DedupID: e.DedupID, ReceiveCount: attempts, SentAt: e.SentAt, FirstReceivedAt: e.FirstReceivedAt,
		QueueARN: e.QueueARN, TraceHeader: e.TraceHeader,
	}, nil
}
