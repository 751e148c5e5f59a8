package sqsworker

import (
	"context"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/schemas"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/aws/smithy-go/transport/http/protocol/awsjson"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/jsonread"
	"github.com/sqsonce/sqsonce/internal/jsonread/jsonreadtest"
)

var (
	receiveAnswers = jsonreadtest.Answers{
		Op:      smithy.NewOperationSchema(schemas.ReceiveMessage, schemas.ReceiveMessageRequest, schemas.ReceiveMessageResult),
		Types:   sqs.TypeRegistry,
		Out:     func() smithy.Deserializable { return &sqs.ReceiveMessageOutput{} },
		SDK:     awsjson.New10(schemas.AmazonSQS),
		Own:     protocol{awsjson.New10(schemas.AmazonSQS)},
		IsQuick: func(text string) bool { return readerOf(text).received(&sqs.ReceiveMessageOutput{}) },
		Quick:   quickAnswers, Slow: slowAnswers,
	}
	deleteAnswers = jsonreadtest.Answers{
		Op:      smithy.NewOperationSchema(schemas.DeleteMessageBatch, schemas.DeleteMessageBatchRequest, schemas.DeleteMessageBatchResult),
		Types:   sqs.TypeRegistry,
		Out:     func() smithy.Deserializable { return &sqs.DeleteMessageBatchOutput{} },
		SDK:     receiveAnswers.SDK,
		Own:     receiveAnswers.Own,
		IsQuick: func(text string) bool { return readerOf(text).deleted(&sqs.DeleteMessageBatchOutput{}) },
		Quick:   quickDeletes, Slow: slowDeletes,
	}
)

func readerOf(text string) *answerReader { return &answerReader{Reader: jsonread.New([]byte(text))} }

// fromAWS is an answer of the API reference, with what a worker asks for.
const fromAWS = `{"Messages":[{"Attributes":{"SenderId":"AIDASSYFHUBOBT7F4XT75","ApproximateFirstReceiveTimestamp":"1677112433437",` +
	`"ApproximateReceiveCount":"1","SentTimestamp":"1677112427387"},"Body":"This is a test message",` +
	`"MD5OfBody":"fafb00f5732ab283681e124bf8747ed1","MessageId":"219f8380-5770-4cc2-8c3e-5c715e145f5e",` +
	`"ReceiptHandle":"AQEBaZ+j5qUoOAoxlmrCQPkBm9njMWXqemmIG6shMHCO6fV20JrQYg/AiZ8JELwLwOu5U61W+aIX5Qzu7GGofxJuvzymr4Ph53RiR0mu=="}]}`

var quickAnswers = []string{
	`{}`,
	`{"Messages":[]}`,
	fromAWS,
	// Two messages, with everything.
	`{"Messages":[{"MessageId":"a","ReceiptHandle":"h","MD5OfBody":"m","MD5OfMessageAttributes":"n","Body":"{\"order\":\"1\\n\"}\t\r\b\f\/",` +
		`"Attributes":{"MessageGroupId":"g","SequenceNumber":"7","AWSTraceHeader":"Root=1"},"MessageAttributes":{` +
		`"text":{"DataType":"String","StringValue":"Grüße 你好 😀"},"bytes":{"DataType":"Binary","BinaryValue":"AAH/"},"none":{}}},` +
		`{"MessageId":"b","ReceiptHandle":"i","Body":"","Attributes":{},"MessageAttributes":{}}]}`,
	// As emulators in Python space it.
	"{\"Messages\": [{\"MessageId\": \"a\", \"Attributes\": {\"SenderId\": \"s\"},\r\n\t\"Body\": \"b\"}, {}]} \n",
	// The last one counts.
	`{"Messages":[{"Body":"a","Body":"b","Attributes":{"k":"1","k":"2"}}]}`,
}

var slowAnswers = []string{
	``, ` `, `null`, `[]`, `"Messages"`, `{"Messages":null}`, `{"Messages":{}}`, `{"Messages":[null]}`, `{"Messages":[1]}`,
	`{"Messages":[{}],"More":1}`, `{"Messages":[{}],"Messages":[{},{}]}`, `{"Messages":[{"New":{"a":[1,2]}}]}`,
	`{"Messages":[{"Body":null}]}`, `{"Messages":[{"Body":1}]}`, `{"Messages":[{"Body":"\u00e9\ud83d\ude00\ud83d"}]}`,
	"{\"Messages\":[{\"Body\":\"\xff\"}]}", "{\"Messages\":[{\"Body\":\"a\x01\"}]}", `{"Messages":[{"Body":"\x"}]}`,
	`{"Messages":[{"Body":"a}]}`, `{"Messages":[{"Body":"a\`, `{"Messages":[{"Body":"a"`, `{"Messages":[{"Body":"a"}`, `{"Messages":[{"Body":"a"}]`,
	`{"Messages":[{"Body":"a"}]}}`, `{"Messages":[{"Body":"a"},]}`, `{"Messages":[{"Body":"a",}]}`, `{"Messages":[{"Body" "a"}]}`,
	`{"Messages":[{"Body":"a"}{"Body":"b"}]}`, `{"Messages":[{,"Body":"a"}]}`, `{"Mess\u0061ges":[]}`, `{"Messages":[{"Bödy":"a"}]}`,
	`{"Messages":[{"Attributes":{"a":1}}]}`, `{"Messages":[{"Attributes":{"a":"1"},"Attributes":{"b":"2"}}]}`,
	`{"Messages":[{"MessageAttributes":{"a":{"DataType":"Binary","BinaryValue":"?"}}}]}`,
	`{"Messages":[{"MessageAttributes":{"a":{"DataType":"String","StringListValues":["x"]}}}]}`,
	`{"Messages":[{"MessageAttributes":{"a":{}},"MessageAttributes":{"b":{}}}]}`,
	"{\"Messages\":[{\"MessageAttributes\":{\"\xff\":{}}}]}", `{"Messages":[{"MessageAttributes":{"é":{}}}]}`,
	`{"Messages":[{},{},{},{},{},{},{},{},{},{},{}]}`,
}

var quickDeletes = []string{
	`{}`,
	`{"Successful":[]}`,
	`{"Successful":[{"Id":"0"},{"Id":"1"},{"Id":"9"}]}`,
	`{ "Failed": [], "Successful": [ {"Id": "3"}, {}, {"Id":"1","Id":"2"} ] }`,
}

var slowDeletes = []string{
	``, `null`, `{"Successful":null}`, `{"Successful":{}}`, `{"Successful":[null]}`, `{"Successful":[{"Id":"10"}]}`, `{"Successful":[{"Id":""}]}`,
	`{"Successful":[{"Id":null}]}`, `{"Successful":[{"Id":1}]}`, `{"Successful":[{"New":"0"}]}`, `{"Successful":[],"Successful":[{"Id":"0"}]}`,
	`{"Successful":[{"Id":"0"}],"Failed":[{"Id":"1","SenderFault":true,"Code":"ReceiptHandleIsInvalid","Message":"expired"}]}`,
	`{"Failed":null}`, `{"Failed":[],"Failed":[]}`, `{"New":[]}`, `{"Successful":[{"Id":"0"}]`,
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	receiveAnswers.Test(t)
	deleteAnswers.Test(t)
}

func FuzzAnswer(f *testing.F) { jsonreadtest.Fuzz(f, receiveAnswers, deleteAnswers) }

// TestAnswersOutliveTheirReader: readers are used again.
func TestAnswersOutliveTheirReader(t *testing.T) {
	t.Parallel()
	var r answerReader
	read := func(text string) *sqs.ReceiveMessageOutput {
		r.Reader = jsonread.New([]byte(text))
		out := &sqs.ReceiveMessageOutput{}
		if !r.received(out) {
			t.Fatalf("left to the SDK: %s", text)
		}
		return out
	}
	text := quickAnswers[3]
	want := read(text)
	got := read(text)
	read(strings.Replace(fromAWS, "This is a test message", strings.Repeat("x", 1000), 1))
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

// TestLongAnswersAreNotKept: one message of a megabyte must not occupy the memory of a reader for good.
func TestLongAnswersAreNotKept(t *testing.T) {
	t.Parallel()
	long := `{"Messages":[{"Body":"` + strings.Repeat("x", 2*mostKept) + `"}]}`
	receiveAnswers.SameAsSDK(t, long)
	for range 100 {
		if r := answerReaders.Get().(*answerReader); r.raw.Cap() > mostKept || cap(r.body) > mostKept {
			t.Fatalf("kept: %d and %d bytes", r.raw.Cap(), cap(r.body))
		}
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	_, err := receiveAnswers.Read(receiveAnswers.Own, http.StatusOK, io.MultiReader(strings.NewReader(fromAWS[:40]), iotest.ErrReader(broken)))
	if e, ok := errors.AsType[*smithy.DeserializationError](err); !ok || !errors.Is(e, broken) {
		t.Errorf("a connection that broke: %v", err)
	}
	_, err = receiveAnswers.Read(receiveAnswers.Own, http.StatusBadRequest, strings.NewReader(`{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"gone"}`))
	if e, ok := errors.AsType[smithy.APIError](err); !ok || e.ErrorCode() != "QueueDoesNotExist" {
		t.Errorf("an error of SQS: %v", err)
	}
}

func TestReadQuickly(t *testing.T) {
	t.Parallel()
	o := sqs.Options{Protocol: awsjson.New10(schemas.AmazonSQS)}
	readQuickly(&o)
	if _, ok := o.Protocol.(protocol); !ok {
		t.Errorf("protocol %T", o.Protocol)
	}
	o.Protocol = awsjson.New11(schemas.AmazonSQS)
	readQuickly(&o)
	if _, ok := o.Protocol.(protocol); ok {
		t.Error("a protocol that is not known was taken over")
	}
	own := struct{ smithyhttp.ClientProtocol }{awsjson.New10(schemas.AmazonSQS)}
	o.Protocol = own
	readQuickly(&o)
	if o.Protocol != smithyhttp.ClientProtocol(own) {
		t.Error("a client's own way to read was taken over")
	}
	o.Protocol = nil
	readQuickly(&o)
	if o.Protocol != nil {
		t.Error("a client without a protocol got one")
	}
}

func BenchmarkAnswer(b *testing.B) {
	message := strings.TrimSuffix(strings.TrimPrefix(fromAWS, `{"Messages":[`), `]}`)
	receiveAnswers.Benchmark(b, `{"Messages":[`+strings.Repeat(message+",", 9)+message+`]}`)
}

// TestReceivesAreReadQuickly: with everything that a message can carry, and as the handler sees it.
func TestReceivesAreReadQuickly(t *testing.T) {
	bubble(t, setup{fifo: true}, func(x *fixture) {
		body := `{"order": "\t/o1/", "to": "Ängström 😀"}`
		_, err := x.c.SendMessage(x.Context(), &sqs.SendMessageInput{
			QueueUrl: &x.url, MessageBody: &body, MessageGroupId: aws.String("g"), MessageDeduplicationId: aws.String("d"),
			MessageAttributes: map[string]sqstypes.MessageAttributeValue{
				"text":  {DataType: aws.String("String"), StringValue: aws.String(`"quoted"`)},
				"bytes": {DataType: aws.String("Binary"), BinaryValue: []byte{0, 255}},
			},
			MessageSystemAttributes: map[string]sqstypes.MessageSystemAttributeValue{
				"AWSTraceHeader": {DataType: aws.String("String"), StringValue: aws.String("Root=1-5e3d83c1-e6a0db584850d61342823d4c")},
			},
		})
		if err != nil {
			x.Fatal(err)
		}
		var answers []string
		c := x.tapped(func(text []byte) []byte {
			answers = append(answers, string(text))
			return text
		})
		ctx, cancel := context.WithCancel(x.Context())
		var got sqsonce.Message
		w, err := New(c, x.url, func(_ context.Context, m *sqsonce.Message) error {
			got = *m
			cancel()
			return nil
		})
		if err != nil {
			x.Fatal(err)
		}
		if err := w.Run(ctx); err != nil {
			x.Error(err)
		}
		x.wantEmpty()
		for _, text := range answers {
			if !receiveAnswers.IsQuick(text) {
				x.Errorf("left to the SDK: %s", text)
			}
		}
		want := sqsonce.Message{
			ID: got.ID, Body: body, ReceiptHandle: got.ReceiptHandle, Group: "g", DedupID: "d", Sequence: got.Sequence,
			TraceHeader: "Root=1-5e3d83c1-e6a0db584850d61342823d4c", SentAt: got.SentAt, FirstReceivedAt: got.FirstReceivedAt,
			ReceiveCount: 1, QueueARN: got.QueueARN, KillAt: got.KillAt, Attributes: map[string]sqsonce.Attribute{
				"text": {Type: "String", String: `"quoted"`}, "bytes": {Type: "Binary", Binary: []byte{0, 255}},
			},
		}
		if !reflect.DeepEqual(got, want) {
			x.Errorf("handled %+v\nwant    %+v", got, want)
		}
		if got.ID == "" || got.ReceiptHandle == "" || got.Sequence == "" || got.SentAt.IsZero() || got.FirstReceivedAt.IsZero() {
			x.Errorf("incomplete: %+v", got)
		}
	})
}
