package sqstest

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

var sizeCases = []testCase{
	{name: "size/a mebibyte accepted", run: mebibyte},
	{name: "size/a byte more refused", run: mebibyteAndOne},
	{name: "size/bytes count, not characters", run: bytesCount},
	{name: "size/attributes count", run: attributesCount},
	{name: "size/the trace header does not count", run: traceDoesNotCount},
	{name: "size/limit of the queue", run: queueLimit},
	{name: "size/limit of the queue, in a batch", run: queueLimitInBatch},
	{name: "size/batch of a mebibyte accepted", run: batchMebibyte},
	{name: "size/batch of a byte more refused", run: batchMebibyteAndOne},
	{name: "size/attributes count in a batch", run: batchAttributesCount},
}

const limit = 1 << 20

// API SendMessage: "The minimum size is one character. The maximum size is 1 MiB".
func mebibyte(x *exam) {
	q := x.standard()
	x.send(q, strings.Repeat("b", limit))
	x.one(q, strings.Repeat("b", limit))
}

// Recorded: test_send_oversized_message.
func mebibyteAndOne(x *exam) {
	q := x.standard()
	_, err := x.trySend(q, strings.Repeat("b", limit+1))
	x.fails("1 MiB and a byte", err, invalidValue)
	x.none(q)
}

// API SendMessage: the maximum is "1,048,576 bytes".
func bytesCount(x *exam) {
	q := x.standard(attrs{"MaximumMessageSize": "1024"})
	x.send(q, strings.Repeat("ä", 512))
	_, err := x.trySend(q, strings.Repeat("ä", 513))
	x.fails("513 characters of two bytes", err, invalidValue)
}

// Guide sqs-message-metadata: Message attributes ... are included in the message size restriction: name, type, value.
func attributesCount(x *exam) {
	q := x.standard(attrs{"MaximumMessageSize": "1024"})
	attribute := withAttributes(types.MessageAttributeValue{DataType: ptr("String"), StringValue: ptr("value")}) // 12 bytes with its name
	x.send(q, strings.Repeat("b", 1012), attribute)
	_, err := x.trySend(q, strings.Repeat("b", 1013), attribute)
	x.fails("1013 bytes and an attribute of 12", err, invalidValue)
}

// API SendMessage: "The size of a message system attribute doesn't count towards the total size of a message."
func traceDoesNotCount(x *exam) {
	q := x.standard(attrs{"MaximumMessageSize": "1024"})
	x.send(q, strings.Repeat("b", 1024), func(in *sqs.SendMessageInput) {
		in.MessageSystemAttributes = systemTrace("Root=1-5759e988-bd862e3fe1be46a994272793")
	})
}

// Recorded: test_send_message_with_updated_maximum_message_size. API SetQueueAttributes, MaximumMessageSize: "The limit of how many bytes a message can contain before Amazon SQS
// rejects it."
func queueLimit(x *exam) {
	q := x.standard(attrs{"MaximumMessageSize": "1024"})
	x.send(q, strings.Repeat("b", 1024))
	_, err := x.trySend(q, strings.Repeat("b", 1025))
	x.fails("1025 bytes", err, invalidValue)
}

// Recorded: test_send_message_batch_with_oversized_contents_with_updated_maximum_message_size: each entry has the queue's limit, the whole does not.
func queueLimitInBatch(x *exam) {
	q := x.standard(attrs{"MaximumMessageSize": "1024"})
	small := strings.Repeat("b", 1024)
	out := x.sendBatch(q, entries(small, small+"b", small))
	x.failed(out.Failed, "1", invalidValue)
	x.want(q, small, small)
}

// API SendMessageBatch: "The maximum allowed individual message size and the maximum total payload size (the sum of the
// individual lengths of all of the batched messages) are both 1 MiB".
func batchMebibyte(x *exam) {
	q := x.standard()
	half := strings.Repeat("b", limit/2)
	x.sendBatch(q, entries(half, half))
	x.want(q, half, half)
}

// Recorded: test_send_message_batch_with_oversized_contents.
func batchMebibyteAndOne(x *exam) {
	q := x.standard()
	half := strings.Repeat("b", limit/2)
	_, err := x.trySendBatch(q, entries(half, half+"b"))
	x.fails("1 MiB and a byte in two entries", err, "BatchRequestTooLong")
	x.none(q)
}

// As above: the second entry has the attribute that makes it too long.
func batchAttributesCount(x *exam) {
	q := x.standard()
	e := entries(strings.Repeat("b", limit/2), strings.Repeat("b", limit/2-11))
	e[1].MessageAttributes = map[string]types.MessageAttributeValue{"a": {DataType: ptr("String"), StringValue: ptr("value")}} // 12 bytes
	_, err := x.trySendBatch(q, e)
	x.fails("1 MiB and a byte with an attribute", err, "BatchRequestTooLong")
	x.none(q)
}
