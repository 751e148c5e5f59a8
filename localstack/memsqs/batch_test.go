package memsqs_test

import (
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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
