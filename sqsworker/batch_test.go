package sqsworker

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

func TestEntryResults(t *testing.T) {
	t.Parallel()
	failed := []sqstypes.BatchResultErrorEntry{{Id: aws.String("2"), Code: aws.String("InternalError")}, {Id: aws.String("99")}}
	got := newResults(4, nil)
	for _, id := range []*string{aws.String("1"), nil, aws.String("x"), aws.String("-1")} {
		got.succeeded(id)
	}
	got.failed(failed)
	if got[1] != nil || errorCode(got[2]) != "InternalError" {
		t.Errorf("answered entries: %v", got)
	}
	if !errors.Is(got[0], errMissing) || !errors.Is(got[3], errMissing) {
		t.Errorf("entries that the answer does not name: got %v, want errors", got)
	}
	for _, err := range newResults(2, errTest) {
		if !errors.Is(err, errTest) {
			t.Errorf("failed call: %v", err)
		}
	}
}

// TestBatchesHavePositionalIDs: the same message may be in a batch twice, with two deliveries of which one is given back.
// SQS refuses a batch with the same ID twice.
func TestBatchesHavePositionalIDs(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		x.sendMany(30)
		c := &entryIDsSeen{Client: x.c, t: t}
		w, err := New(c, x.url, func(context.Context, *sqsonce.Message) error {
			time.Sleep(20 * time.Second)
			return nil
		}, func(o *Options) { o.Concurrency, o.Wait = 30, time.Second })
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := w.Run(ctx); err != nil {
			t.Error(err)
		}
		x.wantEmpty()
		if c.full.Load() == 0 {
			t.Error("no full batch")
		}
	})
}

type entryIDsSeen struct {
	Client
	t    *testing.T
	full atomic.Int64
}

func (c *entryIDsSeen) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, o ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	for i, e := range in.Entries {
		c.see(i, e.Id)
	}
	return c.Client.DeleteMessageBatch(ctx, in, o...)
}

func (c *entryIDsSeen) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, o ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	for i, e := range in.Entries {
		c.see(i, e.Id)
	}
	return c.Client.ChangeMessageVisibilityBatch(ctx, in, o...)
}

func (c *entryIDsSeen) see(i int, id *string) {
	if aws.ToString(id) != fmt.Sprint(i) {
		c.t.Errorf("entry %d has ID %s", i, aws.ToString(id))
	}
	if i == host.MaxBatch-1 {
		c.full.Add(1)
	}
}
