package sqstest

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

var contentCases = []testCase{
	// API SendMessage: "The minimum size is one character."
	{name: "content/empty body refused", run: func(x *exam) {
		_, err := x.trySend(x.standard(), "")
		x.fails("empty body", err, missing)
	}},
	// API SendMessage, InvalidMessageContents: "#x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF".
	{name: "content/characters refused", run: func(x *exam) {
		q := x.standard()
		for _, c := range []string{"\x00", "\x08", "\x0b", "\x1f", "\ufffe", "\uffff"} {
			_, err := x.trySend(q, "before"+c+"after")
			x.fails("a body with "+strings.ToUpper(quote(c)), err, "InvalidMessageContents")
		}
		x.none(q)
	}},
	// API SendMessage, as above.
	{name: "content/characters accepted", run: func(x *exam) {
		q := x.standard()
		body := "\t\n\r \u007f\u0085\ud7ff\ue000\ufffd\U00010000\U0010ffff"
		x.send(q, body)
		x.one(q, body)
	}},
	// Recorded: test_invalid_string_attributes_cause_invalid_parameter_value_error. Guide sqs-message-metadata: the value of a String
	// attribute takes the same characters as a body.
	{name: "content/attribute value with a refused character", run: func(x *exam) {
		q := x.standard()
		for _, c := range []string{"\x00", "\x08", "\x0b"} {
			_, err := x.trySend(q, "a", withAttributes(types.MessageAttributeValue{DataType: ptr("String"), StringValue: &c}))
			x.fails("an attribute with "+quote(c), err, invalidValue)
		}
	}},
	// Guide sqs-message-metadata: A message can contain up to ten attributes.
	{name: "content/eleven attributes refused", run: func(x *exam) {
		q := x.standard()
		var eleven []types.MessageAttributeValue
		for range 11 {
			eleven = append(eleven, types.MessageAttributeValue{DataType: ptr("String"), StringValue: ptr("v")})
		}
		x.send(q, "ten", withAttributes(eleven[:10]...))
		_, err := x.trySend(q, "eleven", withAttributes(eleven...))
		x.fails("eleven attributes", err, invalidValue)
	}},
	// Recorded: test_send_message_with_empty_string_attribute. API SendMessage, MessageAttributes: name, type and value must not
	// be empty.
	{name: "content/attribute without a value refused", run: func(x *exam) {
		q := x.standard()
		for _, v := range []types.MessageAttributeValue{
			{DataType: ptr("String"), StringValue: ptr("")}, {DataType: ptr("String")}, {DataType: ptr("Number"), StringValue: ptr("")}, {DataType: ptr("Binary"), BinaryValue: []byte{}},
		} {
			_, err := x.trySend(q, "a", withAttributes(v))
			x.fails("an empty "+*v.DataType, err, invalidValue)
		}
	}},
	// Guide sqs-message-metadata: String, Number, and Binary; a custom type follows one of them and a period.
	{name: "content/attribute of an unknown type refused", run: func(x *exam) {
		q := x.standard()
		for _, dataType := range []string{"Text", "string", "Strings"} {
			_, err := x.trySend(q, "a", withAttributes(types.MessageAttributeValue{DataType: &dataType, StringValue: ptr("v")}))
			x.fails("type "+dataType, err, invalidValue)
		}
	}},
	// Guide sqs-message-metadata: Number attributes can store positive or negative numerical values.
	{name: "content/attribute number that is none refused", run: func(x *exam) {
		q := x.standard()
		x.send(q, "a", withAttributes(types.MessageAttributeValue{DataType: ptr("Number.int"), StringValue: ptr("12")}))
		_, err := x.trySend(q, "a", withAttributes(types.MessageAttributeValue{DataType: ptr("Number"), StringValue: ptr("twelve")}))
		x.fails("Number twelve", err, invalidValue)
	}},
	// API ReceiveMessage, MessageAttributeNames: "The name must not start with AWS-reserved prefixes such as AWS. or Amazon. (or
	// any casing variants)." "The name must not start or end with a period (.), and it should not have periods in succession
	// (..)." "The name can be up to 256 characters long."
	{name: "content/attribute names refused", run: func(x *exam) {
		q := x.standard()
		for _, name := range []string{".start", "end.", "two..periods", "AWS.name", "amazon.name", "a b", strings.Repeat("n", 257)} {
			_, err := x.trySend(q, "a", named(name))
			x.fails("name "+name, err, invalidValue)
		}
	}},
	// Guide sqs-message-metadata: A-Z, a-z, 0-9, underscore (_), hyphen (-), and period (.), up to 256 characters.
	{name: "content/attribute names accepted", run: func(x *exam) {
		q := x.standard()
		for _, name := range []string{"a.B-c_1", "AWSname", strings.Repeat("n", 256)} {
			x.send(q, "a", named(name))
		}
	}},
	// API SendMessage, MessageSystemAttributes: "Currently, the only supported message system attribute is AWSTraceHeader. Its
	// type must be String".
	{name: "content/system attributes refused", run: func(x *exam) {
		q := x.standard()
		for name, v := range map[string]types.MessageSystemAttributeValue{
			"SenderId": {DataType: ptr("String"), StringValue: ptr("v")}, "AWSTraceHeader": {DataType: ptr("Number"), StringValue: ptr("1")},
		} {
			_, err := x.trySend(q, "a", func(in *sqs.SendMessageInput) {
				in.MessageSystemAttributes = map[string]types.MessageSystemAttributeValue{name: v}
			})
			x.fails(name, err, invalidValue)
		}
	}},
}

func quote(s string) string {
	const digits = "0123456789abcdef"
	var out strings.Builder
	for _, r := range s {
		out.WriteString("#x")
		for shift := 12; shift >= 0; shift -= 4 {
			out.WriteByte(digits[r>>shift&15])
		}
	}
	return out.String()
}

func named(name string) func(*sqs.SendMessageInput) {
	return func(in *sqs.SendMessageInput) {
		in.MessageAttributes = map[string]types.MessageAttributeValue{name: {DataType: ptr("String"), StringValue: ptr("v")}}
	}
}

var sizeCases = []testCase{
	// API SendMessage: "The minimum size is one character. The maximum size is 1 MiB".
	{name: "size/a mebibyte accepted", run: func(x *exam) {
		q := x.standard()
		x.send(q, strings.Repeat("b", limit))
		x.one(q, strings.Repeat("b", limit))
	}},
	// Recorded: test_send_oversized_message.
	{name: "size/a byte more refused", run: func(x *exam) {
		q := x.standard()
		_, err := x.trySend(q, strings.Repeat("b", limit+1))
		x.fails("1 MiB and a byte", err, invalidValue)
		x.none(q)
	}},
	// API SendMessage: the maximum is in bytes. Recorded: test_send_message_with_updated_maximum_message_size. API SetQueueAttributes,
	// MaximumMessageSize: "The limit of how many bytes a message can contain before Amazon SQS rejects it."
	{name: "size/limit of the queue, bytes count, not characters", run: func(x *exam) {
		q := x.standard(attrs{"MaximumMessageSize": "1024"})
		x.send(q, strings.Repeat("ä", 512))
		_, err := x.trySend(q, strings.Repeat("ä", 513))
		x.fails("513 characters of two bytes", err, invalidValue)
	}},
	// Guide sqs-message-metadata: Message attributes ... are included in the message size restriction: name, type, value.
	{name: "size/attributes count", run: func(x *exam) {
		q := x.standard(attrs{"MaximumMessageSize": "1024"})
		attribute := withAttributes(types.MessageAttributeValue{DataType: ptr("String"), StringValue: ptr("value")}) // 12 bytes with its name
		x.send(q, strings.Repeat("b", 1012), attribute)
		_, err := x.trySend(q, strings.Repeat("b", 1013), attribute)
		x.fails("1013 bytes and an attribute of 12", err, invalidValue)
	}},
	// API SendMessage: "The size of a message system attribute doesn't count towards the total size of a message."
	{name: "size/the trace header does not count", run: func(x *exam) {
		q := x.standard(attrs{"MaximumMessageSize": "1024"})
		x.send(q, strings.Repeat("b", 1024), func(in *sqs.SendMessageInput) {
			in.MessageSystemAttributes = systemTrace("Root=1-5759e988-bd862e3fe1be46a994272793")
		})
	}},
	// Recorded: test_send_message_batch_with_oversized_contents_with_updated_maximum_message_size: the queue's limit is for each
	// entry, not for the batch.
	{name: "size/limit of the queue, in a batch", run: func(x *exam) {
		q := x.standard(attrs{"MaximumMessageSize": "1024"})
		small := strings.Repeat("b", 1024)
		out := x.sendBatch(q, entries(small, small+"b", small))
		x.failed(out.Failed, "1", invalidValue)
		x.want(q, small, small)
	}},
	// API SendMessageBatch: "The maximum allowed individual message size and the maximum total payload size (the sum of the
	// individual lengths of all of the batched messages) are both 1 MiB".
	{name: "size/batch of a mebibyte accepted", run: func(x *exam) {
		q := x.standard()
		half := strings.Repeat("b", limit/2)
		x.sendBatch(q, entries(half, half))
		x.want(q, half, half)
	}},
	// Recorded: test_send_message_batch_with_oversized_contents.
	{name: "size/batch of a byte more refused", run: func(x *exam) {
		q := x.standard()
		half := strings.Repeat("b", limit/2)
		_, err := x.trySendBatch(q, entries(half, half+"b"))
		x.fails("1 MiB and a byte in two entries", err, "BatchRequestTooLong")
		x.none(q)
	}},
	// As above: the second entry has the attribute that makes it too long.
	{name: "size/attributes count in a batch", run: func(x *exam) {
		q := x.standard()
		e := entries(strings.Repeat("b", limit/2), strings.Repeat("b", limit/2-11))
		e[1].MessageAttributes = map[string]types.MessageAttributeValue{"a": {DataType: ptr("String"), StringValue: ptr("value")}} // 12 bytes
		_, err := x.trySendBatch(q, e)
		x.fails("1 MiB and a byte with an attribute", err, "BatchRequestTooLong")
		x.none(q)
	}},
}

const limit = 1 << 20
