package memsqs_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

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
