package sqstest

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/sqsonce/sqsonce/internal/suite"
)

// What AWS was recorded to answer beyond what it documents: see Recorded in the package's comment.
var recordedCases = []testCase{
	// Recorded: test_sqs_fifo_same_dedup_id_different_message_groups sends such values, test_fifo_change_to_high_throughput_after_creation
	// has them in the answer.
	{name: "recorded/booleans in any case", run: func(x *exam) {
		q := x.fifo(attrs{"FifoQueue": "True", "ContentBasedDeduplication": "False"})
		x.has(q, attrs{"FifoQueue": "true", "ContentBasedDeduplication": "false"})
	}},
	// Recorded: test_posting_to_queue_via_queue_name.
	{name: "recorded/queue by its name", run: func(x *exam) {
		q := x.standard()
		x.send(&queue{url: q.name}, "a")
		x.one(q, "a")
	}},
	// Recorded: test_send_message_with_invalid_string_attributes, whose name is taken and whose characters are not.
	{name: "recorded/attribute names in other scripts", run: func(x *exam) {
		q := x.standard()
		x.send(q, "a", named("attr.1øßä"))
		if m := x.one(q, "a"); str(m.MessageAttributes["attr.1øßä"].StringValue) != "v" {
			x.fatalf("got attributes %v, want attr.1øßä", m.MessageAttributes)
		}
		for _, c := range []string{"!", `"`, "§", "(", "?"} {
			_, err := x.trySend(q, "a", named("Invalid-"+c+"-attr"))
			x.fails("a name with "+c, err, invalidValue)
		}
	}},
	// Recorded: test_receive_message_message_attribute_names_filters, all_wildcard_asterisk.
	{name: "recorded/attributes by an asterisk", run: func(x *exam) {
		q := x.standard()
		x.send(q, "a", withAttributes(types.MessageAttributeValue{DataType: ptr("String"), StringValue: ptr("v")}))
		if m := x.one(q, "a", func(in *sqs.ReceiveMessageInput) { in.MessageAttributeNames = []string{"*"} }); len(m.MessageAttributes) != 1 {
			x.fatalf("got attributes %v, want all", m.MessageAttributes)
		}
	}},
	// Recorded: test_aws_trace_header_propagation.
	{name: "recorded/trace header of the request", run: func(x *exam) {
		const trace = "Root=1-3152b799-8954dae64eda91bc9a23a7e8;Parent=7fa8c0f79203be72;Sampled=1"
		q := x.standard()
		suite.Get(x.c.SendMessage(x.ctx, &sqs.SendMessageInput{QueueUrl: &q.url, MessageBody: ptr("a")}, func(o *sqs.Options) {
			o.APIOptions = append(o.APIOptions, smithyhttp.SetHeaderValue("X-Amzn-Trace-Id", trace))
		}))
		if got := x.one(q, "a").Attributes["AWSTraceHeader"]; got != trace {
			x.fatalf("AWSTraceHeader %q, want %q", got, trace)
		}
	}},
	// Recorded: test_tag_untag_queue, test_receive_empty_queue and test_sqs_permission_lifecycle, in 2024 and later: no tags, no messages and
	// no attributes are no member, and not an empty one.
	{name: "recorded/nothing is absent, not empty", run: func(x *exam) {
		q := x.standard()
		for op, members := range map[string]string{"ListQueueTags": "", "ReceiveMessage": "", "GetQueueAttributes": `,"AttributeNames":["Policy"]`} {
			if status, _, out := x.call(op, `{"QueueUrl":"`+q.url+`"`+members+`}`, true); status != http.StatusOK || len(out) > 0 {
				x.fatalf("%s: answered %d %v, want an empty object", op, status, out)
			}
		}
	}},
	// Recorded: test_set_unsupported_attribute_fifo, test_set_unsupported_attribute_standard. API CreateQueue: "You can't change the queue type
	// after you create it".
	{name: "recorded/kind of a queue cannot change", run: func(x *exam) {
		standard, fifo := x.standard(), x.fifo()
		for _, v := range []string{"true", "false"} {
			x.says(x.set(standard, attrs{"FifoQueue": v}), "InvalidAttributeName", "Unknown Attribute FifoQueue.")
		}
		x.ok(x.set(fifo, attrs{"FifoQueue": "true"}))
		x.says(x.set(fifo, attrs{"FifoQueue": "false"}), "InvalidAttributeValue", "Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported.")
	}},
	// Recorded: test_sse_kms_and_sqs_are_mutually_exclusive.
	{name: "recorded/one encryption at a time", run: func(x *exam) {
		x.says(x.set(x.standard(), attrs{"KmsMasterKeyId": "testKeyId", "SqsManagedSseEnabled": "true"}), "InvalidAttributeName",
			"You can use one type of server-side encryption (SSE) at one time. You can either enable KMS SSE or SQS SSE.")
	}},
	// Recorded: test_set_queue_attributes_default_values, get-queue-attributes-after-update.
	{name: "recorded/KMS ends the encryption by SQS", run: func(x *exam) {
		q := x.standard()
		x.ok(x.set(q, attrs{"KmsMasterKeyId": "testKeyId", "KmsDataKeyReusePeriodSeconds": "6000"}))
		x.has(q, attrs{"KmsMasterKeyId": "testKeyId", "KmsDataKeyReusePeriodSeconds": "6000", "SqsManagedSseEnabled": "false"})
	}},
	// As above, get-queue-attributes-after-set-to-defaults.
	{name: "recorded/period of a key without the key", run: func(x *exam) {
		q := x.standard()
		x.ok(x.set(q, attrs{"KmsMasterKeyId": "testKeyId", "KmsDataKeyReusePeriodSeconds": "6000"}))
		x.ok(x.set(q, attrs{"KmsMasterKeyId": "", "KmsDataKeyReusePeriodSeconds": "300"}))
		x.has(q, attrs{"SqsManagedSseEnabled": "false"})
		got := x.attributes(q)
		for _, name := range []string{"KmsMasterKeyId", "KmsDataKeyReusePeriodSeconds"} {
			if v, there := got[name]; there {
				x.fatalf("%s %q, want none", name, v)
			}
		}
	}},
	// Recorded: test_cancel_with_invalid_task_handle.
	{name: "recorded/move handle that is none", run: func(x *exam) {
		_, err := x.c.CancelMessageMoveTask(x.ctx, &sqs.CancelMessageMoveTaskInput{TaskHandle: ptr("foobared")})
		x.says(err, invalidValue, "Value for parameter TaskHandle is invalid.")
	}},
	// Recorded: test_move_task_delete_destination_queue_while_running.
	{name: "recorded/move whose destination was deleted", passes: 3 * time.Second, run: func(x *exam) {
		dlq, to := x.standard(), x.standard()
		x.standard(attrs{"RedrivePolicy": x.policy(dlq, 1)})
		x.sendAll(dlq, "a", "b", "c", "d", "e", "f")
		suite.Get(x.c.StartMessageMoveTask(x.ctx, &sqs.StartMessageMoveTaskInput{
			SourceArn: ptr(x.arn(dlq)), DestinationArn: ptr(x.arn(to)), MaxNumberOfMessagesPerSecond: aws.Int32(1),
		}))
		suite.Get(x.c.DeleteQueue(x.ctx, &sqs.DeleteQueueInput{QueueUrl: &to.url}))
		x.pass(3 * time.Second)
		t := x.newestMove(dlq)
		if status, reason := aws.ToString(t.Status), aws.ToString(t.FailureReason); status != "FAILED" || !strings.HasSuffix(reason, noQueue) || aws.ToInt32(t.MaxNumberOfMessagesPerSecond) != 1 {
			x.fatalf("status %s, reason %s, %d a second", status, reason, aws.ToInt32(t.MaxNumberOfMessagesPerSecond))
		}
	}},
	// Recorded: test_fifo_message_group_visibility_after_change_message_visibility, and with three groups the test before it. Its authors add
	// that AWS promises no order of groups.
	{name: "recorded/groups visible again behind those that wait", passes: 2 * time.Second, run: func(x *exam) {
		q := x.fifo(attrs{"VisibilityTimeout": "1"})
		x.sendAll(q, "a1", "b1", "b2", "c1", "a2")
		x.take(q, 3, "a1", "a2", "b1")
		x.pass(2 * time.Second)
		x.take(q, 10, "c1", "a1", "a2", "b1", "b2")
	}},
	// Recorded: test_fifo_message_group_visibility_after_delete, the order that was AWS's: of what was never received the oldest is first.
	{name: "recorded/groups free by deletes in the order of sending", run: func(x *exam) {
		q := x.fifo()
		x.sendAll(q, "a1", "b1", "a2", "b2", "a3", "a4", "c1")
		x.delete(q, x.take(q, 2, "a1", "a2")...)
		x.take(q, 10, "b1", "b2", "a3", "a4", "c1")
	}},
	// Recorded: test_fifo_group_visibility_extends_with_change_message_visibility: when the others of its receive have become visible again,
	// those before the hidden one are received, and none behind it.
	{name: "recorded/group before a message that stays hidden", passes: 2 * time.Second, run: func(x *exam) {
		var queues []*queue
		for hidden := range 3 {
			q := x.fifo(attrs{"VisibilityTimeout": "1"})
			x.sendAll(q, "a0", "a1", "a2")
			x.visibility(q, x.take(q, 5, "a0", "a1", "a2")[hidden], 30)
			queues = append(queues, q)
		}
		x.pass(2 * time.Second)
		x.none(queues[0])
		x.take(queues[1], 5, "a0")
		x.take(queues[2], 5, "a0", "a1")
	}},
}

// says expects an AWS error with the code and the text.
func (x *exam) says(err error, errorCode, text string) {
	x.fails(text, err, errorCode)
	if api, ok := errors.AsType[smithy.APIError](err); !ok || api.ErrorMessage() != text {
		x.fatalf("got %v, want the text %q", err, text)
	}
}

// newestMove returns the newest move from a dead-letter queue.
func (x *exam) newestMove(dlq *queue) types.ListMessageMoveTasksResultEntry {
	out := suite.Get(x.c.ListMessageMoveTasks(x.ctx, &sqs.ListMessageMoveTasksInput{SourceArn: ptr(x.arn(dlq))}))
	if len(out.Results) == 0 {
		x.fatalf("no move is listed")
	}
	return out.Results[0]
}
