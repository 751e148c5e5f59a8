package sqsworker

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
)

const (
	maxAttributes = 10    // of one message
	maxReason     = 1_024 // bytes of the reject-reason attribute
)

// sendToDeadLetter sends a copy of the message: body, attributes, group and trace header as they are, and two
// attributes of our own where there is room for them.
func (l *loop) sendToDeadLetter(ctx context.Context, m *sqsonce.Message, reason error) error {
	attrs := make(map[string]sqstypes.MessageAttributeValue, len(m.Attributes)+2)
	for name, a := range m.Attributes {
		v := sqstypes.MessageAttributeValue{DataType: aws.String(a.Type)}
		if strings.HasPrefix(a.Type, "Binary") {
			v.BinaryValue = a.Binary
		} else {
			v.StringValue = aws.String(a.String)
		}
		attrs[name] = v
	}
	l.addOwn(attrs, m, reason)
	in := &sqs.SendMessageInput{QueueUrl: &l.queue.deadLetter, MessageBody: &m.Body, MessageAttributes: attrs}
	if m.Group != "" {
		in.MessageGroupId = &m.Group
	}
	if l.fifo {
		// The message ID, as SQS's own redrive does: a send whose reply was lost is not repeated into the queue.
		in.MessageDeduplicationId = &m.ID
	}
	if m.TraceHeader != "" {
		in.MessageSystemAttributes = map[string]sqstypes.MessageSystemAttributeValue{
			string(sqstypes.MessageSystemAttributeNameForSendsAWSTraceHeader): stringSystemAttribute(m.TraceHeader),
		}
	}
	_, err := l.client.SendMessage(ctx, in)
	return err
}

// addOwn adds the event's key, then the reason; the one that does not fit any more is dropped, and both before anything
// of the sender's. A key is only needed where the message ID is in it, since a redrive gives the message a new one.
func (l *loop) addOwn(attrs map[string]sqstypes.MessageAttributeValue, m *sqsonce.Message, reason error) {
	used := size(m)
	add := func(name, value string) {
		_, replaces := attrs[name]
		grows := int64(len(name) + len("String") + len(value))
		if value == "" {
			return
		}
		if !replaces && len(attrs) >= maxAttributes || used+grows > maxBody {
			l.log.Warn("sqsworker: no room for an attribute of the dead-lettered message", keyMessage, m.ID, "attribute", name)
			return
		}
		used += grows
		attrs[name] = sqstypes.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(value)}
	}
	if key, rung, err := m.EventID(); err == nil && rung == sqsonce.RungMessageID {
		add(sqsonce.AttrEventKey, key)
	}
	if reason != nil {
		add(sqsonce.AttrRejectReason, attributeText(reason.Error()))
	}
}

// attributeText cuts a text to what SQS takes as an attribute's value: XML's characters, and not too many of them.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
func attributeText(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\t', r == '\n', r == '\r', r >= 0x20 && r <= 0xD7FF, r >= 0xE000 && r <= 0xFFFD, r >= 0x10000:
			return r
		}
		return '?'
	}, strings.ToValidUTF8(s, "?"))
	if len(s) > maxReason {
		s = strings.ToValidUTF8(s[:maxReason], "")
	}
	return s
}

func stringSystemAttribute(s string) sqstypes.MessageSystemAttributeValue {
	return sqstypes.MessageSystemAttributeValue{DataType: aws.String("String"), StringValue: &s}
}
