package esm_test

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/localstack/esm"
)

// firstEvent returns the first event of a mapping with cfg, as the function gets it.
func (x *fixture) firstEvent(cfg esm.Config) []byte {
	x.Helper()
	got := make(chan []byte, 1)
	x.run(cfg, func(_ context.Context, event []byte) ([]byte, error) {
		got <- event
		return nil, nil
	})
	event := <-got
	x.mustStop()
	return event
}

func attributes() map[string]sqstypes.MessageAttributeValue {
	return map[string]sqstypes.MessageAttributeValue{
		"text":  text("a <b> & \"c\""),
		"count": {DataType: aws.String("Number.int"), StringValue: aws.String("7")},
		"bytes": {DataType: aws.String("Binary"), BinaryValue: []byte{0, 1, 255}},
	}
}

const (
	sentAt = "946684800000" // bubbles begin at midnight UTC 2000-01-01
)

// The event is compared, as JSON, with one recorded on AWS; opaque values are replaced.
func TestEvent(t *testing.T) {
	tests := []struct {
		name, queue string
		in          *sqs.SendMessageInput
		cfg         esm.Config
		want        string // of the record; words in capitals replace opaque values
	}{
		{
			name: "without attributes", queue: "jobs",
			in: &sqs.SendMessageInput{MessageBody: aws.String(`{"a":1}`)},
			want: `{"messageId":"ID","receiptHandle":"HANDLE","body":"{\"a\":1}",
				"attributes":{"ApproximateReceiveCount":"1","SentTimestamp":"` + sentAt + `","SenderId":"SENDER","ApproximateFirstReceiveTimestamp":"` + sentAt + `"},
				"messageAttributes":{},"md5OfBody":"BODYMD5","eventSource":"aws:sqs",
				"eventSourceARN":"arn:aws:sqs:us-east-1:000000000000:jobs","awsRegion":"us-east-1"}`,
		},
		{
			name: "without attributes, with a window", queue: "jobs", cfg: esm.Config{BatchingWindow: time.Second},
			in: &sqs.SendMessageInput{MessageBody: aws.String(`{"a":1}`)},
			want: `{"messageId":"ID","receiptHandle":"HANDLE","body":"{\"a\":1}",
				"attributes":{"ApproximateReceiveCount":"1","SentTimestamp":"` + sentAt + `","SenderId":"SENDER","ApproximateFirstReceiveTimestamp":"` + sentAt + `"},
				"messageAttributes":{},"md5OfMessageAttributes":null,"md5OfBody":"BODYMD5","eventSource":"aws:sqs",
				"eventSourceARN":"arn:aws:sqs:us-east-1:000000000000:jobs","awsRegion":"us-east-1"}`,
		},
		{
			name: "attributes", queue: "jobs",
			in: &sqs.SendMessageInput{MessageBody: aws.String(`{"a":1}`), MessageAttributes: attributes()},
			want: `{"messageId":"ID","receiptHandle":"HANDLE","body":"{\"a\":1}",
				"attributes":{"ApproximateReceiveCount":"1","SentTimestamp":"` + sentAt + `","SenderId":"SENDER","ApproximateFirstReceiveTimestamp":"` + sentAt + `"},
				"messageAttributes":{
					"text":{"stringValue":"a <b> & \"c\"","stringListValues":[],"binaryListValues":[],"dataType":"String"},
					"count":{"stringValue":"7","stringListValues":[],"binaryListValues":[],"dataType":"Number.int"},
					"bytes":{"binaryValue":"AAH/","stringListValues":[],"binaryListValues":[],"dataType":"Binary"}},
				"md5OfMessageAttributes":"ATTRMD5","md5OfBody":"BODYMD5","eventSource":"aws:sqs",
				"eventSourceARN":"arn:aws:sqs:us-east-1:000000000000:jobs","awsRegion":"us-east-1"}`,
		},
		{
			name: "attributes, with a window", queue: "jobs", cfg: esm.Config{BatchingWindow: time.Second},
			in: &sqs.SendMessageInput{MessageBody: aws.String(`{"a":1}`), MessageAttributes: attributes()},
			want: `{"messageId":"ID","receiptHandle":"HANDLE","body":"{\"a\":1}",
				"attributes":{"ApproximateReceiveCount":"1","SentTimestamp":"` + sentAt + `","SenderId":"SENDER","ApproximateFirstReceiveTimestamp":"` + sentAt + `"},
				"messageAttributes":{
					"text":{"stringValue":"a <b> & \"c\"","binaryValue":null,"stringListValues":[],"binaryListValues":[],"dataType":"String"},
					"count":{"stringValue":"7","binaryValue":null,"stringListValues":[],"binaryListValues":[],"dataType":"Number.int"},
					"bytes":{"stringValue":null,"binaryValue":"AAH/","stringListValues":[],"binaryListValues":[],"dataType":"Binary"}},
				"md5OfMessageAttributes":"ATTRMD5","md5OfBody":"BODYMD5","eventSource":"aws:sqs",
				"eventSourceARN":"arn:aws:sqs:us-east-1:000000000000:jobs","awsRegion":"us-east-1"}`,
		},
		{
			name: "FIFO, traced", queue: "jobs.fifo",
			in: &sqs.SendMessageInput{
				MessageBody: aws.String(`{"a":1}`), MessageGroupId: aws.String("g"), MessageDeduplicationId: aws.String("d"),
				MessageSystemAttributes: map[string]sqstypes.MessageSystemAttributeValue{
					"AWSTraceHeader": {DataType: aws.String("String"), StringValue: aws.String("Root=1-5e1b4151-5ac6c58f5fd3f9d0b9a1a9a1")},
				},
			},
			want: `{"messageId":"ID","receiptHandle":"HANDLE","body":"{\"a\":1}",
				"attributes":{"ApproximateReceiveCount":"1","SentTimestamp":"` + sentAt + `","SenderId":"SENDER","ApproximateFirstReceiveTimestamp":"` + sentAt + `",
					"SequenceNumber":"SEQUENCE","MessageGroupId":"g","MessageDeduplicationId":"d","AWSTraceHeader":"Root=1-5e1b4151-5ac6c58f5fd3f9d0b9a1a9a1"},
				"messageAttributes":{},"md5OfBody":"BODYMD5","eventSource":"aws:sqs",
				"eventSourceARN":"arn:aws:sqs:us-east-1:000000000000:jobs.fifo","awsRegion":"us-east-1"}`,
		},
		{
			name: "fair queue", queue: "jobs",
			in: &sqs.SendMessageInput{MessageBody: aws.String(`{"a":1}`), MessageGroupId: aws.String("tenant")},
			want: `{"messageId":"ID","receiptHandle":"HANDLE","body":"{\"a\":1}",
				"attributes":{"ApproximateReceiveCount":"1","SentTimestamp":"` + sentAt + `","SenderId":"SENDER","ApproximateFirstReceiveTimestamp":"` + sentAt + `","MessageGroupId":"tenant"},
				"messageAttributes":{},"md5OfBody":"BODYMD5","eventSource":"aws:sqs",
				"eventSourceARN":"arn:aws:sqs:us-east-1:000000000000:jobs","awsRegion":"us-east-1"}`,
		},
	}
	for _, tt := range tests {
		runOnQueue(t, tt.name, tt.queue, func(x *fixture) {
			id := x.sendInput(tt.in)
			event := x.firstEvent(tt.cfg)
			var e events.SQSEvent
			if err := json.Unmarshal(event, &e); err != nil || len(e.Records) != 1 {
				x.Fatalf("aws-lambda-go reads %d records, error %v", len(e.Records), err)
			}
			r := e.Records[0]
			if r.MessageId != id {
				x.Errorf("messageId is %q, want %q", r.MessageId, id)
			}
			if r.ReceiptHandle == "" || r.Attributes["SenderId"] == "" || len(r.Md5OfBody) != 32 {
				x.Errorf("receiptHandle %q, SenderId %q, md5OfBody %q", r.ReceiptHandle, r.Attributes["SenderId"], r.Md5OfBody)
			}
			if has := len(tt.in.MessageAttributes) > 0; has != (len(r.Md5OfMessageAttributes) == 32) {
				x.Errorf("md5OfMessageAttributes is %q", r.Md5OfMessageAttributes)
			}
			want := strings.NewReplacer("ID\"", r.MessageId+`"`, "HANDLE", r.ReceiptHandle, "SENDER", r.Attributes["SenderId"],
				"SEQUENCE", r.Attributes["SequenceNumber"], "BODYMD5", r.Md5OfBody, "ATTRMD5", r.Md5OfMessageAttributes).Replace(tt.want)
			if d := cmp.Diff(parse(x.T, `{"Records":[`+want+`]}`), parse(x.T, string(event))); d != "" {
				x.Errorf("event (-want +got):\n%s", d)
			}
		})
	}
}

func parse(t *testing.T, s string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatalf("%v in %s", err, s)
	}
	return v
}

// Lambda does not escape <, > and & as Go does by default: the 6 MB would hold fewer messages than on AWS.
func TestEventIsNotEscapedForHTML(t *testing.T) {
	onQueue(t, "jobs", func(x *fixture) {
		x.send("<a&b>")
		if event := x.firstEvent(esm.Config{}); !strings.Contains(string(event), `"body":"<a&b>"`) {
			t.Errorf("event is %s", event)
		}
	})
}

// A message from a dead-letter queue has the ARN of its source queue.
func TestEventFromDeadLetterQueue(t *testing.T) {
	onQueue(t, "jobs-dlq", func(x *fixture) {
		dlq := x.url
		x.url = testaws.Queue(x, x.client, "jobs", map[string]string{
			"VisibilityTimeout": "1",
			"RedrivePolicy":     `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:jobs-dlq","maxReceiveCount":"1"}`,
		})
		x.send("a")
		for range 2 {
			must.Get(x.client.ReceiveMessage(x.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(x.url), WaitTimeSeconds: 2}))(t)
		}
		x.url = dlq
		var e events.SQSEvent
		must.Do(t, json.Unmarshal(x.firstEvent(esm.Config{}), &e))
		if got, want := e.Records[0].Attributes["DeadLetterQueueSourceArn"], "arn:aws:sqs:us-east-1:000000000000:jobs"; got != want {
			t.Errorf("DeadLetterQueueSourceArn is %q, want %q", got, want)
		}
		must.Get(strconv.ParseInt(e.Records[0].Attributes["SentTimestamp"], 10, 64))(t)
	})
}
