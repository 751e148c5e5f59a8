package sqsworker

import (
	"crypto/md5"
	"encoding/hex"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

// systemAttributes are those that decode reads, and the queue that SQS moved a message from. SQS has one more: the sender.
var systemAttributes = []sqstypes.MessageSystemAttributeName{
	sqstypes.MessageSystemAttributeNameMessageGroupId,
	sqstypes.MessageSystemAttributeNameSequenceNumber,
	sqstypes.MessageSystemAttributeNameMessageDeduplicationId,
	sqstypes.MessageSystemAttributeNameAWSTraceHeader,
	sqstypes.MessageSystemAttributeNameSentTimestamp,
	sqstypes.MessageSystemAttributeNameApproximateFirstReceiveTimestamp,
	sqstypes.MessageSystemAttributeNameApproximateReceiveCount,
	sqstypes.MessageSystemAttributeNameDeadLetterQueueSourceArn,
}

var allAttributes = []string{"All"}

// MessageOf returns the message that handlers see, for a loop that receives messages itself. The receive must ask for all
// system attributes and all message attributes (MessageSystemAttributeNames and MessageAttributeNames: All), because a
// message without its attributes has another key. queueARN names the queue. Without it the message lacks the keys that
// contain the queue's ARN.
//
// When the handler has returned, [sqsonce.OutcomeOf] tells you how to treat the message.
func MessageOf(m sqstypes.Message, queueARN string) *sqsonce.Message { return decode(&m, queueARN) }

// decode returns the message that handlers see. A system attribute that is missing or cannot be read leaves its field
// zero.
func decode(in *sqstypes.Message, queueARN string) *sqsonce.Message {
	system := in.Attributes
	m := &sqsonce.Message{
		ID:              aws.ToString(in.MessageId),
		Body:            aws.ToString(in.Body),
		ReceiptHandle:   aws.ToString(in.ReceiptHandle),
		Group:           system[string(sqstypes.MessageSystemAttributeNameMessageGroupId)],
		Sequence:        system[string(sqstypes.MessageSystemAttributeNameSequenceNumber)],
		DedupID:         system[string(sqstypes.MessageSystemAttributeNameMessageDeduplicationId)],
		TraceHeader:     system[string(sqstypes.MessageSystemAttributeNameAWSTraceHeader)],
		SentAt:          host.Millis(system[string(sqstypes.MessageSystemAttributeNameSentTimestamp)]),
		FirstReceivedAt: host.Millis(system[string(sqstypes.MessageSystemAttributeNameApproximateFirstReceiveTimestamp)]),
		QueueARN:        queueARN,
	}
	// Without a receive count the message counts as received for the first time: backoff starts short.
	count, err := strconv.Atoi(system[string(sqstypes.MessageSystemAttributeNameApproximateReceiveCount)])
	if m.ReceiveCount = count; err != nil || count < 1 {
		m.ReceiveCount = 1
	}
	if len(in.MessageAttributes) > 0 {
		m.Attributes = make(map[string]sqsonce.Attribute, len(in.MessageAttributes))
		for name, a := range in.MessageAttributes {
			m.Attributes[name] = sqsonce.Attribute{
				Type: aws.ToString(a.DataType), String: aws.ToString(a.StringValue), Binary: a.BinaryValue,
			}
		}
	}
	return m
}

// bodyMatches compares a body with the MD5 that SQS sent of it, "" for none. The SDK's own check is off: for one damaged body it fails
// the whole receive, and up to nine good messages stay hidden for their visibility timeout.
func bodyMatches(body []byte, want string) bool {
	sum := md5.Sum(body)
	return want == "" || string(hex.AppendEncode(make([]byte, 0, 2*md5.Size), sum[:])) == want
}

// size is what a message counts for in Options.MaxBytes.
func size(m *sqsonce.Message) int64 {
	return int64(host.MessageBytes(m.Body, m.Attributes))
}

// wasMoved says that SQS has moved the message from the queue whose dead-letter queue this is: its receive count goes on from there.
func wasMoved(in *sqstypes.Message) bool {
	return in.Attributes[string(sqstypes.MessageSystemAttributeNameDeadLetterQueueSourceArn)] != ""
}

// lacksAttributes reports that an endpoint left out a system attribute that every message has, on FIFO its group included.
func lacksAttributes(in *sqstypes.Message, fifo bool) bool {
	_, counted := in.Attributes[string(sqstypes.MessageSystemAttributeNameApproximateReceiveCount)]
	_, grouped := in.Attributes[string(sqstypes.MessageSystemAttributeNameMessageGroupId)]
	return !counted || fifo && !grouped
}
