package lambda

import (
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/sqsonce/sqsonce"
)

// convert fills m from a record, sharing its strings. A system attribute that is missing or unreadable leaves its field
// zero.
func convert(m *sqsonce.Message, r *events.SQSMessage, killAt time.Time) {
	m.ID = r.MessageId
	m.Body = r.Body
	m.QueueARN = r.EventSourceARN
	m.ReceiptHandle = r.ReceiptHandle
	m.KillAt = killAt
	// Without a count a message counts as delivered for the first time: backoff starts short.
	m.ReceiveCount = 1
	for name, value := range r.Attributes {
		switch name {
		case "ApproximateReceiveCount":
			if n, err := strconv.Atoi(value); err == nil {
				m.ReceiveCount = max(n, 1)
			}
		case "SentTimestamp":
			m.SentAt = millis(value)
		case "ApproximateFirstReceiveTimestamp":
			m.FirstReceivedAt = millis(value)
		case "MessageGroupId":
			m.Group = value
		case "SequenceNumber":
			m.Sequence = value
		case "MessageDeduplicationId":
			m.DedupID = value
		case "AWSTraceHeader":
			m.TraceHeader = value
		}
	}
	if len(r.MessageAttributes) == 0 {
		return
	}
	m.Attributes = make(map[string]sqsonce.Attribute, len(r.MessageAttributes))
	for name, a := range r.MessageAttributes {
		attr := sqsonce.Attribute{Type: a.DataType, Binary: a.BinaryValue}
		if a.StringValue != nil {
			attr.String = *a.StringValue
		}
		m.Attributes[name] = attr
	}
}

func millis(s string) time.Time {
	ms, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
