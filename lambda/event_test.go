package lambda

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/localstack/esm"
)

const (
	snsEvent = `{"Records":[{"EventVersion":"1.0","EventSubscriptionArn":"arn:aws:sns:us-east-1:1:t:x","EventSource":"aws:sns",
		"Sns":{"MessageId":"95df01b4","Message":"hello","TopicArn":"arn:aws:sns:us-east-1:1:t"}}]}`
	kinesisEvent = `{"Records":[{"kinesis":{"partitionKey":"k","data":"SGVsbG8=","sequenceNumber":"1"},"eventSource":"aws:kinesis",
		"eventID":"shardId-000000000000:1","eventName":"aws:kinesis:record","eventSourceARN":"arn:aws:kinesis:us-east-1:1:stream/s","awsRegion":"us-east-1"}]}`
	dynamoEvent = `{"Records":[{"eventID":"1","eventName":"INSERT","eventSource":"aws:dynamodb","dynamodb":{"Keys":{"id":{"S":"1"}}},
		"eventSourceARN":"arn:aws:dynamodb:us-east-1:1:table/t/stream/x"}]}`
	s3Event       = `{"Records":[{"eventSource":"aws:s3","eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"b"}}}]}`
	apiEvent      = `{"version":"2.0","routeKey":"$default","rawPath":"/","body":"{}"}`
	scheduleEvent = `{"version":"0","id":"x","detail-type":"Scheduled Event","source":"aws.events","resources":[],"detail":{}}`
)

// sqsRecord is the JSON of one good record, with overrides.
func sqsRecord(id, source, arn string) string {
	return `{"messageId":"` + id + `","receiptHandle":"h","body":"b","attributes":{},"messageAttributes":{},"eventSource":"` + source + `","eventSourceARN":"` + arn + `"}`
}

func records(rs ...string) string { return `{"Records":[` + strings.Join(rs, ",") + `]}` }

func TestBadEventsAreErrors(t *testing.T) {
	t.Parallel()
	good := sqsRecord("1", "aws:sqs", standardARN)
	for name, body := range map[string]string{
		"empty object":               `{}`,
		"null":                       `null`,
		"no records":                 `{"Records":[]}`,
		"null records":               `{"Records":null}`,
		"SNS":                        snsEvent,
		"Kinesis":                    kinesisEvent,
		"DynamoDB":                   dynamoEvent,
		"S3":                         s3Event,
		"API Gateway":                apiEvent,
		"schedule":                   scheduleEvent,
		"console's test event":       `{"key1":"value1","key2":"value2","key3":"value3"}`,
		"hand-made, a null record":   `{"Records":[null]}`,
		"hand-made, empty record":    `{"Records":[{}]}`,
		"hand-made, body alone":      `{"Records":[{"body":"x"}]}`,
		"hand-made, no ARN":          records(sqsRecord("1", "aws:sqs", "")),
		"hand-made, ARN of a topic":  records(sqsRecord("1", "aws:sqs", "arn:aws:sns:us-east-1:1:t")),
		"hand-made, a URL for ARN":   records(sqsRecord("1", "aws:sqs", "https://sqs.us-east-1.amazonaws.com/1/jobs")),
		"no message ID":              records(sqsRecord("", "aws:sqs", standardARN)),
		"no message ID, the last":    records(good, sqsRecord("", "aws:sqs", standardARN)),
		"no event source":            records(sqsRecord("1", "", standardARN)),
		"event source in capitals":   records(sqsRecord("1", "AWS:SQS", standardARN)),
		"another service's, in SQS'": records(good, sqsRecord("2", "aws:sns", standardARN)),
		"two queues":                 records(good, sqsRecord("2", "aws:sqs", fifoARN)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var e events.SQSEvent
			must.Do(t, json.Unmarshal([]byte(body), &e))
			f := wrap(t, func(context.Context, *sqsonce.Message) error {
				t.Error("a handler ran")
				return nil
			})
			r, err := f(t.Context(), e)
			if err == nil || !strings.HasPrefix(err.Error(), "lambda: ") {
				t.Errorf("got error %v, want one of the package", err)
			}
			if r.BatchItemFailures == nil || len(r.BatchItemFailures) > 0 {
				t.Errorf("got %#v with the error, want an empty list", r)
			}
			h := must.Get(NewHandler(func(context.Context, *sqsonce.Message) error { t.Error("a handler ran"); return nil }))(t)
			if out, failed := h.Invoke(t.Context(), []byte(body)); out != nil || failed == nil || failed.Error() != err.Error() {
				t.Errorf("as text: got %s and %v, want %v", out, failed, err)
			}
		})
	}
}

// fullRecord is an event from a FIFO dead-letter queue with every attribute.
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
	must.Do(t, json.Unmarshal([]byte(fullRecord), &e))
	want := sqsonce.Message{
		ID: "059f36b4", Body: "hello", Group: "g", Sequence: "18849496460467696128", DedupID: "d", ReceiveCount: 3,
		SentAt: time.UnixMilli(1545082649183), FirstReceivedAt: time.UnixMilli(1545082649185),
		QueueARN: fifoARN, ReceiptHandle: "AQEB", TraceHeader: "Root=1-5e3d83c1",
		Attributes: map[string]sqsonce.Attribute{
			"text": {Type: "String", String: "v"}, "empty": {Type: "String"},
			"number": {Type: "Number.int", String: "3"}, "bytes": {Type: "Binary", Binary: []byte{1, 2}},
		},
	}
	h := func(_ context.Context, m *sqsonce.Message) error {
		if diff := cmp.Diff(want, *m); diff != "" {
			t.Errorf("message (-want +got):\n%s", diff)
		}
		return errTest
	}
	r := must.Get(json.Marshal(must.Get(wrap(t, h)(t.Context(), e))(t)))(t)
	out := must.Get(must.Get(NewHandler(h))(t).Invoke(t.Context(), []byte(fullRecord)))(t)
	if string(out) != string(r) || !strings.Contains(string(out), "059f36b4") {
		t.Errorf("answers: %s from the text of the event, %s from the event", out, r)
	}
	if diff := cmp.Diff(want, *MessageOf(e.Records[0])); diff != "" {
		t.Errorf("MessageOf (-want +got):\n%s", diff)
	}
}

// TestQuirks has events as Lambda sends them, and as people write them for tests.
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
		ran := 0
		f := must.Get(NewHandler(func(_ context.Context, m *sqsonce.Message) error {
			ran++
			if m.ReceiveCount != 1 || !m.SentAt.IsZero() {
				t.Errorf("%s: receive count %d, sent at %v; want 1 and zero", name, m.ReceiveCount, m.SentAt)
			}
			return nil
		}))(t)
		if got := must.Get(f.Invoke(t.Context(), []byte(records(body))))(t); string(got) != `{"batchItemFailures":[]}` || ran != 1 {
			t.Errorf("%s: answer %s, ran %d times", name, got, ran)
		}
	}
}

// mapping runs f behind an event source mapping for d.
func (x *fixture) mapping(f function, d time.Duration) {
	x.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- esm.Run(ctx, x.c, esm.Config{QueueURL: x.url, FunctionTimeout: 30 * time.Second, ReportBatchItemFailures: true},
			testaws.Invoke(f))
	}()
	time.Sleep(d)
	cancel()
	if err := <-ended; err != nil {
		x.Errorf("mapping: %v", err)
	}
}

// systemNames are those of the attributes that become fields of a message.
var systemNames = []string{
	"ApproximateReceiveCount", "SentTimestamp", "ApproximateFirstReceiveTimestamp", "MessageGroupId", "SequenceNumber", "MessageDeduplicationId",
	"AWSTraceHeader", "DeadLetterQueueSourceArn",
}

// FuzzEvent has any JSON, for Wrap's function and for NewHandler's, which handle an event alike. Unless they return an error, each record was
// handled or is named, it is named if its handler failed, and nothing else is named.
func FuzzEvent(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `[]`, `{"Records":[{}]}`, `{"records":null}`, snsEvent, kinesisEvent, dynamoEvent, s3Event, apiEvent, fullRecord,
		records(sqsRecord("1", "aws:sqs", standardARN), sqsRecord("2", "aws:sqs", standardARN), sqsRecord("1", "aws:sqs", standardARN)),
		records(sqsRecord("a", "aws:sqs", fifoARN), sqsRecord("b", "aws:sqs", fifoARN), sqsRecord("c", "aws:sqs", fifoARN)),
	} {
		f.Add([]byte(seed), uint8(0))
		f.Add([]byte(seed), uint8(0b1010))
	}
	f.Fuzz(func(t *testing.T, data []byte, bad uint8) {
		var e events.SQSEvent
		if json.Unmarshal(data, &e) != nil {
			return // the runtime returns an error
		}
		for i := range e.Records {
			for name := range e.Records[i].Attributes {
				if !slices.Contains(systemNames, name) {
					delete(e.Records[i].Attributes, name) // Invoke matches names in any case
				}
			}
		}
		wrapped, err := answerTo(t, e, bad, func(h sqsonce.Handler) ([]byte, error) {
			r, err := wrap(t, h)(t.Context(), e)
			if r.BatchItemFailures == nil {
				t.Fatal("a list that is null")
			}
			return must.Get(json.Marshal(r))(t), err
		})
		for _, text := range [][]byte{data, must.Get(json.Marshal(e))(t)} {
			invoked, invokeErr := answerTo(t, e, bad, func(h sqsonce.Handler) ([]byte, error) {
				return must.Get(NewHandler(h, func(o *Options) { o.Client = NoClient }))(t).Invoke(t.Context(), text)
			})
			if bytes.Equal(text, data) {
				continue // names may be there twice, or in another case
			}
			if diff := cmp.Diff(wrapped, invoked); diff != "" || fmt.Sprint(err) != fmt.Sprint(invokeErr) {
				t.Fatalf("Invoke returns %v in place of %v (-Wrap +Invoke):\n%s", invokeErr, err, diff)
			}
		}
	})
}

// answered is what handlers saw of an event, and the answer to it.
type answered struct {
	Seen   map[string]int
	Answer string
}

// answerTo calls a function with an event, in which some handlers fail.
func answerTo(t *testing.T, e events.SQSEvent, bad uint8, call func(sqsonce.Handler) ([]byte, error)) (answered, error) {
	t.Helper()
	copies, failed := map[string]int{}, map[string]bool{}
	for i := range e.Records {
		id := e.Records[i].MessageId
		copies[id]++
		failed[id] = failed[id] || i < 8 && bad&(1<<i) != 0
	}
	var mu sync.Mutex
	handled, a := map[string]int{}, answered{Seen: map[string]int{}}
	body, err := call(func(_ context.Context, m *sqsonce.Message) error {
		mu.Lock()
		defer mu.Unlock()
		handled[m.ID]++
		a.Seen[string(must.Get(json.Marshal(m))(t))]++
		if failed[m.ID] {
			return errTest
		}
		return nil
	})
	if err != nil {
		if len(handled) > 0 {
			t.Fatalf("error %v after %d handlers ran", err, len(handled))
		}
		return a, err
	}
	if len(e.Records) == 0 {
		t.Fatal("no records and no error: a silent success")
	}
	a.Answer = string(body)
	var r events.SQSEventResponse
	must.Do(t, json.Unmarshal(body, &r))
	named := map[string]bool{}
	for _, item := range r.BatchItemFailures {
		if item.ItemIdentifier == "" || named[item.ItemIdentifier] || copies[item.ItemIdentifier] == 0 {
			t.Fatalf("empty, twice, or not of the event in %s", body)
		}
		named[item.ItemIdentifier] = true
	}
	for id, n := range copies {
		if done := handled[id] == n && !failed[id]; done == named[id] {
			t.Fatalf("%q was handled %d times of %d, failed %t, and is named in %s: %t", id, handled[id], n, failed[id], body, named[id])
		}
	}
	return a, nil
}
