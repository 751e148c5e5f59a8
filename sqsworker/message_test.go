package sqsworker

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	in := &sqstypes.Message{
		MessageId: aws.String("id"), Body: aws.String("body"), ReceiptHandle: aws.String("handle"),
		Attributes: map[string]string{
			"ApproximateReceiveCount": "3", "SentTimestamp": "1700000000123", "ApproximateFirstReceiveTimestamp": "1700000001000",
			"MessageGroupId": "g", "SequenceNumber": "18849496460467696128", "MessageDeduplicationId": "d", "AWSTraceHeader": "Root=1",
		},
		MessageAttributes: map[string]sqstypes.MessageAttributeValue{
			"n": {DataType: aws.String("Number.int"), StringValue: aws.String("7")},
			"b": {DataType: aws.String("Binary"), BinaryValue: []byte{1}},
		},
	}
	want := &sqsonce.Message{
		ID: "id", Body: "body", ReceiptHandle: "handle", ReceiveCount: 3, QueueARN: "arn",
		SentAt: time.UnixMilli(1700000000123), FirstReceivedAt: time.UnixMilli(1700000001000),
		Group: "g", Sequence: "18849496460467696128", DedupID: "d", TraceHeader: "Root=1",
		Attributes: map[string]sqsonce.Attribute{"n": {Type: "Number.int", String: "7"}, "b": {Type: "Binary", Binary: []byte{1}}},
	}
	if diff := cmp.Diff(want, decode(in, "arn")); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
	bare := decode(&sqstypes.Message{Attributes: map[string]string{"ApproximateReceiveCount": "x", "SentTimestamp": "y"}}, "")
	if bare.ReceiveCount != 1 || !bare.SentAt.IsZero() {
		t.Errorf("bare message: %+v", bare)
	}
}

// What decode reads is asked for.
func TestSystemAttributesArrive(t *testing.T) {
	bubble(t, setup{fifo: true}, func(x *fixture) {
		const name = string(sqstypes.MessageSystemAttributeNameForSendsAWSTraceHeader)
		_, err := x.c.SendMessage(x.Context(), &sqs.SendMessageInput{
			QueueUrl: &x.url, MessageBody: aws.String("body"), MessageGroupId: aws.String("g"), MessageDeduplicationId: aws.String("d"),
			MessageSystemAttributes: map[string]sqstypes.MessageSystemAttributeValue{
				name: {DataType: aws.String("String"), StringValue: aws.String("Root=1-5759e988-bd862e3fe1be46a994272793")},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		x.receive(time.Second) // the worker's is the second receive
		got := make(chan *sqsonce.Message, 1)
		j := x.start(func(_ context.Context, m *sqsonce.Message) error {
			got <- m
			return nil
		})
		m := <-got
		if m.Group != "g" || m.DedupID != "d" || m.Sequence == "" || m.TraceHeader == "" || m.ReceiveCount != 2 ||
			m.SentAt.IsZero() || m.FirstReceivedAt.IsZero() {
			t.Errorf("got %+v, want every field", m)
		}
		j.stopClean()
	})
}
