package sqstest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/sqsonce/sqsonce/internal/suite"
)

var wireCases = []testCase{
	// AWS JSON 1.0 protocol (https://smithy.io/2.0/aws/protocols/aws-json-1_0-protocol.html).
	{name: "wire/answer", run: func(x *exam) {
		q := x.standard()
		status, header, out := x.call("SendMessage", `{"QueueUrl":"`+q.url+`","MessageBody":"a"}`, true)
		if status != http.StatusOK || out["MessageId"] == nil || out["MD5OfMessageBody"] != "0cc175b9c0f1b6a831c399e269772661" {
			x.fatalf("answered %d %v, want a message ID and a digest", status, out)
		}
		if got, _, err := mime.ParseMediaType(header.Get("Content-Type")); err != nil || got != "application/x-amz-json-1.0" {
			x.fatalf("Content-Type %q, want application/x-amz-json-1.0", header.Get("Content-Type"))
		}
	}},
	// As above: a body that is not JSON is a SerializationException.
	{name: "wire/malformed JSON", run: func(x *exam) {
		x.refused("SendMessage", `{"QueueUrl":`, true, http.StatusBadRequest, "SerializationException")
	}},
	// As above.
	{name: "wire/value of a wrong type", run: func(x *exam) {
		q := x.standard()
		x.refused("ReceiveMessage", `{"QueueUrl":"`+q.url+`","MaxNumberOfMessages":{"a":1}}`, true, http.StatusBadRequest, "SerializationException")
	}},
	// As above: UnknownOperationException.
	{name: "wire/unknown operation", run: func(x *exam) {
		x.refused("SendMassage", `{}`, true, http.StatusBadRequest, "UnknownOperationException")
	}},
	// API CommonErrors: MissingAuthenticationToken, 403: a request must carry a signature.
	{name: "wire/unsigned request", run: func(x *exam) {
		x.refused("ListQueues", `{}`, false, http.StatusForbidden, "MissingAuthenticationTokenException", "MissingAuthenticationToken")
	}},
	// API: QueueUrl is required. API CommonErrors: MissingParameter.
	{name: "wire/queue URL missing", run: func(x *exam) {
		x.refused("SendMessage", `{"MessageBody":"a"}`, true, http.StatusBadRequest, "MissingRequiredParameterException", "MissingParameter")
	}},
	// JSON protocol: a server ignores members that the model does not have.
	{name: "wire/unknown members ignored", run: func(x *exam) {
		q := x.standard()
		if status, _, out := x.call("SendMessage", `{"QueueUrl":"`+q.url+`","MessageBody":"a","Colour":"red"}`, true); status != http.StatusOK {
			x.fatalf("answered %d %v, want 200", status, out)
		}
	}},
	// API ReceiveMessage: 0 is a value, and not the queue's default. The SDK for Go cannot send it.
	{name: "wire/timeouts of 0", run: func(x *exam) {
		q := x.standard(attrs{"ReceiveMessageWaitTimeSeconds": "20"})
		x.lasts("a receive with WaitTimeSeconds 0", 0, func() { x.call("ReceiveMessage", `{"QueueUrl":"`+q.url+`","WaitTimeSeconds":0}`, true) })
		x.send(q, "a")
		_, _, out := x.call("ReceiveMessage", `{"QueueUrl":"`+q.url+`","VisibilityTimeout":0}`, true)
		if messages, _ := out["Messages"].([]any); len(messages) != 1 {
			x.fatalf("answered %v, want a message", out)
		}
		x.received(x.one(q, "a"), 2)
	}},
	// API, errors of each operation: the SDK returns typed errors.
	{name: "wire/errors have their types", run: func(x *exam) {
		q := x.standard()
		_, err := x.c.GetQueueUrl(x.ctx, &sqs.GetQueueUrlInput{QueueName: ptr(x.name())})
		typed[*types.QueueDoesNotExist](x, err)
		_, err = x.tryCreate(q.name, attrs{"VisibilityTimeout": "41"})
		typed[*types.QueueNameExists](x, err)
		typed[*types.ReceiptHandleIsInvalid](x, x.tryDelete(q, ptr("garbage")))
		_, err = x.trySend(q, "\x00")
		typed[*types.InvalidMessageContents](x, err)
		_, err = x.trySendBatch(q, entries())
		typed[*types.EmptyBatchRequest](x, err)
	}},
	// SQS's model has the trait awsQueryCompatible: the older codes come in the header x-amzn-query-error, and the SDK prefers
	// them. Recorded: test_non_existent_queue, test_too_many_entries_in_batch_request and others.
	{name: "wire/errors have the codes of the Query protocol", run: func(x *exam) {
		q := x.standard()
		expect := func(err error, want string) {
			if e, ok := errors.AsType[smithy.APIError](err); !ok || e.ErrorCode() != want {
				x.fatalf("got error %v, want code %s", err, want)
			}
		}
		_, err := x.c.GetQueueUrl(x.ctx, &sqs.GetQueueUrlInput{QueueName: ptr(x.name())})
		expect(err, "AWS.SimpleQueueService.NonExistentQueue")
		_, err = x.trySendBatch(q, entries())
		expect(err, "AWS.SimpleQueueService.EmptyBatchRequest")
		_, err = x.trySendBatch(q, entries(strings.Split("abcdefghijk", "")...))
		expect(err, "AWS.SimpleQueueService.TooManyEntriesInBatchRequest")
		_, err = x.tryCreate(q.name, attrs{"VisibilityTimeout": "41"})
		expect(err, "QueueAlreadyExists")
		expect(x.tryDelete(q, ptr("garbage")), "ReceiptHandleIsInvalid")
		_, err = x.trySend(q, "a", delay(901))
		expect(err, "InvalidParameterValue")
		_, err = x.trySend(q, "")
		expect(err, "MissingParameter")
	}},
	// Recorded: test_batch_send_with_invalid_char_should_succeed: the Code of a failed entry has no namespace.
	{name: "wire/errors in a batch have bare codes", run: func(x *exam) {
		q := x.standard()
		e := entries("\x00", "b")
		e[1].DelaySeconds = 901
		out := x.sendBatch(q, e)
		out.Failed = append(out.Failed, x.deleteBatch(q, deleteEntries(ptr("garbage"))).Failed...)
		var got []string
		for _, f := range out.Failed {
			got = append(got, str(f.Code))
		}
		if want := "InvalidMessageContents InvalidParameterValue ReceiptHandleIsInvalid"; strings.Join(got, " ") != want {
			x.fatalf("codes %q, want %s", got, want)
		}
	}},
}

// call sends a request of the JSON protocol without the SDK.
func (x *exam) call(op, body string, signed bool) (status int, header http.Header, out map[string]any) {
	o := x.c.Options()
	r := suite.Get(http.NewRequestWithContext(x.ctx, http.MethodPost, *o.BaseEndpoint, strings.NewReader(body)))
	r.Header.Set("X-Amz-Target", "AmazonSQS."+op)
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	if signed {
		credentials := suite.Get(o.Credentials.Retrieve(x.ctx))
		sum := sha256.Sum256([]byte(body))
		x.ok(v4.NewSigner().SignHTTP(x.ctx, credentials, r, hex.EncodeToString(sum[:]), "sqs", o.Region, time.Now()))
	}
	resp := suite.Get(o.HTTPClient.Do(r))
	defer resp.Body.Close() // only read
	text := suite.Get(io.ReadAll(resp.Body))
	if err := json.Unmarshal(text, &out); err != nil {
		x.fatalf("%s: answered %d %.200q, which is not JSON: %v", op, resp.StatusCode, text, err)
	}
	return resp.StatusCode, resp.Header, out
}

// refused expects an error of the given shape: in __type, after a namespace.
func (x *exam) refused(op, body string, signed bool, status int, shapes ...string) {
	got, _, out := x.call(op, body, signed)
	shape, _ := out["__type"].(string)
	shape = shape[strings.LastIndexByte(shape, '#')+1:]
	for _, s := range shapes {
		if got == status && shape == s {
			return
		}
	}
	x.fatalf("%s: answered %d %v, want %d %s", op, got, out, status, strings.Join(shapes, " or "))
}

func typed[E error](x *exam, err error) {
	if _, ok := errors.AsType[E](err); !ok {
		var want E
		x.fatalf("got error %v, want a %T", err, want)
	}
}
