package lambda

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

var errNoRecords = errors.New("lambda: event has no records: it is not from an SQS event source mapping")

// event is an invocation's event. [events.SQSEvent] has the same records with a map of the system attributes, which takes a fifth of the
// time of an invocation to read.
type event struct {
	Records []record `json:"Records"`
}

type record struct {
	ID                string               `json:"messageId"`
	ReceiptHandle     string               `json:"receiptHandle"`
	Body              string               `json:"body"`
	Attributes        systemAttributes     `json:"attributes"`
	MessageAttributes map[string]attribute `json:"messageAttributes"`
	QueueARN          string               `json:"eventSourceARN"`
	Source            string               `json:"eventSource"`
}

// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html
type systemAttributes struct {
	ReceiveCount          string `json:"ApproximateReceiveCount"`
	SentAt                string `json:"SentTimestamp"`
	FirstReceivedAt       string `json:"ApproximateFirstReceiveTimestamp"`
	Group                 string `json:"MessageGroupId"`
	Sequence              string `json:"SequenceNumber"`
	DedupID               string `json:"MessageDeduplicationId"`
	TraceHeader           string `json:"AWSTraceHeader"`
	DeadLetterQueueSource string `json:"DeadLetterQueueSourceArn"`
}

type attribute struct {
	Type   string `json:"dataType"`
	String string `json:"stringValue"`
	Binary []byte `json:"binaryValue"`
}

// recordsOf returns the records of a decoded event.
func recordsOf(decoded []events.SQSMessage) []record {
	records := make([]record, len(decoded))
	for i := range decoded {
		records[i] = recordOf(&decoded[i])
	}
	return records
}

func recordOf(m *events.SQSMessage) record {
	r := record{
		ID: m.MessageId, ReceiptHandle: m.ReceiptHandle, Body: m.Body, QueueARN: m.EventSourceARN, Source: m.EventSource,
		Attributes: systemAttributes{
			ReceiveCount:          m.Attributes["ApproximateReceiveCount"],
			SentAt:                m.Attributes["SentTimestamp"],
			FirstReceivedAt:       m.Attributes["ApproximateFirstReceiveTimestamp"],
			Group:                 m.Attributes["MessageGroupId"],
			Sequence:              m.Attributes["SequenceNumber"],
			DedupID:               m.Attributes["MessageDeduplicationId"],
			TraceHeader:           m.Attributes["AWSTraceHeader"],
			DeadLetterQueueSource: m.Attributes["DeadLetterQueueSourceArn"],
		},
	}
	if len(m.MessageAttributes) > 0 {
		r.MessageAttributes = make(map[string]attribute, len(m.MessageAttributes))
	}
	for name, a := range m.MessageAttributes {
		r.MessageAttributes[name] = attribute{a.DataType, aws.ToString(a.StringValue), a.BinaryValue}
	}
	return r
}

// check returns an error for an event that is not from an SQS event source mapping. An event of another service decodes
// without an error, mostly as records without a message ID or as no records, and an empty response would report a success to
// Lambda.
func check(records []record) error {
	if len(records) == 0 {
		return errNoRecords
	}
	queue := records[0].QueueARN
	for i := range records {
		r := &records[i]
		switch {
		case r.Source != "aws:sqs":
			return fmt.Errorf("lambda: record %d is from %.64q, not from aws:sqs", i, r.Source)
		case r.ID == "":
			// The response could not name it, so Lambda would delete it after a failure.
			return fmt.Errorf("lambda: record %d has no message ID", i)
		case r.QueueARN != queue:
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
func MessageOf(decoded events.SQSMessage) *sqsonce.Message {
	r := recordOf(&decoded)
	var m sqsonce.Message
	r.fill(&m, time.Time{})
	return &m
}

// fill fills m, which shares the record's strings. If a system attribute is missing or not readable, its field stays zero.
func (r *record) fill(m *sqsonce.Message, killAt time.Time) {
	a := &r.Attributes
	m.ID, m.Body, m.QueueARN, m.ReceiptHandle, m.KillAt = r.ID, r.Body, r.QueueARN, r.ReceiptHandle, killAt
	m.ReceiveCount, m.SentAt, m.FirstReceivedAt = r.receiveCount(), host.Millis(a.SentAt), host.Millis(a.FirstReceivedAt)
	m.Group, m.Sequence, m.DedupID, m.TraceHeader = a.Group, a.Sequence, a.DedupID, a.TraceHeader
	if len(r.MessageAttributes) == 0 {
		return
	}
	m.Attributes = make(map[string]sqsonce.Attribute, len(r.MessageAttributes))
	for name, a := range r.MessageAttributes {
		m.Attributes[name] = sqsonce.Attribute(a)
	}
}

// receiveCount is 1 without a readable count: the backoff then starts with its shortest delay.
func (r *record) receiveCount() int {
	n, err := strconv.Atoi(r.Attributes.ReceiveCount)
	if err != nil {
		return 1
	}
	return max(n, 1)
}
