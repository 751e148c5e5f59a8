// Package deadletter is the copy of a rejected message that both hosts send to the dead-letter queue.
package deadletter

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
)

// Limits of https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html.
const (
	maxAttributes = 10
	maxSize       = 1 << 20 // body and attributes
	maxReason     = 1_024   // bytes of the reject-reason attribute: our own limit
)

// Copy returns the request that sends m to the dead-letter queue: body, attributes, group and trace header as they are,
// and two attributes of our own, the event's key and the reason, where there is room for them. dropped names those for
// which there was none; nothing of the sender's is ever dropped for them.
//
// A queue of kind FIFO gets the message ID as MessageDeduplicationId, as SQS's own redrive does: a send whose reply was
// lost is not repeated into it.
func Copy(queueURL string, m *sqsonce.Message, reason error) (in *sqs.SendMessageInput, dropped []string) {
	attrs := make(map[string]sqstypes.MessageAttributeValue, len(m.Attributes)+2)
	for name, a := range m.Attributes {
		attrs[name] = value(a)
	}
	in = &sqs.SendMessageInput{QueueUrl: &queueURL, MessageBody: &m.Body, MessageAttributes: attrs}
	dropped = addOwn(attrs, m, reason)
	if m.Group != "" {
		in.MessageGroupId = &m.Group
	}
	if strings.HasSuffix(queueURL, ".fifo") {
		in.MessageDeduplicationId = &m.ID
	}
	if m.TraceHeader != "" {
		in.MessageSystemAttributes = map[string]sqstypes.MessageSystemAttributeValue{
			string(sqstypes.MessageSystemAttributeNameForSendsAWSTraceHeader): {
				DataType: aws.String("String"), StringValue: &m.TraceHeader,
			},
		}
	}
	return in, dropped
}

func value(a sqsonce.Attribute) sqstypes.MessageAttributeValue {
	v := sqstypes.MessageAttributeValue{DataType: aws.String(a.Type)}
	if strings.HasPrefix(a.Type, "Binary") {
		v.BinaryValue = a.Binary
	} else {
		v.StringValue = aws.String(a.String)
	}
	return v
}

// addOwn adds the event's key, then the reason. A key is only needed where the message ID is in it, since the copy has a
// new one.
func addOwn(attrs map[string]sqstypes.MessageAttributeValue, m *sqsonce.Message, reason error) (dropped []string) {
	used := size(m)
	add := func(name, value string) {
		if value == "" {
			return
		}
		_, replaces := attrs[name]
		grows := len(name) + len("String") + len(value)
		if !replaces && len(attrs) >= maxAttributes || used+grows > maxSize {
			dropped = append(dropped, name)
			return
		}
		used += grows
		attrs[name] = sqstypes.MessageAttributeValue{DataType: aws.String("String"), StringValue: &value}
	}
	if key, source, err := m.Key(); err == nil && source == sqsonce.KeyFromMessageID {
		add(sqsonce.AttrEventKey, key)
	}
	if reason != nil {
		add(sqsonce.AttrRejectReason, text(reason.Error()))
	}
	return dropped
}

// size is what SQS counts: the body, and the name, type and value of each attribute.
func size(m *sqsonce.Message) int {
	n := len(m.Body)
	for name, a := range m.Attributes {
		n += len(name) + len(a.Type) + len(a.String) + len(a.Binary)
	}
	return n
}

// text cuts a text to what SQS takes as an attribute's value: XML's characters, and not too many of them.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
func text(s string) string {
	if len(s) > maxReason {
		s = s[:maxReason]
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\t', r == '\n', r == '\r', r >= 0x20 && r <= 0xD7FF, r >= 0xE000 && r < 0xFFFD, r >= 0x10000:
			return r
		}
		return '?' // also for what is not UTF-8, which ranges over a string as U+FFFD
	}, s)
	return s
}
