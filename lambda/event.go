package lambda

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

var errNoRecords = errors.New("lambda: event has no records: it is not from an SQS event source mapping")

// check returns an error for an event that is not from an SQS event source mapping. An event of another service decodes
// into events.SQSEvent without an error, mostly as records without a message ID or as no records, and an empty response
// would report a success to Lambda.
func check(records []events.SQSMessage) error {
	if len(records) == 0 {
		return errNoRecords
	}
	queue := records[0].EventSourceARN
	for i := range records {
		r := &records[i]
		switch {
		case r.EventSource != "aws:sqs":
			return fmt.Errorf("lambda: record %d is from %.64q, not from aws:sqs", i, r.EventSource)
		case r.MessageId == "":
			// The response could not name it, so Lambda would delete it after a failure.
			return fmt.Errorf("lambda: record %d has no message ID", i)
		case r.EventSourceARN != queue:
			return fmt.Errorf("lambda: record %d is from another queue than record 0: a mapping has one queue", i)
		}
	}
	// The ARN says whether the queue is FIFO, and is part of the key of an event without an ID.
	if _, err := host.ParseQueueARN(queue); err != nil {
		return fmt.Errorf("lambda: eventSourceARN %w", err)
	}
	return nil
}

// MessageOf returns the message that handlers see, for a function that handles its records itself.
//
// When the handler has returned, [sqsonce.OutcomeOf] tells you how to treat the message. Leave only done messages out of
// BatchItemFailures.
func MessageOf(record events.SQSMessage) *sqsonce.Message {
	var m sqsonce.Message
	convert(&m, &record, time.Time{})
	return &m
}

// convert fills m from a record and shares its strings. If a system attribute is missing or not readable, its field stays
// zero.
func convert(m *sqsonce.Message, r *events.SQSMessage, killAt time.Time) {
	m.ID = r.MessageId
	m.Body = r.Body
	m.QueueARN = r.EventSourceARN
	m.ReceiptHandle = r.ReceiptHandle
	m.KillAt = killAt
	m.ReceiveCount = receiveCount(r)
	// Lookups: a range over a map takes longer than these.
	m.SentAt = host.Millis(r.Attributes["SentTimestamp"])
	m.FirstReceivedAt = host.Millis(r.Attributes["ApproximateFirstReceiveTimestamp"])
	m.Group = r.Attributes["MessageGroupId"]
	m.Sequence = r.Attributes["SequenceNumber"]
	m.DedupID = r.Attributes["MessageDeduplicationId"]
	m.TraceHeader = r.Attributes["AWSTraceHeader"]
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

// receiveCount is 1 without a readable count: the backoff then starts with its shortest delay.
func receiveCount(r *events.SQSMessage) int {
	n, err := strconv.Atoi(r.Attributes["ApproximateReceiveCount"])
	if err != nil {
		return 1
	}
	return max(n, 1)
}
