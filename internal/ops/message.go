package ops

import (
	"cmp"
	"time"

	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// Message is a message of a dead-letter queue, with the known facts about its event.
type Message struct {
	// Message is the message as the source's consumer would receive it, in its envelope: QueueARN is the source's, or "" where
	// nothing says which queue that is. ID, SentAt, the receive count and the receipt handle are the dead-letter queue's. SQS's
	// own move keeps the ID, and on a standard queue SentAt. The handle is of no use after a listing.
	sqsonce.Message
	// Cause is how the message came to the dead-letter queue.
	Cause Cause
	// Reason is why the message came here: the reject-reason of a rejected message, else that its process crashed, or that an operator
	// has freed it with a note, else the last error of the event's record, or the reason that the state implies. Class groups them.
	Reason string
	Class  Class
	// RecordKey is the key of the event's record, or "" if the key is not known.
	RecordKey string
	// State is the state of Record. Record is nil if the state is StateUnknown or StateNone.
	State  dedup.RecordState
	Record *dedup.Record
	// NeverStarted says that State would be StateNone with Options.SameKeys.
	NeverStarted bool
	// Crashes is how often the event's consumers have crashed, at least: [dedup.Record.Crashes].
	Crashes int
	// Expired says that a record that was not found may have expired, because the message is older than the records' retention.
	Expired bool
	// LostAt is when SQS deletes the message, or zero if that is not known. On a FIFO queue SQS counts from its own move, so it
	// deletes a message with the cause CauseReceivesUsedUp later.
	LostAt time.Time
	// Redriven is how often a redrive has sent the message before, by its redriven attribute.
	Redriven int
	// Problem is why the record is not known: [ErrNoRecord], a key function that failed, a key that the queue or SQS's move has
	// changed, or a store that did not answer. It is nil if Options have neither Key nor Store.
	Problem error
}

// newMessage returns what a received message says by itself.
func (d *DLQ) newMessage(in sqstypes.Message) *Message {
	m := &Message{Message: *sqsworker.MessageOf(in, ""), State: StateUnknown}
	m.Cause, m.QueueARN = d.cameFrom(m.Attributes, in.Attributes[string(sqstypes.MessageSystemAttributeNameDeadLetterQueueSourceArn)])
	if d.copiedKey(m) != "" {
		d.functions.Store(true)
	}
	m.Redriven = historyOf(m.Attributes).times
	if d.retention > 0 && !m.SentAt.IsZero() {
		m.LostAt = m.SentAt.Add(d.retention)
	}
	return m
}

// cameFrom returns how a message came to the queue, and from which one. moved is its DeadLetterQueueSourceArn.
func (d *DLQ) cameFrom(attrs map[string]sqsonce.Attribute, moved string) (Cause, string) {
	if moved != "" { // a reject-reason, or a dead-letter-source, is of an earlier visit
		return CauseReceivesUsedUp, moved
	}
	if o := originOf(attrs); o.cause != "" {
		return o.cause, cmp.Or(o.source, d.source)
	}
	if _, rejected := attrs[sqsonce.AttrRejectReason]; rejected {
		return CauseRejected, d.source
	}
	return CauseSent, d.source
}

// Cause is how a message came to the dead-letter queue.
type Cause string

// The causes.
const (
	CauseRejected       Cause = "rejected"         // by a host: its handler returned Reject, or failed at its last attempt
	CauseReceivesUsedUp Cause = "receives_used_up" // moved by SQS: it was received maxReceiveCount times
	CauseSent           Cause = "sent"             // sent by another program, or by a host whose attributes had no room
)

var causes = []Cause{CauseRejected, CauseReceivesUsedUp, CauseSent}
