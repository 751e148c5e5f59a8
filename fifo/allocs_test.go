//go:build !race

package fifo_test

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/must"
)

// accepting is a client whose queue accepts all.
type accepting struct{ fifo.Client }

func (accepting) SendMessageBatch(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	out := &sqs.SendMessageBatchOutput{}
	for _, e := range in.Entries {
		sum := md5.Sum([]byte(*e.MessageBody))
		out.Successful = append(out.Successful, sqstypes.SendMessageBatchResultEntry{Id: e.Id, MessageId: e.Id, SequenceNumber: aws.String("1"),
			MD5OfMessageBody: aws.String(hex.EncodeToString(sum[:]))})
	}
	return out, nil
}

// Without hooks an event allocates what it did before there were hooks.
func TestAllocationsWithoutHooks(t *testing.T) {
	p := must.Get(fifo.NewPublisher(accepting{}, "https://sqs.eu-west-1.amazonaws.com/123456789012/orders.fifo", "orders", func(o *fifo.Options) { o.Linger = -1 }))(t)
	ctx, e := t.Context(), event("g", 1)
	ten := each(10, 1)
	for _, tt := range []struct {
		name string
		f    func()
		most float64
	}{
		{"Publish", func() { _, _ = p.Publish(ctx, e) }, 59},
		{"PublishAll of ten", func() { _, _ = p.PublishAll(ctx, ten) }, 240},
	} {
		if got := testing.AllocsPerRun(1000, tt.f); got > tt.most {
			t.Errorf("%s: %v allocations, want %v", tt.name, got, tt.most)
		}
	}
}
