package lambda

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
)

// fullRecord is what Lambda sends from a FIFO dead-letter queue with every attribute.
const fullRecord = `{"Records":[{
	"messageId":"059f36b4","receiptHandle":"AQEB","body":"hello",
	"attributes":{"ApproximateReceiveCount":"3","AWSTraceHeader":"Root=1-5e3d83c1","SentTimestamp":"1545082649183",
		"SenderId":"AIDA","ApproximateFirstReceiveTimestamp":"1545082649185","SequenceNumber":"18849496460467696128",
		"MessageGroupId":"g","MessageDeduplicationId":"d","DeadLetterQueueSourceArn":"arn:aws:sqs:us-east-1:1:x.fifo"},
	"messageAttributes":{
		"text":{"stringValue":"v","stringListValues":[],"binaryListValues":[],"dataType":"String"},
		"empty":{"stringValue":"","stringListValues":[],"binaryListValues":[],"dataType":"String"},
		"number":{"stringValue":"3","binaryValue":null,"stringListValues":[],"binaryListValues":[],"dataType":"Number.int"},
		"bytes":{"binaryValue":"AQI=","stringListValues":[],"binaryListValues":[],"dataType":"Binary"}},
	"md5OfBody":"5d41402abc4b2a76b9719d911017c592","md5OfMessageAttributes":"x",
	"eventSource":"aws:sqs","eventSourceARN":"arn:aws:sqs:us-east-1:000000000000:jobs.fifo","awsRegion":"us-east-1"}]}`

func TestMessage(t *testing.T) {
	t.Parallel()
	var e events.SQSEvent
	if err := json.Unmarshal([]byte(fullRecord), &e); err != nil {
		t.Fatal(err)
	}
	want := sqsonce.Message{
		ID: "059f36b4", Body: "hello", Group: "g", Sequence: "18849496460467696128", DedupID: "d", ReceiveCount: 3,
		SentAt: time.UnixMilli(1545082649183), FirstReceivedAt: time.UnixMilli(1545082649185),
		QueueARN: fifoARN, ReceiptHandle: "AQEB", TraceHeader: "Root=1-5e3d83c1",
		Attributes: map[string]sqsonce.Attribute{
			"text": {Type: "String", String: "v"}, "empty": {Type: "String"},
			"number": {Type: "Number.int", String: "3"}, "bytes": {Type: "Binary", Binary: []byte{1, 2}},
		},
	}
	f := wrap(t, func(_ context.Context, m *sqsonce.Message) error {
		if diff := cmp.Diff(want, *m); diff != "" {
			t.Errorf("message (-want +got):\n%s", diff)
		}
		return nil
	})
	answer(t, f, t.Context(), e)
}

// TestQuirks are events as Lambda really sends them, and as people write them for tests.
func TestQuirks(t *testing.T) {
	t.Parallel()
	const head = `{"messageId":"1","receiptHandle":"h","body":"b","eventSource":"aws:sqs","eventSourceARN":"` + standardARN + `"`
	for name, body := range map[string]string{
		"MD5 of attributes is null (batching window)": head + `,"md5OfMessageAttributes":null,"attributes":{},"messageAttributes":{}}`,
		"binary value is null":                        head + `,"messageAttributes":{"a":{"stringValue":"x","binaryValue":null,"stringListValues":null,"binaryListValues":null,"dataType":"String"}}}`,
		"no attributes at all":                        head + `}`,
		"attributes are null":                         head + `,"attributes":null,"messageAttributes":null}`,
		"counts that are no numbers":                  head + `,"attributes":{"ApproximateReceiveCount":"many","SentTimestamp":"today"}}`,
		"a count of zero":                             head + `,"attributes":{"ApproximateReceiveCount":"0"}}`,
		"a count that overflows":                      head + `,"attributes":{"ApproximateReceiveCount":"99999999999999999999"}}`,
		"unknown names":                               head + `,"attributes":{"NewAttribute":"x"},"newField":{"a":1}}`,
		"the body's MD5 is another's":                 head + `,"md5OfBody":"0"}`,
	} {
		var e events.SQSEvent
		if err := json.Unmarshal([]byte(records(body)), &e); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		ran := 0
		f := wrap(t, func(_ context.Context, m *sqsonce.Message) error {
			ran++
			if m.ReceiveCount != 1 || !m.SentAt.IsZero() {
				t.Errorf("%s: receive count %d, sent at %v; want 1 and zero", name, m.ReceiveCount, m.SentAt)
			}
			return nil
		})
		if got := answer(t, f, t.Context(), e); got != "" || ran != 1 {
			t.Errorf("%s: failed %q, ran %d times", name, got, ran)
		}
	}
}

func TestBodiesAreNotCopied(t *testing.T) {
	t.Parallel()
	e := batch("1")
	e.Records[0].Body = strings.Repeat("x", 1<<20) // the largest SQS takes
	f := wrap(t, func(_ context.Context, m *sqsonce.Message) error {
		if len(m.Body) != 1<<20 || unsafe.StringData(m.Body) != unsafe.StringData(e.Records[0].Body) {
			t.Error("the body was copied")
		}
		return nil
	})
	if got := answer(t, f, t.Context(), e); got != "" {
		t.Errorf("failed: %q", got)
	}
}

// TestLargestBatches: ten thousand records are the most a mapping takes, 6 MB the most an event holds.
func TestLargestBatches(t *testing.T) {
	t.Parallel()
	var r runs
	ids := numbered(10_000)
	f := wrap(t, r.wrap(outcomes{ids[17]: fails(errTest), ids[9_999]: exits}.handle))
	if got, want := answer(t, f, t.Context(), batch(ids...)), ids[17]+" "+ids[9_999]; got != want || r.count() != 10_000 {
		t.Errorf("10,000 records: failed %q, %d ran; want %q, all", got, r.count(), want)
	}

	e := batch("1", "2", "3", "4", "5", "6")
	for i := range e.Records {
		e.Records[i].Body = strings.Repeat(e.Records[i].MessageId, 1<<20)
	}
	if got := answer(t, wrap(t, fails(nil)), t.Context(), e); got != "" {
		t.Errorf("6 MB: failed %q", got)
	}
	if got := answer(t, wrap(t, fails(errTest)), t.Context(), batch(ids...)); got != strings.Join(ids, " ") {
		t.Error("10,000 failures: not all are named")
	}
}

func TestAllocations(t *testing.T) {
	const n = 1000
	f := wrap(t, fails(nil))
	e := benchEvent(n)
	ctx := context.Background()
	per := testing.AllocsPerRun(10, func() {
		if r, err := f(ctx, e); err != nil || len(r.BatchItemFailures) > 0 {
			t.Errorf("got %v, %v", r, err)
		}
	}) / n
	if per > 3 {
		t.Errorf("%.2f allocations per record, want at most 3", per)
	}
}
