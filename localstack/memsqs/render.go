package memsqs

import (
	"maps"
	"slices"
	"strconv"
	"time"
)

// senderID is the SenderId of every message: there is one user.
const senderID = "AIDAMEMSQSMEMSQSMEMSQ"

// systemAttributes are those of a received message. "": it does not have it, or it was not asked for. A struct, since
// encoding/json sorts the names of a map anew for each message.
type systemAttributes struct {
	AWSTraceHeader                   string `json:",omitempty"`
	ApproximateFirstReceiveTimestamp string `json:",omitempty"`
	ApproximateReceiveCount          string `json:",omitempty"`
	DeadLetterQueueSourceARN         string `json:"DeadLetterQueueSourceArn,omitempty"`
	MessageDeduplicationID           string `json:"MessageDeduplicationId,omitempty"`
	MessageGroupID                   string `json:"MessageGroupId,omitempty"`
	SenderID                         string `json:"SenderId,omitempty"`
	SentTimestamp                    string `json:",omitempty"`
	SequenceNumber                   string `json:",omitempty"`
}

// systemAttribute sets the attribute of a name.
var systemAttribute = map[string]func(*systemAttributes, *message){
	"SenderId":                         func(a *systemAttributes, _ *message) { a.SenderID = senderID },
	"SentTimestamp":                    func(a *systemAttributes, m *message) { a.SentTimestamp = millis(m.sentAt) },
	"ApproximateReceiveCount":          func(a *systemAttributes, m *message) { a.ApproximateReceiveCount = strconv.Itoa(m.receives) },
	"ApproximateFirstReceiveTimestamp": func(a *systemAttributes, m *message) { a.ApproximateFirstReceiveTimestamp = millis(m.firstAt) },
	"MessageGroupId":                   func(a *systemAttributes, m *message) { a.MessageGroupID = m.group },
	"MessageDeduplicationId":           func(a *systemAttributes, m *message) { a.MessageDeduplicationID = m.dedupID },
	"SequenceNumber":                   func(a *systemAttributes, m *message) { a.SequenceNumber = m.seq },
	"AWSTraceHeader":                   func(a *systemAttributes, m *message) { a.AWSTraceHeader = m.trace },
	"DeadLetterQueueSourceArn":         func(a *systemAttributes, m *message) { a.DeadLetterQueueSourceARN = m.sourceARN },
	"SqsManagedSseEnabled":             func(*systemAttributes, *message) {}, // may be asked for, and no message has it
}

func millis(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

// selectSystem looks up the attributes of these names.
func selectSystem(names []string) ([]func(*systemAttributes, *message), error) {
	out := make([]func(*systemAttributes, *message), 0, len(names))
	for _, n := range names {
		set := systemAttribute[n]
		switch {
		case n == "All":
			out = slices.AppendSeq(out, maps.Values(systemAttribute))
		case set == nil:
			return nil, invalidAttributeName(n)
		default:
			out = append(out, set)
		}
	}
	return out, nil
}

func (q *queue) render(got []*message, r *request) []receivedMessage {
	out := make([]receivedMessage, 0, len(got))
	for _, m := range got {
		attrs := selectAttributes(m.attrs, r.attributes)
		out = append(out, receivedMessage{
			MessageID: m.id, ReceiptHandle: q.handle(m), Body: m.body, MD5OfBody: m.md5,
			Attributes: r.systemOf(m), MessageAttributes: attrs, MD5OfMessageAttributes: md5OfAttributes(attrs),
		})
	}
	return out
}

func (r *request) systemOf(m *message) *systemAttributes {
	a := &systemAttributes{}
	for _, set := range r.system {
		set(a, m)
	}
	if *a == (systemAttributes{}) {
		return nil
	}
	return a
}
