package deadletter

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/sqsonce/sqsonce"
)

// Client is what Send needs of SQS.
type Client interface {
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
}

// Send sends the [Copy] of m, and returns what Copy had to drop. The SDK's own retries may send it twice: rather two
// copies than none.
//
// A dead-letter queue may take smaller messages than the queue, and then one that just fits is refused for what we add:
// it is sent without. The reason goes first: the event's key is what keeps a redrive the same event.
func Send(ctx context.Context, c Client, queueURL string, m *sqsonce.Message, reason error) (dropped []string, err error) {
	in, dropped := Copy(queueURL, m, reason)
	_, err = c.SendMessage(ctx, in)
	for _, name := range []string{sqsonce.AttrRejectReason, sqsonce.AttrEventKey} {
		if isTooLarge(err) && takeBack(in, m, name) {
			dropped = append(dropped, name)
			_, err = c.SendMessage(ctx, in)
		}
	}
	return dropped, err
}

// takeBack removes an attribute that we added. One of the sender's, or of an earlier rejection, stays as it came.
func takeBack(in *sqs.SendMessageInput, m *sqsonce.Message, name string) bool {
	ours, added := in.MessageAttributes[name]
	senders, replaced := m.Attributes[name]
	switch {
	case !added, replaced && aws.ToString(ours.StringValue) == senders.String:
		return false
	case replaced:
		in.MessageAttributes[name] = value(senders)
	default:
		delete(in.MessageAttributes, name)
	}
	return true
}

// isTooLarge reports that SQS refused a message for its size, which the text alone says. The largest is a setting of the
// queue: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html
func isTooLarge(err error) bool {
	e, answered := errors.AsType[smithy.APIError](err)
	if !answered {
		return false
	}
	switch strings.TrimPrefix(e.ErrorCode(), "AWS.SimpleQueueService.") {
	case "InvalidParameterValue", "InvalidParameterValueException":
		return strings.Contains(e.ErrorMessage(), "shorter than")
	}
	return false
}
