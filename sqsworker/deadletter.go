package sqsworker

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/deadletter"
)

// sendToDeadLetter sends a copy of the message with the reason. The SDK's own retries may send it twice: rather two
// copies than none.
//
// A dead-letter queue may take smaller messages than the queue, and then one that just fits is refused for what we add:
// it is sent without. The reason goes first: the event's key is what keeps a redrive the same event.
func (l *loop) sendToDeadLetter(ctx context.Context, m *sqsonce.Message, reason error) error {
	in, dropped := deadletter.Copy(l.queue.deadLetter, m, reason)
	_, err := l.client.SendMessage(ctx, in)
	for _, name := range []string{sqsonce.AttrRejectReason, sqsonce.AttrEventKey} {
		if isTooLarge(err) && takeBack(in, m, name) {
			dropped = append(dropped, name)
			_, err = l.client.SendMessage(ctx, in)
		}
	}
	for _, name := range dropped {
		l.log.Warn("sqsworker: no room for an attribute of the dead-lettered message", keyMessage, m.ID, keyAttribute, name)
	}
	return err
}

// takeBack removes an attribute that we added. One of the sender's stays, also where we would have replaced it.
func takeBack(in *sqs.SendMessageInput, m *sqsonce.Message, name string) bool {
	_, added := in.MessageAttributes[name]
	if _, senders := m.Attributes[name]; senders || !added {
		return false
	}
	delete(in.MessageAttributes, name)
	return true
}

// isTooLarge reports that SQS refused a message for its size, which the text alone says. The largest is a setting of the
// queue: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html
func isTooLarge(err error) bool {
	switch errorCode(err) {
	case "InvalidParameterValue", "InvalidParameterValueException":
		return strings.Contains(err.Error(), "shorter than")
	}
	return false
}
