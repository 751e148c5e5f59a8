package memsqs_test

import (
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sqsonce/sqsonce/internal/must"
)

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

func (x *fixture) try(body string, optFns ...func(*sqs.SendMessageInput)) error {
	in := &sqs.SendMessageInput{QueueUrl: &x.url, MessageBody: &body}
	for _, f := range optFns {
		f(in)
	}
	_, err := x.c.SendMessage(x.Context(), in)
	return err
}

// A move whose source was deleted cannot be cancelled.
func TestMoveOfADeletedQueue(t *testing.T) {
	t.Parallel()
	standard(t, func(x *fixture) {
		dead := x.create("dead", nil)
		x.ok(x.set(attrs{"RedrivePolicy": policy("dead")}))
		out, err := x.c.StartMessageMoveTask(x.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(arn("dead"))})
		x.ok(err)
		must.Get(x.c.DeleteQueue(x.Context(), &sqs.DeleteQueueInput{QueueUrl: &x.url}))(x)
		must.Get(x.c.DeleteQueue(x.Context(), &sqs.DeleteQueueInput{QueueUrl: &dead}))(x)
		_, err = x.c.CancelMessageMoveTask(x.Context(), &sqs.CancelMessageMoveTaskInput{TaskHandle: out.TaskHandle})
		x.code(err, "ResourceNotFoundException") // test_cancel_with_invalid_source_arn_in_task_handle
	})
}
