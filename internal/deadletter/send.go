package deadletter

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/sdkhttp"
)

// Client is the part of the SQS client that Send calls.
type Client interface {
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
}

// Send sends the [Copy] of m, and returns the names of the host's attributes that it left out. The SDK's own retries may
// send it twice on a standard queue: two copies are better than none.
//
// The dead-letter queue may accept smaller messages than the queue. If it refuses the copy for its size, Send leaves out
// attributes one after the other: the record's key, the source, trace context, the reason, and last the key, with which the event is still the
// same after a redrive.
func Send(ctx context.Context, c Client, queueURL string, m *sqsonce.Message, key, recordKey string, reason error) (dropped []string, err error) {
	in, dropped := Copy(queueURL, m, key, recordKey, reason)
	err = send(ctx, c, in)
	for _, name := range slices.Concat(quiet, traceContext) {
		if IsTooLarge(err) && leaveOut(in, m, name) {
			err = send(ctx, c, in)
		}
	}
	for _, name := range []string{sqsonce.AttrRejectReason, sqsonce.AttrEventKey} {
		if IsTooLarge(err) && removeHostAttribute(in, m, name) {
			dropped = append(dropped, name)
			err = send(ctx, c, in)
		}
	}
	return dropped, err
}

var errUnconfirmed = errors.New("deadletter: the answer names no message, or a body that was not sent")

// send returns nil if SQS has confirmed the message: with its ID and the checksum of its body. Something between the host and
// SQS may answer with an empty success, which the SDK takes for one; the host would delete a message that is in no queue.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
func send(ctx context.Context, c Client, in *sqs.SendMessageInput) error {
	out, err := c.SendMessage(ctx, in)
	if err != nil {
		return err
	}
	sum := md5.Sum([]byte(*in.MessageBody))
	if out == nil || aws.ToString(out.MessageId) == "" || aws.ToString(out.MD5OfMessageBody) != hex.EncodeToString(sum[:]) {
		return errUnconfirmed
	}
	return nil
}

// removeHostAttribute removes an attribute that Copy added, and reports whether there was one. If it replaced an attribute
// of m, for example the reason of an earlier rejection, it restores that.
func removeHostAttribute(in *sqs.SendMessageInput, m *sqsonce.Message, name string) bool {
	sent, exists := in.MessageAttributes[name]
	original, replaced := m.Attributes[name]
	switch {
	case !exists, replaced && aws.ToString(sent.StringValue) == original.String:
		return false
	case replaced:
		in.MessageAttributes[name] = value(original)
	default:
		delete(in.MessageAttributes, name)
	}
	return true
}

// IsTooLarge reports whether SQS refused a message for its size: only the text of the error says so. The limit is the
// queue's MaximumMessageSize: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html
func IsTooLarge(err error) bool {
	e, ok := errors.AsType[smithy.APIError](err)
	if !ok || sdkhttp.Unanswered(err) {
		return false
	}
	switch strings.TrimPrefix(e.ErrorCode(), "AWS.SimpleQueueService.") {
	case "InvalidParameterValue", "InvalidParameterValueException":
		return strings.Contains(e.ErrorMessage(), "shorter than")
	}
	return false
}
