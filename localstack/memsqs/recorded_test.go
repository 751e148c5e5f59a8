package memsqs_test

import (
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"
)

// refusedAs expects an error with the code and the text that AWS was recorded to answer with.
func (x *fixture) refusedAs(err error, code, text string) {
	x.Helper()
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok || api.ErrorCode() != code || api.ErrorMessage() != text {
		x.Errorf("got %v, want %s: %s", err, code, text)
	}
}

// Texts of errors that LocalStack's tests of SQS have recorded on AWS, by the names of those tests.
func TestRecordedErrors(t *testing.T) {
	t.Parallel()
	standard(t, func(x *fixture) {
		const attributeName, attributeValue = "InvalidAttributeName", "InvalidAttributeValue"
		x.refusedAs(x.try("a", attribute("ErrorDetails", "String", "")), invalidValue,
			"Message (user) attribute 'ErrorDetails' must contain a non-empty value of type 'String'.") // test_send_message_with_empty_string_attribute
		x.refusedAs(x.set(attrs{"FifoQueue": "true"}), attributeName, "Unknown Attribute FifoQueue.") // test_set_unsupported_attribute_fifo
		x.ok(x.set(attrs{"KmsMasterKeyId": "testKeyId"}))
		x.refusedAs(x.set(attrs{"SqsManagedSseEnabled": "True"}), attributeName, // test_sse_kms_and_sqs_are_mutually_exclusive
			"You can use one type of server-side encryption (SSE) at one time. You can either enable KMS SSE or SQS SSE.")
		_, err := x.c.CancelMessageMoveTask(x.Context(), &sqs.CancelMessageMoveTaskInput{TaskHandle: aws.String("garbage")})
		x.refusedAs(err, invalidValue, "Value for parameter TaskHandle is invalid.") // test_cancel_with_invalid_task_handle
		_, err = x.c.ReceiveMessage(x.Context(), &sqs.ReceiveMessageInput{QueueUrl: &x.url, WaitTimeSeconds: 21})
		x.refusedAs(err, invalidValue, "Value 21 for parameter WaitTimeSeconds is invalid. Reason: Must be >= 0 and <= 20, if provided.")
		x.url = x.create("jobs.fifo", attrs{"FifoQueue": "True", "ContentBasedDeduplication": "TRUE"})
		x.refusedAs(x.set(attrs{"FifoQueue": "false"}), attributeValue, // test_set_unsupported_attribute_fifo
			"Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported.")
		x.ok(x.set(attrs{"FifoQueue": "TRUE"}))
		if d := cmp.Diff(attrs{"FifoQueue": "true", "ContentBasedDeduplication": "true"}, x.attributes("FifoQueue", "ContentBasedDeduplication")); d != "" {
			x.Errorf("attributes (-want +got):\n%s", d)
		}
		if again := x.create("jobs.fifo", attrs{"FifoQueue": "TRUE"}); again != x.url {
			x.Errorf("created %s", again)
		}
	})
}

// Encryption with a key of KMS ends that of SQS, until the key is removed.
func TestEncryption(t *testing.T) {
	t.Parallel()
	standard(t, func(x *fixture) {
		want := func(value string) {
			x.Helper()
			if got := x.attributes("SqsManagedSseEnabled")["SqsManagedSseEnabled"]; got != value {
				x.Errorf("SqsManagedSseEnabled is %s, want %s", got, value)
			}
		}
		want("true")
		x.ok(x.set(attrs{"KmsMasterKeyId": "testKeyId"})) // test_sse_queue_attributes
		want("false")
		x.ok(x.set(attrs{"KmsMasterKeyId": "", "SqsManagedSseEnabled": "true"}))
		want("true")
	})
}

// A move that cannot find its destination any more says so, and the speed of a move is in its description only where it was asked for.
func TestRecordedMoves(t *testing.T) {
	t.Parallel()
	standard(t, func(x *fixture) {
		dead, to := x.create("dead", nil), x.create("to", nil)
		x.ok(x.set(attrs{"RedrivePolicy": `{"deadLetterTargetArn":"` + arn("dead") + `","maxReceiveCount":1}`}))
		list := func() types.ListMessageMoveTasksResultEntry {
			out, err := x.c.ListMessageMoveTasks(x.Context(), &sqs.ListMessageMoveTasksInput{SourceArn: aws.String(arn("dead"))})
			x.ok(err)
			return out.Results[0]
		}
		move := func(perSecond *int32) *string {
			out, err := x.c.StartMessageMoveTask(x.Context(), &sqs.StartMessageMoveTaskInput{
				SourceArn: aws.String(arn("dead")), DestinationArn: aws.String(arn("to")), MaxNumberOfMessagesPerSecond: perSecond,
			})
			x.ok(err)
			return out.TaskHandle
		}
		first := move(nil)
		if got := list(); got.MaxNumberOfMessagesPerSecond != nil { // test_basic_move_task_workflow
			x.Errorf("%d a second, want none", *got.MaxNumberOfMessagesPerSecond)
		}
		source := x.url
		x.url = dead
		x.send("a")
		x.send("b")
		move(aws.Int32(1))
		_, err := x.c.DeleteQueue(x.Context(), &sqs.DeleteQueueInput{QueueUrl: &to})
		x.ok(err)
		time.Sleep(2 * time.Second)
		got := list() // test_move_task_delete_destination_queue_while_running
		if aws.ToString(got.Status) != "FAILED" || aws.ToString(got.FailureReason) != noQueue || aws.ToInt32(got.MaxNumberOfMessagesPerSecond) != 1 {
			x.Errorf("got %s, %s, %d a second", aws.ToString(got.Status), aws.ToString(got.FailureReason), aws.ToInt32(got.MaxNumberOfMessagesPerSecond))
		}
		_, err = x.c.DeleteQueue(x.Context(), &sqs.DeleteQueueInput{QueueUrl: &source})
		x.ok(err)
		_, err = x.c.DeleteQueue(x.Context(), &sqs.DeleteQueueInput{QueueUrl: &dead})
		x.ok(err)
		_, err = x.c.CancelMessageMoveTask(x.Context(), &sqs.CancelMessageMoveTaskInput{TaskHandle: first})
		x.refusedAs(err, "ResourceNotFoundException", "The resource that you specified for the SourceArn parameter doesn't exist.") // test_cancel_with_invalid_source_arn_in_task_handle
	})
}
