package memsqs_test

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/google/go-cmp/cmp"
)

func TestSystemAttributes(t *testing.T) {
	fifo(t, func(x *fixture) {
		sent := time.Now()
		_, err := x.c.SendMessage(x.Context(), &sqs.SendMessageInput{
			QueueUrl: &x.url, MessageBody: aws.String("a"), MessageGroupId: aws.String("g"), MessageDeduplicationId: aws.String("d"),
			MessageSystemAttributes: map[string]types.MessageSystemAttributeValue{"AWSTraceHeader": {DataType: aws.String("String"), StringValue: aws.String("Root=1-5")}},
		})
		x.ok(err)
		time.Sleep(time.Minute)
		first := time.Now()
		x.want("a")
		time.Sleep(time.Minute)
		got := x.want("a")[0].Attributes
		if len(got["SequenceNumber"]) != 20 || got["SenderId"] == "" {
			x.Errorf("sequence number %q, sender %q", got["SequenceNumber"], got["SenderId"])
		}
		delete(got, "SequenceNumber")
		delete(got, "SenderId")
		want := attrs{
			"SentTimestamp": strconv.FormatInt(sent.UnixMilli(), 10), "ApproximateFirstReceiveTimestamp": strconv.FormatInt(first.UnixMilli(), 10),
			"ApproximateReceiveCount": "2", "MessageGroupId": "g", "MessageDeduplicationId": "d", "AWSTraceHeader": "Root=1-5",
		}
		if d := cmp.Diff(want, got); d != "" {
			x.Errorf("system attributes (-want +got):\n%s", d)
		}
	})
}

// The request's trace header is that of its messages, but for those that have one of their own.
func TestTraceHeaderOfTheRequest(t *testing.T) {
	standard(t, func(x *fixture) {
		_, err := x.c.SendMessageBatch(x.Context(), &sqs.SendMessageBatchInput{QueueUrl: &x.url, Entries: []types.SendMessageBatchRequestEntry{
			{Id: aws.String("1"), MessageBody: aws.String("a")},
			{Id: aws.String("2"), MessageBody: aws.String("b"), MessageSystemAttributes: map[string]types.MessageSystemAttributeValue{
				"AWSTraceHeader": {DataType: aws.String("String"), StringValue: aws.String("Root=1-6")},
			}},
		}}, func(o *sqs.Options) {
			o.APIOptions = append(o.APIOptions, smithyhttp.AddHeaderValue("X-Amzn-Trace-Id", "Root=1-5"))
		})
		x.ok(err)
		x.send("c")
		got := map[string]string{}
		for _, m := range x.want("a", "b", "c") {
			got[*m.Body] = m.Attributes["AWSTraceHeader"]
		}
		if d := cmp.Diff(map[string]string{"a": "Root=1-5", "b": "Root=1-6", "c": ""}, got); d != "" {
			x.Errorf("trace headers (-want +got):\n%s", d)
		}
	})
}

func TestAttributesOnlyAsAskedFor(t *testing.T) {
	run(t, "jobs", attrs{"VisibilityTimeout": "0"}, func(x *fixture) {
		x.ok(x.try("a", attribute("Help.Me", "String", "1"), attribute("Hello", "Binary", "2"), attribute("Other", "Number.n", "3"),
			func(in *sqs.SendMessageInput) { in.MessageGroupId = aws.String("tenant") }))
		for name, c := range map[string]struct {
			in              sqs.ReceiveMessageInput
			system, message []string
		}{
			"nothing": {},
			"system": {
				in:     sqs.ReceiveMessageInput{MessageSystemAttributeNames: []types.MessageSystemAttributeName{"SentTimestamp", "MessageGroupId", "AWSTraceHeader"}},
				system: []string{"MessageGroupId", "SentTimestamp"},
			},
			"legacy": {
				//lint:ignore SA1019 the old name, which clients still send
				in:     sqs.ReceiveMessageInput{AttributeNames: []types.QueueAttributeName{"ApproximateReceiveCount"}},
				system: []string{"ApproximateReceiveCount"},
			},
			"one":    {in: sqs.ReceiveMessageInput{MessageAttributeNames: []string{"Hello", "Absent"}}, message: []string{"Hello"}},
			"prefix": {in: sqs.ReceiveMessageInput{MessageAttributeNames: []string{"Hel.*"}}, message: []string{"Hello", "Help.Me"}},
			"dotted": {in: sqs.ReceiveMessageInput{MessageAttributeNames: []string{"Help.*"}}, message: []string{"Help.Me"}},
			"all":    {in: sqs.ReceiveMessageInput{MessageAttributeNames: []string{"All"}}, message: []string{"Hello", "Help.Me", "Other"}},
			"stars":  {in: sqs.ReceiveMessageInput{MessageAttributeNames: []string{".*"}}, message: []string{"Hello", "Help.Me", "Other"}},
		} {
			in := c.in
			in.QueueUrl = &x.url
			out, err := x.c.ReceiveMessage(x.Context(), &in)
			x.ok(err)
			m := out.Messages[0]
			if got := slices.Sorted(maps.Keys(m.Attributes)); !slices.Equal(got, c.system) {
				x.Errorf("%s: system attributes %v, want %v", name, got, c.system)
			}
			if got := slices.Sorted(maps.Keys(m.MessageAttributes)); !slices.Equal(got, c.message) {
				x.Errorf("%s: message attributes %v, want %v", name, got, c.message)
			}
			if (m.MD5OfMessageAttributes != nil) != (len(c.message) > 0) {
				x.Errorf("%s: digest %v for %d attributes", name, m.MD5OfMessageAttributes, len(c.message))
			}
		}
		_, err := x.c.ReceiveMessage(x.Context(), &sqs.ReceiveMessageInput{QueueUrl: &x.url, MessageSystemAttributeNames: []types.MessageSystemAttributeName{"Nonsense"}})
		x.code(err, "InvalidAttributeName")
	})
}

// The expected digests come from independent implementations in Python.
func TestDigests(t *testing.T) {
	standard(t, func(x *fixture) {
		in := &sqs.SendMessageInput{QueueUrl: &x.url, MessageBody: aws.String("hello")}
		attribute("timestamp", "Number", "1493147359900")(in)
		out, err := x.c.SendMessage(x.Context(), in)
		x.ok(err)
		if got, want := *out.MD5OfMessageBody, "5d41402abc4b2a76b9719d911017c592"; got != want {
			x.Errorf("MD5 of the body %s, want %s", got, want)
		}
		if got, want := *out.MD5OfMessageAttributes, "235c5c510d26fb653d073faed50ae77c"; got != want {
			x.Errorf("MD5 of the attributes %s, want %s", got, want)
		}
		if m := x.want("hello")[0]; *m.MD5OfMessageAttributes != "235c5c510d26fb653d073faed50ae77c" {
			x.Errorf("MD5 of the received attributes %s", *m.MD5OfMessageAttributes)
		}
		in = &sqs.SendMessageInput{QueueUrl: &x.url, MessageBody: aws.String("hello")}
		attribute("str", "String.x", "v")(in)
		attribute("bin", "Binary", "\x00\x01")(in)
		out, err = x.c.SendMessage(x.Context(), in)
		x.ok(err)
		if got, want := *out.MD5OfMessageAttributes, "ad70ccdb6aba042bec05dd977ad16aa3"; got != want {
			x.Errorf("MD5 of the attributes %s, want %s", got, want)
		}
	})
}

// Message IDs are UUIDs of version 4, as on AWS.
func TestMessageIDs(t *testing.T) {
	t.Parallel()
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	standard(t, func(x *fixture) {
		for range 20 {
			if id := *x.send("a").MessageId; !uuid.MatchString(id) {
				x.Errorf("message ID %s", id)
			}
		}
	})
}
