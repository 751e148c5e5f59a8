package memsqs_test

import (
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

const (
	notInFlight  = "AWS.SimpleQueueService.MessageNotInflight"
	invalidValue = "InvalidParameterValue"
)

func TestForgedHandles(t *testing.T) {
	standard(t, func(x *fixture) {
		x.send("a")
		m := x.want("a")[0]
		h := *m.ReceiptHandle
		for _, forged := range []string{h + "AAAA", h[:len(h)-4], h[:30] + string(rune('A'+h[30]%2)) + h[31:]} {
			x.code(x.delete(types.Message{ReceiptHandle: &forged}), "ReceiptHandleIsInvalid")
		}
		x.ok(x.delete(m))
	})
}

// The errors that Options.StrictHandles gives where AWS was recorded to forgive. On a FIFO queue they are the same.
func TestStrictHandles(t *testing.T) {
	t.Parallel()
	for group, queue := range map[string]func(*testing.T, func(*fixture), ...func(*memsqs.Options)){"": standard, "group": fifo} {
		queue(t, func(x *fixture) {
			x.send("a", slices.DeleteFunc([]string{group}, func(g string) bool { return g == "" })...)
			first := x.want("a")[0]
			x.ok(x.visibility(first, 0))
			second := x.want("a")[0]
			x.code(x.visibility(first, 0), invalidValue)
			x.want()
			time.Sleep(30 * time.Second)
			x.code(x.visibility(second, 100), notInFlight)
			out := must.Get(x.c.ChangeMessageVisibilityBatch(x.Context(), &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &x.url, Entries: []types.ChangeMessageVisibilityBatchRequestEntry{
				{Id: aws.String("1"), ReceiptHandle: second.ReceiptHandle, VisibilityTimeout: 100},
			}}))(x)
			if len(out.Failed) != 1 {
				x.Errorf("in a batch: %d failed, want 1", len(out.Failed))
			}
			x.want("a") // it is not hidden again
		}, strictHandles)
	}
}
