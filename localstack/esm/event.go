package esm

import (
	"bytes"
	"encoding/json"

	"github.com/aws/aws-sdk-go-v2/aws"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// maxPayload is the limit of a synchronous invocation: 6 MB of event, envelope and metadata included.
// https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
const maxPayload = 6 << 20

const (
	eventHead = `{"Records":[`
	eventTail = `]}`
)

// eventRecord is one message in an event. Its names start with lower-case letters, unlike those of the SQS API.
type eventRecord struct {
	MessageID              string                    `json:"messageId"`
	ReceiptHandle          string                    `json:"receiptHandle"`
	Body                   string                    `json:"body"`
	Attributes             map[string]string         `json:"attributes"`
	MessageAttributes      map[string]eventAttribute `json:"messageAttributes"`
	MD5OfMessageAttributes json.RawMessage           `json:"md5OfMessageAttributes,omitempty"`
	MD5OfBody              string                    `json:"md5OfBody"`
	EventSource            string                    `json:"eventSource"`
	EventSourceARN         string                    `json:"eventSourceARN"`
	AWSRegion              string                    `json:"awsRegion"`
}

type eventAttribute struct {
	StringValue      json.RawMessage `json:"stringValue,omitempty"`
	BinaryValue      json.RawMessage `json:"binaryValue,omitempty"`
	StringListValues []string        `json:"stringListValues"`
	BinaryListValues []string        `json:"binaryListValues"`
	DataType         string          `json:"dataType"`
}

// encodeRecord returns the record of m as Lambda writes it. With a batching window Lambda writes an absent value as null,
// without one it omits the value.
func encodeRecord(m sqstypes.Message, q queue, windowed bool) []byte {
	var absent json.RawMessage
	if windowed {
		absent = json.RawMessage("null")
	}
	r := eventRecord{
		MessageID:              aws.ToString(m.MessageId),
		ReceiptHandle:          aws.ToString(m.ReceiptHandle),
		Body:                   aws.ToString(m.Body),
		Attributes:             m.Attributes,
		MessageAttributes:      make(map[string]eventAttribute, len(m.MessageAttributes)),
		MD5OfMessageAttributes: absent,
		MD5OfBody:              aws.ToString(m.MD5OfBody),
		EventSource:            "aws:sqs",
		EventSourceARN:         q.arn,
		AWSRegion:              q.region,
	}
	if r.Attributes == nil {
		r.Attributes = map[string]string{}
	}
	if m.MD5OfMessageAttributes != nil {
		r.MD5OfMessageAttributes = encodeJSON(*m.MD5OfMessageAttributes)
	}
	for name, a := range m.MessageAttributes {
		e := eventAttribute{
			StringValue: absent, BinaryValue: absent,
			StringListValues: []string{}, BinaryListValues: []string{},
			DataType: aws.ToString(a.DataType),
		}
		if a.StringValue != nil {
			e.StringValue = encodeJSON(*a.StringValue)
		}
		if a.BinaryValue != nil {
			e.BinaryValue = encodeJSON(a.BinaryValue) // base64
		}
		r.MessageAttributes[name] = e
	}
	return encodeJSON(r)
}

// encodeJSON encodes strings, bytes and the structs above, which cannot fail. Lambda does not escape <, > and &: an escape
// has six bytes instead of one, so with escapes an event of 6 MB would contain fewer messages than on AWS.
func encodeJSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("esm: " + err.Error()) // unreachable
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// encodeEvent makes an event from the JSON of its records.
func encodeEvent(records []record) []byte {
	n := len(eventHead) + len(eventTail)
	for _, r := range records {
		n += len(r.json) + 1
	}
	b := append(make([]byte, 0, n), eventHead...)
	for i, r := range records {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, r.json...)
	}
	return append(b, eventTail...)
}
