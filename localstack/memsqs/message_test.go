package memsqs_test

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

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

func TestUnknownSystemAttribute(t *testing.T) {
	standard(t, func(x *fixture) {
		_, err := x.c.ReceiveMessage(x.Context(), &sqs.ReceiveMessageInput{QueueUrl: &x.url, MessageSystemAttributeNames: []types.MessageSystemAttributeName{"Nonsense"}})
		x.code(err, "InvalidAttributeName")
	})
}

func entries(bodies ...string) []types.SendMessageBatchRequestEntry {
	var out []types.SendMessageBatchRequestEntry
	for i, b := range bodies {
		out = append(out, types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(b)})
	}
	return out
}

func (x *fixture) sendBatch(e []types.SendMessageBatchRequestEntry) (*sqs.SendMessageBatchOutput, error) {
	return x.c.SendMessageBatch(x.Context(), &sqs.SendMessageBatchInput{QueueUrl: &x.url, Entries: e})
}

// failures are a batch's failed entries without their messages.
func (x *fixture) failures(got []types.BatchResultErrorEntry, want ...types.BatchResultErrorEntry) {
	x.Helper()
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(types.BatchResultErrorEntry{}, "Message"), cmpopts.IgnoreUnexported(types.BatchResultErrorEntry{})); d != "" {
		x.Errorf("failed entries (-want +got):\n%s", d)
	}
}

func failure(id, code string, sender bool) types.BatchResultErrorEntry {
	return types.BatchResultErrorEntry{Id: &id, Code: &code, SenderFault: sender}
}

func TestDelayOfAFIFOEntryFailsAlone(t *testing.T) {
	fifo(t, func(x *fixture) {
		e := entries("a", "b")
		for i := range e {
			e[i].MessageGroupId, e[i].MessageDeduplicationId = aws.String("g"), e[i].MessageBody
		}
		e[0].DelaySeconds = 1
		out, err := x.sendBatch(e)
		x.ok(err)
		x.failures(out.Failed, failure("0", invalidValue, true))
		x.want("b")
	})
}

func (x *fixture) try(body string, optFns ...func(*sqs.SendMessageInput)) error {
	in := &sqs.SendMessageInput{QueueUrl: &x.url, MessageBody: &body}
	for _, f := range optFns {
		f(in)
	}
	_, err := x.c.SendMessage(x.Context(), in)
	return err
}

func TestAttributeWithoutType(t *testing.T) {
	standard(t, func(x *fixture) {
		none, value := "", "v"
		x.code(x.try("a", func(in *sqs.SendMessageInput) {
			in.MessageAttributes = map[string]types.MessageAttributeValue{"k": {DataType: &none, StringValue: &value}}
		}), invalidValue)
	})
}

// Encryption with a key of KMS ends that of SQS, until the key is removed.
func TestEncryption(t *testing.T) {
	t.Parallel()
	standard(t, func(x *fixture) {
		want := func(value string) {
			x.Helper()
			if got := x.attributes("SqsManagedSseEnabled")["SqsManagedSseEnabled"]; got != value {
				x.Errorf("SqsManagedSseEnabled is %s, want %s", got, value)
			}
		}
		want("true")
		x.ok(x.set(attrs{"KmsMasterKeyId": "testKeyId"})) // test_sse_queue_attributes
		want("false")
		x.ok(x.set(attrs{"KmsMasterKeyId": "", "SqsManagedSseEnabled": "true"}))
		want("true")
	})
}

// A move whose source was deleted cannot be cancelled.
func TestMoveOfADeletedQueue(t *testing.T) {
	t.Parallel()
	standard(t, func(x *fixture) {
		dead := x.create("dead", nil)
		x.ok(x.set(attrs{"RedrivePolicy": policy("dead")}))
		out, err := x.c.StartMessageMoveTask(x.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(arn("dead"))})
		x.ok(err)
		_, err = x.c.DeleteQueue(x.Context(), &sqs.DeleteQueueInput{QueueUrl: &x.url})
		x.ok(err)
		_, err = x.c.DeleteQueue(x.Context(), &sqs.DeleteQueueInput{QueueUrl: &dead})
		x.ok(err)
		_, err = x.c.CancelMessageMoveTask(x.Context(), &sqs.CancelMessageMoveTaskInput{TaskHandle: out.TaskHandle})
		x.code(err, "ResourceNotFoundException") // test_cancel_with_invalid_source_arn_in_task_handle
	})
}
