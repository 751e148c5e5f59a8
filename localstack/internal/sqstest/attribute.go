package sqstest

import (
	"crypto/md5"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

var attributeCases = []testCase{
	// API ReceiveMessage, MessageSystemAttributeNames.
	{name: "attributes/system attributes", run: func(x *exam) {
		q := x.standard()
		before := time.Now().Add(-time.Minute) // two clocks
		m := x.sendOne(q, "a")
		if m.Attributes["SenderId"] == "" {
			x.fatalf("no SenderId in %v", m.Attributes)
		}
		sent, first := millis(x, m, "SentTimestamp"), millis(x, m, "ApproximateFirstReceiveTimestamp")
		if sent.Before(before) || sent.After(before.Add(3*time.Minute)) {
			x.fatalf("SentTimestamp %v, want about now", sent.UTC())
		}
		if first.Before(sent) {
			x.fatalf("received %v, before it was sent %v", first, sent)
		}
		x.received(m, 1)
		for _, name := range []string{"MessageGroupId", "MessageDeduplicationId", "SequenceNumber", "AWSTraceHeader", "DeadLetterQueueSourceArn"} {
			if v, ok := m.Attributes[name]; ok {
				x.fatalf("%s %q on a message without one", name, v)
			}
		}
	}},
	// API ReceiveMessage: "A list of attributes that need to be returned along with each message."
	{name: "attributes/none unless asked", run: func(x *exam) {
		q := x.standard()
		x.send(q, "a", withAttributes(types.MessageAttributeValue{DataType: ptr("String"), StringValue: ptr("v")}))
		m := x.one(q, "a", func(in *sqs.ReceiveMessageInput) { in.MessageSystemAttributeNames, in.MessageAttributeNames = nil, nil })
		if len(m.Attributes) > 0 || len(m.MessageAttributes) > 0 || m.MD5OfMessageAttributes != nil {
			x.fatalf("got attributes %v and %v, want none", m.Attributes, m.MessageAttributes)
		}
	}},
	// API ReceiveMessage, MessageSystemAttributeNames.
	{name: "attributes/one as asked", run: func(x *exam) {
		q := x.standard()
		x.send(q, "a")
		m := x.one(q, "a", func(in *sqs.ReceiveMessageInput) {
			in.MessageSystemAttributeNames = []types.MessageSystemAttributeName{types.MessageSystemAttributeNameSentTimestamp}
		})
		if len(m.Attributes) != 1 || m.Attributes["SentTimestamp"] == "" {
			x.fatalf("got %v, want only SentTimestamp", m.Attributes)
		}
	}},
	// API ReceiveMessage, AttributeNames: "This parameter has been discontinued but will be supported for backward
	// compatibility."
	{name: "attributes/by the old name of the parameter", run: func(x *exam) {
		q := x.standard()
		x.send(q, "a")
		m := x.one(q, "a", func(in *sqs.ReceiveMessageInput) {
			in.MessageSystemAttributeNames = nil
			//lint:ignore SA1019 clients that are older than the new name send it
			in.AttributeNames = []types.QueueAttributeName{"ApproximateReceiveCount"}
		})
		if len(m.Attributes) != 1 || m.Attributes["ApproximateReceiveCount"] != "1" {
			x.fatalf("got %v, want only ApproximateReceiveCount 1", m.Attributes)
		}
	}},
	// API ReceiveMessage: ApproximateReceiveCount is "the number of times a message has been received across all queues but
	// not deleted", ApproximateFirstReceiveTimestamp "the time the message was first received from the queue".
	{name: "attributes/receive count and first receive", passes: 2 * time.Second, run: func(x *exam) {
		q := x.standard(attrs{"VisibilityTimeout": "1"})
		x.send(q, "a")
		first := ""
		for n := 1; n <= 3; n++ {
			m := x.one(q, "a")
			x.received(m, n)
			at := m.Attributes["ApproximateFirstReceiveTimestamp"]
			if n > 1 && at != first {
				x.fatalf("first received %s and later %s", first, at)
			}
			first = at
			if n < 3 {
				x.pass(time.Second)
			}
		}
	}},
	// API SendMessage, MessageSystemAttributes: "Currently, the only supported message system attribute is AWSTraceHeader."
	{name: "attributes/trace header", run: func(x *exam) {
		const trace = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"
		q := x.standard()
		x.send(q, "a", func(in *sqs.SendMessageInput) { in.MessageSystemAttributes = systemTrace(trace) })
		if got := x.one(q, "a").Attributes["AWSTraceHeader"]; got != trace {
			x.fatalf("AWSTraceHeader %q, want %q", got, trace)
		}
	}},
	// Guide sqs-message-metadata: String, Number and Binary, each with an optional custom type; the digest.
	{name: "attributes/of the message, by type", run: func(x *exam) {
		q := x.standard()
		want := map[string]types.MessageAttributeValue{
			"a": {DataType: ptr("String"), StringValue: ptr("ä")}, "b": {DataType: ptr("Number"), StringValue: ptr("-1.5e3")},
			"c": {DataType: ptr("Binary"), BinaryValue: []byte{0, 255}}, "d-e_f.g": {DataType: ptr("String.uuid"), StringValue: ptr("x")},
		}
		sent := x.send(q, "a", func(in *sqs.SendMessageInput) { in.MessageAttributes = want })
		m := x.one(q, "a")
		for name, v := range want {
			got := m.MessageAttributes[name]
			if str(got.DataType) != *v.DataType || v.StringValue != nil && str(got.StringValue) != *v.StringValue || string(got.BinaryValue) != string(v.BinaryValue) {
				x.fatalf("attribute %s: got %s %s %x, want %s %s %x", name, str(got.DataType), str(got.StringValue), got.BinaryValue, *v.DataType, str(v.StringValue), v.BinaryValue)
			}
		}
		if digest := attributesDigest(want); str(sent.MD5OfMessageAttributes) != digest || str(m.MD5OfMessageAttributes) != digest {
			x.fatalf("digests %s and %s, want %s", str(sent.MD5OfMessageAttributes), str(m.MD5OfMessageAttributes), digest)
		}
	}},
	// API ReceiveMessage, MessageAttributeNames: "You can also use all message attributes starting with a prefix, for example
	// bar.*."
	{name: "attributes/of the message, by name and prefix", run: func(x *exam) {
		q := x.standard(attrs{"VisibilityTimeout": "0"})
		s := types.MessageAttributeValue{DataType: ptr("String"), StringValue: ptr("v")}
		x.send(q, "a", func(in *sqs.SendMessageInput) {
			in.MessageAttributes = map[string]types.MessageAttributeValue{"foo": s, "bar.one": s, "bar.two": s}
		})
		for _, c := range []struct{ ask, want []string }{
			{[]string{"foo"}, []string{"foo"}}, {[]string{"bar.*"}, []string{"bar.one", "bar.two"}}, {[]string{"foo", "bar.one", "baz"}, []string{"bar.one", "foo"}},
			{[]string{".*"}, []string{"bar.one", "bar.two", "foo"}}, {[]string{"baz"}, nil},
		} {
			m := x.one(q, "a", func(in *sqs.ReceiveMessageInput) { in.MessageAttributeNames = c.ask })
			if got := slices.Sorted(maps.Keys(m.MessageAttributes)); !slices.Equal(got, c.want) {
				x.fatalf("asked for %q: got %q, want %q", c.ask, got, c.want)
			}
		}
	}},
	// Recorded: test_receive_message_message_attribute_names_filters.
	{name: "attributes/digest is of those returned", run: func(x *exam) {
		q := x.standard()
		one := types.MessageAttributeValue{DataType: ptr("String"), StringValue: ptr("v")}
		x.send(q, "a", withAttributes(one, one))
		m := x.one(q, "a", func(in *sqs.ReceiveMessageInput) { in.MessageAttributeNames = []string{"b"} })
		if got, want := str(m.MD5OfMessageAttributes), attributesDigest(map[string]types.MessageAttributeValue{"b": one}); got != want {
			x.fatalf("digest %s, want %s: of the attribute returned", got, want)
		}
	}},
}

func millis(x *exam, m types.Message, name string) time.Time {
	n, err := strconv.ParseInt(m.Attributes[name], 10, 64)
	if err != nil {
		x.fatalf("%s: %v", name, err)
	}
	return time.UnixMilli(n)
}

func systemTrace(trace string) map[string]types.MessageSystemAttributeValue {
	return map[string]types.MessageSystemAttributeValue{"AWSTraceHeader": {DataType: ptr("String"), StringValue: &trace}}
}

// withAttributes gives a message attributes: the first is named "a", the next "b".
func withAttributes(values ...types.MessageAttributeValue) func(*sqs.SendMessageInput) {
	return func(in *sqs.SendMessageInput) {
		in.MessageAttributes = map[string]types.MessageAttributeValue{}
		for i, v := range values {
			in.MessageAttributes[string(rune('a'+i))] = v
		}
	}
}

// attributesDigest is the digest that Guide sqs-message-metadata describes, "Calculating the MD5 message digest for
// message attributes".
func attributesDigest(attributes map[string]types.MessageAttributeValue) string {
	var b []byte
	add := func(s string) { b = append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...) }
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		a := attributes[name]
		add(name)
		add(*a.DataType)
		if strings.HasPrefix(*a.DataType, "Binary") {
			b = append(b, 2)
			add(string(a.BinaryValue))
		} else {
			b = append(b, 1)
			add(*a.StringValue)
		}
	}
	sum := md5.Sum(b)
	return hex.EncodeToString(sum[:])
}
