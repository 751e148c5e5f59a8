package memsqs

import (
	"strconv"
	"time"
)

// senderID is the SenderId of every message: there is one user.
const senderID = "AIDAMEMSQSMEMSQSMEMSQ"

// systemAttributes are the attributes of a received message, by name. "": the message does not have it.
var systemAttributes = map[string]func(*message) string{
	"SenderId":                         func(*message) string { return senderID },
	"SentTimestamp":                    func(m *message) string { return millis(m.sentAt) },
	"ApproximateReceiveCount":          func(m *message) string { return strconv.Itoa(m.receives) },
	"ApproximateFirstReceiveTimestamp": func(m *message) string { return millis(m.firstAt) },
	"MessageGroupId":                   func(m *message) string { return m.group },
	"MessageDeduplicationId":           func(m *message) string { return m.dedupID },
	"SequenceNumber":                   func(m *message) string { return m.seq },
	"AWSTraceHeader":                   func(m *message) string { return m.trace },
	"DeadLetterQueueSourceArn":         func(m *message) string { return m.sourceARN },
}

func millis(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

func checkSystemNames(names []string) error {
	for _, n := range names {
		// SqsManagedSseEnabled may be asked for, and no message has it.
		if n != "All" && n != "SqsManagedSseEnabled" && systemAttributes[n] == nil {
			return invalidAttributeName(n)
		}
	}
	return nil
}

func (q *queue) render(got []*message, r *request) []receivedMessage {
	out := make([]receivedMessage, 0, len(got))
	for _, m := range got {
		attrs := selectAttributes(m.attrs, r.attributes)
		out = append(out, receivedMessage{
			MessageID: m.id, ReceiptHandle: q.handle(m), Body: m.body, MD5OfBody: m.md5,
			Attributes: selectSystem(m, r.system), MessageAttributes: attrs, MD5OfMessageAttributes: md5OfAttributes(attrs),
		})
	}
	return out
}

func selectSystem(m *message, names []string) map[string]string {
	out := map[string]string{}
	for _, n := range names {
		if n == "All" {
			for n, get := range systemAttributes {
				if v := get(m); v != "" {
					out[n] = v
				}
			}
		} else if get := systemAttributes[n]; get != nil {
			if v := get(m); v != "" {
				out[n] = v
			}
		}
	}
	return out
}
