package sqstest

import (
	"errors"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// What AWS was recorded to answer beyond what it documents: see Recorded in the package's comment.
var recordedCases = []testCase{
	{name: "recorded/attribute without a value", run: recordedEmptyAttribute},
	{name: "recorded/attributes by an asterisk", run: recordedAsterisk},
	{name: "recorded/kind of a queue cannot change", run: recordedKind},
	{name: "recorded/one encryption at a time", run: recordedEncryption},
	{name: "recorded/KMS ends the encryption by SQS", run: recordedKMS},
	{name: "recorded/move handle that is none", run: recordedHandle},
	{name: "recorded/speed of a move where it was asked for", passes: 2 * time.Second, run: recordedSpeed},
	{name: "recorded/move whose destination was deleted", passes: 3 * time.Second, run: recordedDestination},
}

// says expects an AWS error with the code and the text.
func (x *exam) says(err error, errorCode, text string) {
	x.fails(text, err, errorCode)
	if api, ok := errors.AsType[smithy.APIError](err); !ok || api.ErrorMessage() != text {
		x.fatalf("got %v, want the text %q", err, text)
	}
}

// Recorded: test_send_message_with_empty_string_attribute.
func recordedEmptyAttribute(x *exam) {
	_, err := x.trySend(x.standard(), "a", func(in *sqs.SendMessageInput) {
		in.MessageAttributes = map[string]types.MessageAttributeValue{"ErrorDetails": {DataType: ptr("String"), StringValue: ptr("")}}
	})
	x.says(err, invalidValue, "Message (user) attribute 'ErrorDetails' must contain a non-empty value of type 'String'.")
}

// Recorded: test_receive_message_message_attribute_names_filters, all_wildcard_asterisk.
func recordedAsterisk(x *exam) {
	q := x.standard()
	x.send(q, "a", withAttributes(types.MessageAttributeValue{DataType: ptr("String"), StringValue: ptr("v")}))
	if m := x.one(q, "a", func(in *sqs.ReceiveMessageInput) { in.MessageAttributeNames = []string{"*"} }); len(m.MessageAttributes) != 1 {
		x.fatalf("got attributes %v, want all", m.MessageAttributes)
	}
}

// Recorded: test_set_unsupported_attribute_fifo.
func recordedKind(x *exam) {
	x.says(x.set(x.standard(), attrs{"FifoQueue": "true"}), "InvalidAttributeName", "Unknown Attribute FifoQueue.")
	x.says(x.set(x.fifo(), attrs{"FifoQueue": "false"}), "InvalidAttributeValue", "Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported.")
}

// Recorded: test_sse_kms_and_sqs_are_mutually_exclusive.
func recordedEncryption(x *exam) {
	q := x.standard(attrs{"KmsMasterKeyId": "testKeyId", "SqsManagedSseEnabled": "false"})
	x.says(x.set(q, attrs{"SqsManagedSseEnabled": "true"}), "InvalidAttributeName",
		"You can use one type of server-side encryption (SSE) at one time. You can either enable KMS SSE or SQS SSE.")
}

// Recorded: test_sse_queue_attributes.
func recordedKMS(x *exam) {
	q := x.standard()
	x.ok(x.set(q, attrs{"KmsMasterKeyId": "testKeyId", "KmsDataKeyReusePeriodSeconds": "6000"}))
	x.has(q, attrs{"KmsMasterKeyId": "testKeyId", "KmsDataKeyReusePeriodSeconds": "6000", "SqsManagedSseEnabled": "false"})
}

// Recorded: test_cancel_with_invalid_task_handle.
func recordedHandle(x *exam) {
	_, err := x.c.CancelMessageMoveTask(x.ctx, &sqs.CancelMessageMoveTaskInput{TaskHandle: ptr("foobared")})
	x.says(err, invalidValue, "Value for parameter TaskHandle is invalid.")
}

// newestMove returns the newest move from a dead-letter queue.
func (x *exam) newestMove(dlq *queue) types.ListMessageMoveTasksResultEntry {
	out, err := x.c.ListMessageMoveTasks(x.ctx, &sqs.ListMessageMoveTasksInput{SourceArn: ptr(x.arn(dlq))})
	x.ok(err)
	if len(out.Results) == 0 {
		x.fatalf("no move is listed")
	}
	return out.Results[0]
}

// Recorded: test_basic_move_task_workflow has none, test_move_task_cancel has one.
func recordedSpeed(x *exam) {
	_, dlq, _ := x.dead()
	x.move(dlq, nil)
	if t := x.newestMove(dlq); t.MaxNumberOfMessagesPerSecond != nil {
		x.fatalf("%d a second, want none", *t.MaxNumberOfMessagesPerSecond)
	}
}

// Recorded: test_move_task_delete_destination_queue_while_running.
func recordedDestination(x *exam) {
	dlq, to := x.standard(), x.standard()
	x.standard(attrs{"RedrivePolicy": x.policy(dlq, 1)})
	x.sendAll(dlq, "a", "b", "c", "d", "e", "f")
	_, err := x.c.StartMessageMoveTask(x.ctx, &sqs.StartMessageMoveTaskInput{
		SourceArn: ptr(x.arn(dlq)), DestinationArn: ptr(x.arn(to)), MaxNumberOfMessagesPerSecond: aws.Int32(1),
	})
	x.ok(err)
	_, err = x.c.DeleteQueue(x.ctx, &sqs.DeleteQueueInput{QueueUrl: &to.url})
	x.ok(err)
	x.pass(3 * time.Second)
	t := x.newestMove(dlq)
	if status, reason := aws.ToString(t.Status), aws.ToString(t.FailureReason); status != "FAILED" || !strings.HasSuffix(reason, noQueue) || aws.ToInt32(t.MaxNumberOfMessagesPerSecond) != 1 {
		x.fatalf("status %s, reason %s, %d a second", status, reason, aws.ToInt32(t.MaxNumberOfMessagesPerSecond))
	}
}
