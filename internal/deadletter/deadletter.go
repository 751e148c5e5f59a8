// Package deadletter copies a rejected message to the dead-letter queue. It is for hosts only.
package deadletter

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/cut"
	"github.com/sqsonce/sqsonce/internal/host"
)

const (
	// maxSize is the bytes of body and attributes.
	// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
	maxSize   = 1 << 20
	maxReason = 1_024 // bytes of the reject-reason attribute; a limit of this package
)

// Copy returns the request that sends m to the dead-letter queue. It has the body, attributes, group and trace header of m,
// and four attributes of the host: the event's key, the reason, the source, the ARN of m's queue, and the record's key. The last two
// give way to everything, the record's key first, and nobody is told: the command then says that the record is unknown. Trace context gives way to key and
// reason (see [traceContext]). If either would exceed a limit of SQS all the same it is left out, and dropped names it. Any other
// attribute of the sender is never left out.
//
// On a FIFO queue the MessageDeduplicationId is the message ID, as in SQS's own redrive: when the response to a send is
// lost, a second send does not add a second copy.
//
// key is the one that middleware told the host (settle.KeptKey); "": that of the message. recordKey is settle.RecordKey.
func Copy(queueURL string, m *sqsonce.Message, key, recordKey string, reason error) (in *sqs.SendMessageInput, dropped []string) {
	attrs := make(map[string]sqstypes.MessageAttributeValue, len(m.Attributes)+4)
	for name, a := range m.Attributes {
		attrs[name] = value(a)
	}
	for _, name := range quiet { // of an earlier rejection, perhaps from another queue
		delete(attrs, name)
	}
	in = &sqs.SendMessageInput{QueueUrl: &queueURL, MessageBody: &m.Body, MessageAttributes: attrs}
	if m.Group != "" {
		in.MessageGroupId = &m.Group
	}
	if host.IsFIFO(queueURL) {
		in.MessageDeduplicationId = &m.ID
	}
	if m.TraceHeader != "" {
		setTraceHeader(in, m.TraceHeader)
	}
	return in, addHostAttributes(in, m, key, recordKey, reason)
}

// quiet are the attributes that give way to everything, in that order.
var quiet = []string{sqsonce.AttrRecordKey, sqsonce.AttrDeadLetterSource}

func value(a sqsonce.Attribute) sqstypes.MessageAttributeValue {
	v := sqstypes.MessageAttributeValue{DataType: aws.String(a.Type)}
	if strings.HasPrefix(a.Type, "Binary") {
		v.BinaryValue = a.Binary
	} else {
		v.StringValue = aws.String(a.String)
	}
	return v
}

// addHostAttributes adds the event's key, the reason, the source, and the record's key. A key that the copy has by itself is not added. One that holds the
// queue's ARN is another one where the copy is redriven to another queue. The message ID is no key unless middleware has made
// one of it: the event's own ID may be in the body, which middleware that never saw the message would have read.
func addHostAttributes(in *sqs.SendMessageInput, m *sqsonce.Message, key, recordKey string, reason error) (dropped []string) {
	attrs, used := in.MessageAttributes, size(m)
	// add reports whether the attribute had room, once those of givesWay were left out one after the other.
	add := func(name, value string, givesWay ...string) bool {
		if value == "" {
			return true
		}
		_, replaces := attrs[name]
		grows := len(name) + len("String") + len(value)
		fits := func() bool { return (replaces || len(attrs) < host.MaxAttributes) && used+grows <= maxSize }
		for _, other := range givesWay {
			if !fits() && leaveOut(in, m, other) {
				used -= host.AttributeBytes(other, m.Attributes[other])
			}
		}
		if !fits() {
			return false
		}
		used += grows
		attrs[name] = sqstypes.MessageAttributeValue{DataType: aws.String("String"), StringValue: &value}
		return true
	}
	own, source, err := m.Key()
	switch {
	case err != nil:
	case source == sqsonce.KeyFromEventID && key == "":
		key = own
	case source != sqsonce.KeyFromEventID && source != sqsonce.KeyFromMessageID && key == own:
		key = ""
	}
	if !add(sqsonce.AttrEventKey, key, traceContext...) {
		dropped = append(dropped, sqsonce.AttrEventKey)
	}
	if reason != nil && !add(sqsonce.AttrRejectReason, reasonText(reason), traceContext...) {
		dropped = append(dropped, sqsonce.AttrRejectReason)
	}
	add(sqsonce.AttrDeadLetterSource, m.QueueARN)
	if !strings.ContainsFunc(recordKey, isRefused) { // a changed key would be another one
		add(sqsonce.AttrRecordKey, recordKey)
	}
	return dropped
}

// size returns the bytes of m without what Copy deletes, as SQS counts them: the body, and the name, type and value of each
// attribute.
func size(m *sqsonce.Message) int {
	n := len(m.Body)
	for name, a := range m.Attributes {
		if !slices.Contains(quiet, name) {
			n += host.AttributeBytes(name, a)
		}
	}
	return n
}

// reasonText returns the text of an error as an attribute value: at most maxReason bytes, and only the characters that SQS
// accepts.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
func reasonText(reason error) string {
	return strings.Map(func(r rune) rune {
		if isRefused(r) {
			return '?'
		}
		return r
	}, cut.Text(reason.Error(), maxReason))
}

// isRefused reports whether SQS accepts no such character in an attribute. U+FFFD is also how bytes that are not UTF-8 are read.
func isRefused(r rune) bool {
	return r != '\t' && r != '\n' && r != '\r' && (r < 0x20 || r > 0xD7FF && r < 0xE000 || r >= 0xFFFD && r < 0x10000)
}
