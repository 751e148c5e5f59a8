package sqstest

import (
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// The texts of errors, where AWS was recorded.
var recordedTextCases = []testCase{
	// Recorded: test_send_message_with_empty_string_attribute.
	{name: "recorded text/attribute without a value", run: func(x *exam) {
		_, err := x.trySend(x.standard(), "a", func(in *sqs.SendMessageInput) {
			in.MessageAttributes = map[string]types.MessageAttributeValue{"ErrorDetails": {DataType: ptr("String"), StringValue: ptr("")}}
		})
		x.says(err, invalidValue, "Message (user) attribute 'ErrorDetails' must contain a non-empty value of type 'String'.")
	}},
	// Recorded: test_send_receive_wait_time_seconds, test_send_receive_max_number_of_messages.
	{name: "recorded text/wait and number of messages", run: func(x *exam) {
		q := x.standard()
		for _, n := range []int32{21, -1} {
			_, err := x.c.ReceiveMessage(x.ctx, &sqs.ReceiveMessageInput{QueueUrl: &q.url, WaitTimeSeconds: n})
			x.says(err, invalidValue, fmt.Sprintf("Value %d for parameter WaitTimeSeconds is invalid. Reason: Must be >= 0 and <= 20, if provided.", n))
		}
		_, err := x.c.ReceiveMessage(x.ctx, &sqs.ReceiveMessageInput{QueueUrl: &q.url, MaxNumberOfMessages: 11})
		x.says(err, invalidValue, "Value 11 for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and 10, if provided.")
	}},
	// Recorded: test_create_standard_queue_with_fifo_attribute_raises_error.
	{name: "recorded text/FIFO attributes of a standard queue", run: func(x *exam) {
		refused := func(name, value, text string) {
			_, err := x.tryCreate(x.name(), attrs{name: value})
			x.says(err, "InvalidAttributeName", text)
		}
		refused("FifoQueue", "false", "Unknown Attribute FifoQueue.")
		refused("ContentBasedDeduplication", "false", "Unknown Attribute ContentBasedDeduplication.")
		refused("DeduplicationScope", "queue", "You can specify the DeduplicationScope only when FifoQueue is set to true.")
		refused("FifoThroughputLimit", "perQueue", "You can specify the FifoThroughputLimit only when FifoQueue is set to true.")
	}},
	// Recorded: test_fifo_queue_send_message_with_delay_seconds_fails. API SendMessage, DelaySeconds: "When you set FifoQueue, you can't set
	// DelaySeconds per message."
	{name: "recorded text/delay of a FIFO message", run: func(x *exam) {
		_, err := x.trySend(x.fifo(), "a1", delay(2))
		x.says(err, invalidValue, "Value 2 for parameter DelaySeconds is invalid. Reason: The request include parameter that is not valid for this queue type.")
	}},
	// Recorded: test_send_message_to_standard_queue_with_invalid_message_group_id, test_message_deduplication_id_invalid.
	{name: "recorded text/groups and deduplication IDs", run: func(x *exam) {
		standard, fifo := x.standard(), x.fifo()
		for _, v := range []string{"", strings.Repeat("a", 129), "group 123"} {
			const reason = "Value %s for parameter %s is invalid. Reason: %[2]s can only include alphanumeric and punctuation characters. 1 to 128 in length."
			_, err := x.trySend(standard, "a", inGroup(&v, nil))
			x.says(err, invalidValue, fmt.Sprintf(reason, v, "MessageGroupId"))
			_, err = x.trySend(fifo, "a1", inGroup(ptr("a"), &v))
			x.says(err, invalidValue, fmt.Sprintf(reason, v, "MessageDeduplicationId"))
		}
	}},
	// Recorded: test_posting_to_fifo_requires_deduplicationid_group_id, test_send_batch_missing_message_group_id_for_fifo_queue,
	// test_send_batch_missing_deduplication_id_for_fifo_queue. An entry without one refuses its batch.
	{name: "recorded text/missing groups and deduplication IDs", run: func(x *exam) {
		const noGroup, noID = "The request must contain the parameter MessageGroupId.", "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly"
		q := x.fifo()
		_, err := x.trySend(q, "a1", inGroup(nil, ptr("a1")))
		x.says(err, missing, noGroup)
		_, err = x.trySend(q, "a1", inGroup(ptr("a"), nil))
		x.says(err, invalidValue, noID)
		e := fifoEntries("a1", "a2")
		e[1].MessageGroupId = nil
		_, err = x.trySendBatch(q, e)
		x.says(err, invalidValue, noGroup)
		e[1].MessageGroupId, e[1].MessageDeduplicationId = ptr("a"), nil
		_, err = x.trySendBatch(q, e)
		x.says(err, invalidValue, noID)
		x.none(q)
	}},
	// Recorded: test_too_many_entries_in_batch_request, test_delete_message_batch_with_too_large_batch,
	// test_change_message_visibility_batch_with_too_large_batch.
	{name: "recorded text/too many entries", run: func(x *exam) {
		const text = "Maximum number of entries per request are 10. You have sent 20."
		q := x.standard()
		var bodies []string
		var handles []*string
		for range 20 {
			bodies, handles = append(bodies, "a"), append(handles, ptr("garbage"))
		}
		for _, err := range x.tryBatches(q, entries(bodies...), deleteEntries(handles...), visibilityEntries(123, handles...)) {
			x.says(err, "TooManyEntriesInBatchRequest", text)
		}
		x.none(q)
	}},
	// Recorded: test_invalid_batch_id, test_delete_message_batch_invalid_msg_id.
	{name: "recorded text/IDs of entries", run: func(x *exam) {
		q := x.standard()
		for _, id := range []string{"", strings.Repeat("testLongId", 10), "invalid:id"} {
			e := deleteEntries(ptr("testHandle1"))
			e[0].Id = &id
			_, err := x.c.DeleteMessageBatch(x.ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &q.url, Entries: e})
			x.says(err, "InvalidBatchEntryId", "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long.")
		}
	}},
	// Recorded: test_send_oversized_message, test_send_message_batch_with_oversized_contents, and test_send_batch_message_size, where the text
	// about an entry is another one.
	{name: "recorded text/message or batch too long", run: func(x *exam) {
		q := x.standard()
		_, err := x.trySend(q, strings.Repeat("a", limit+1))
		x.says(err, invalidValue, "One or more parameters are invalid. Reason: Message must be shorter than 1048576 bytes.")
		_, err = x.trySendBatch(q, entries(strings.Repeat("a", limit), "a"))
		x.says(err, "BatchRequestTooLong", "Batch requests cannot be longer than 1048576 bytes. You have sent 1048577 bytes.")
		x.ok(x.set(q, attrs{"MaximumMessageSize": "1024"}))
		out := x.sendBatch(q, entries(strings.Repeat("a", 1024), strings.Repeat("a", 1025)))
		x.failed(out.Failed, "1", invalidValue)
		if got, want := str(out.Failed[0].Message), "One or more parameters cannot be validated. Reason: Message must be shorter than 1024 bytes."; got != want {
			x.fatalf("an entry failed with %q, want %q", got, want)
		}
	}},
	// Recorded: test_invalid_dead_letter_arn_rejected_before_lookup.
	{name: "recorded text/redrive policy without an ARN", run: func(x *exam) {
		const policy = `{"deadLetterTargetArn": "dummy", "maxReceiveCount": 42}`
		_, err := x.tryCreate(x.name(), attrs{"RedrivePolicy": policy})
		x.says(err, invalidValue, "Value "+policy+" for parameter RedrivePolicy is invalid. Reason: Invalid value for deadLetterTargetArn.")
	}},
	// Recorded: test_create_queue_with_different_attributes_raises_exception.
	{name: "recorded text/queue that exists", run: func(x *exam) {
		q := x.standard(attrs{"ReceiveMessageWaitTimeSeconds": "1", "DelaySeconds": "1"})
		_, err := x.tryCreate(q.name, attrs{"ReceiveMessageWaitTimeSeconds": "1", "DelaySeconds": "2"})
		x.says(err, "QueueAlreadyExists", "A queue already exists with the same name and a different value for attribute DelaySeconds")
	}},
	// Recorded: test_delete_message_with_illegal_receipt_handle.
	{name: "recorded text/handle that is none", run: func(x *exam) {
		x.says(x.tryDelete(x.standard(), ptr("garbage")), invalidHandle, `The input receipt handle "garbage" is not a valid receipt handle.`)
	}},
	// Recorded: test_change_visibility_on_deleted_message_raises_invalid_parameter_value.
	{name: "recorded text/handle of a deleted message", run: func(x *exam) {
		q := x.standard()
		m := x.sendOne(q, "a")
		x.delete(q, m)
		x.says(x.tryVisibility(q, m.ReceiptHandle, 42), invalidValue,
			"Value "+*m.ReceiptHandle+" for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not available for visibility timeout change.")
	}},
	// Recorded: test_fifo_delete_after_visibility_timeout, test_fifo_delete_message_with_expired_receipt_handle.
	{name: "recorded text/expired handle of a FIFO queue", passes: 2 * time.Second, run: func(x *exam) {
		q := x.fifo(attrs{"VisibilityTimeout": "1"})
		m := x.sendOne(q, "a1")
		x.pass(2 * time.Second)
		x.says(x.tryDelete(q, m.ReceiptHandle), invalidValue, "Value "+*m.ReceiptHandle+" for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired.")
		x.one(q, "a1")
	}},
	// Recorded: test_cancel_with_invalid_source_arn_in_task_handle, test_cancel_with_invalid_task_id_in_task_handle, test_start_multiple_move_tasks.
	// A handle is JSON in base64.
	{name: "recorded text/moves and their handles", run: func(x *exam) {
		_, dlq, _ := x.dead()
		x.sendAll(dlq, "b", "c")
		start := func() error {
			_, err := x.c.StartMessageMoveTask(x.ctx, &sqs.StartMessageMoveTaskInput{SourceArn: ptr(x.arn(dlq)), MaxNumberOfMessagesPerSecond: ptr(int32(1))})
			return err
		}
		cancel := func(source string) error {
			handle := base64.StdEncoding.EncodeToString([]byte(`{"taskId":"10f57157-fc38-4da9-a113-4de7e12d05aa","sourceArn":"` + source + `"}`))
			_, err := x.c.CancelMessageMoveTask(x.ctx, &sqs.CancelMessageMoveTaskInput{TaskHandle: &handle})
			return err
		}
		x.says(cancel(x.arn(dlq)+"-unknown"), "ResourceNotFound", "The resource that you specified for the SourceArn parameter doesn't exist.")
		x.says(cancel(x.arn(dlq)), "ResourceNotFound", "Task does not exist.")
		x.ok(start())
		x.says(start(), invalidValue, "There is already a task running. Only one active task is allowed for a source queue arn at a given time.")
	}},
	// Recorded: ballerina-platform/module-ballerinax-aws.sqs, whose tests run on AWS; grafana/k6-jslib-aws pull request 65; and the text about a
	// body that users reported.
	{name: "recorded text/empty batches, types and characters", run: func(x *exam) {
		q := x.standard()
		for i, err := range x.tryBatches(q, []types.SendMessageBatchRequestEntry{}, []types.DeleteMessageBatchRequestEntry{}, []types.ChangeMessageVisibilityBatchRequestEntry{}) {
			x.says(err, "EmptyBatchRequest", "There should be at least one "+[]string{"SendMessage", "DeleteMessage", "ChangeMessageVisibility"}[i]+"BatchRequestEntry in the request.")
		}
		_, err := x.trySend(q, "a", withAttributes(types.MessageAttributeValue{DataType: ptr("Text"), StringValue: ptr("v")}))
		x.says(err, invalidValue, "The type of message (user) attribute 'a' is invalid. You must use only the following supported type prefixes: Binary, Number, String.")
		_, err = x.trySend(q, "\uffff")
		x.says(err, "InvalidMessageContents", "Invalid binary character '#xFFFF' was found in the message body, the set of allowed characters is #x9 | #xA | #xD | [#x20-#xD7FF] | [#xE000-#xFFFD] | [#x10000-#x10FFFF].")
	}},
	// Recorded: test_source_needs_redrive_policy, test_destination_needs_to_exist. API StartMessageMoveTask: "limited to supporting message
	// redrive from queues that are configured as dead-letter queues (DLQs) of other Amazon SQS queues only."
	{name: "recorded text/moves that cannot be", run: func(x *exam) {
		q, dlq := x.standard(), x.standard()
		start := func(from, to string) error {
			_, err := x.c.StartMessageMoveTask(x.ctx, &sqs.StartMessageMoveTaskInput{SourceArn: &from, DestinationArn: &to})
			return err
		}
		x.says(start(x.arn(dlq), x.arn(q)), invalidValue, "Source queue must be configured as a Dead Letter Queue.")
		x.ok(x.set(q, attrs{"RedrivePolicy": x.policy(dlq, 1)}))
		x.says(start(x.arn(dlq), strings.TrimSuffix(x.arn(q), q.name)+x.name()), "ResourceNotFound",
			"The resource that you specified for the DestinationArn parameter doesn't exist.")
	}},
}

// ChangeMessageVisibility with handles of old receives. The documented and reported errors pass in "visibility/change after expiry has no
// effect" and "handle/change with a superseded one"; here only what AWS was recorded to answer does.
var recordedHandleCases = []testCase{
	// Recorded: test_change_message_visibility_after_visibility_timeout_expiration. Whether the message is hidden again was not.
	{name: "recorded/change after expiry succeeds", passes: 2 * time.Second, run: func(x *exam) {
		q := x.standard(attrs{"VisibilityTimeout": "1"})
		m := x.sendOne(q, "a")
		x.pass(2 * time.Second)
		x.visibility(q, m, 2)
	}},
	// Recorded: test_terminate_visibility_timeout_after_receive.
	{name: "recorded/change with a superseded handle is performed", run: func(x *exam) {
		q := x.standard()
		first := x.sendOne(q, "a")
		x.visibility(q, first, 0)
		x.one(q, "a")
		x.visibility(q, first, 0)
		x.one(q, "a")
	}},
}
