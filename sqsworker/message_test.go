package sqsworker

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/must"
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
	for name, got := range map[string]*sqsonce.Message{"decode": decode(in, "arn"), "MessageOf": MessageOf(*in, "arn")} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: want -, got +:\n%s", name, diff)
		}
	}
	bare := decode(&sqstypes.Message{Attributes: map[string]string{"ApproximateReceiveCount": "x", "SentTimestamp": "y"}}, "")
	if bare.ReceiveCount != 1 || !bare.SentAt.IsZero() {
		t.Errorf("bare message: %+v", bare)
	}
}

// TestSystemAttributesArrive: receives ask for what decode reads.
func TestSystemAttributesArrive(t *testing.T) {
	bubble(t, setup{fifo: true}, func(x *fixture) {
		const name = string(sqstypes.MessageSystemAttributeNameForSendsAWSTraceHeader)
		must.Get(x.c.SendMessage(x.Context(), &sqs.SendMessageInput{
			QueueUrl: &x.url, MessageBody: aws.String("body"), MessageGroupId: aws.String("g"), MessageDeduplicationId: aws.String("d"),
			MessageSystemAttributes: map[string]sqstypes.MessageSystemAttributeValue{
				name: {DataType: aws.String("String"), StringValue: aws.String("Root=1-5759e988-bd862e3fe1be46a994272793")},
			},
		}))(t)
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

// tap is a connection on which a test sees, and may change, the answers to receives.
type tap struct {
	http.RoundTripper
	answer func(text []byte) []byte
}

func (t *tap) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(r)
	if err != nil || r.Header.Get("X-Amz-Target") != "AmazonSQS.ReceiveMessage" {
		return resp, err
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(t.answer(text)))
	return resp, nil
}

// tapped returns the fixture's client with a tap.
func (x *fixture) tapped(answer func(text []byte) []byte) *sqs.Client {
	return sqs.New(x.c.Options(), func(o *sqs.Options) {
		o.HTTPClient = &http.Client{Transport: &tap{x.srv, answer}}
	})
}

// TestDamagedBodyFailsItsMessageOnly: the SDK's own check would fail the whole receive.
func TestDamagedBodyFailsItsMessageOnly(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		x.send("body-a", "body-b", "body-c")
		damaged := false
		c := x.tapped(func(text []byte) []byte {
			if damaged {
				return text
			}
			damaged = bytes.Contains(text, []byte(`"Body":"body-a"`))
			return bytes.Replace(text, []byte(`"Body":"body-a"`), []byte(`"Body":"body-x"`), 1)
		})
		var r runs
		var book hookBook
		j := x.startWith(c, r.take(time.Millisecond), book.option, func(o *Options) {
			o.Backoff = func(int) time.Duration { return 5 * time.Second }
		})
		j.stopEmptyAfter(20 * time.Second)
		if got := book.outcomes(t); len(got) != 3 {
			t.Errorf("hooks of %v, want those of three handlers that ran", got)
		}
		if got := r.list(); len(got) != 3 || r.count("body-x") != 0 || !damaged {
			t.Errorf("runs: %v, damaged: %t", got, damaged)
		}
		if s := j.Stats(); s.Failed != 1 || s.Received != 4 || s.Damaged != 1 {
			t.Errorf("stats: %+v", s)
		}
	})
}

// TestDamagedHeadIsNeitherTriedNorRejected: a FIFO group's head is damaged on the way in its first receives. The copy in
// hand is never run nor sent to the dead-letter queue in place of the message, and the group stays in order.
func TestDamagedHeadIsNeitherTriedNorRejected(t *testing.T) {
	bubble(t, setup{fifo: true, maxReceives: 5}, func(x *fixture) {
		x.setAttribute("MessageRetentionPeriod", "60") // which leaves no time for delays
		x.send("g:a", "g:b", "g:c")
		damaged := 0
		c := x.tapped(func(text []byte) []byte {
			if damaged == 2 || !bytes.Contains(text, []byte(`"Body":"g:a"`)) {
				return text
			}
			damaged++
			return bytes.Replace(text, []byte(`"Body":"g:a"`), []byte(`"Body":"g:x"`), 1)
		})
		var r runs
		j := x.startWith(c, r.take(time.Millisecond), func(o *Options) {
			o.MaxAttempts, o.Backoff = 1, func(int) time.Duration { return 5 * time.Second }
		})
		j.stopEmptyAfter(40 * time.Second)
		if got := r.list(); !slices.Equal(got, []string{"g:a", "g:b", "g:c"}) || damaged != 2 {
			t.Errorf("runs %v after %d damaged answers, want each once in order, after 2", got, damaged)
		}
		if dead := x.dead(); len(dead) > 0 {
			t.Errorf("in the dead-letter queue: %v", dead)
		}
	})
}
