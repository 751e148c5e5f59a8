package outbox_test

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/fifo/outbox/internal/refstore"
)

// A relay that publishes 100,000 events of one group, the largest page at once, has less than 64 MiB in use. It is not parallel: the
// heap is that of the whole process.
func TestMemoryOfALongGroup(t *testing.T) {
	const events, most = 100_000, 64 << 20
	synctest.Test(t, func(t *testing.T) {
		long := &longGroup{events: events, body: strings.Repeat("b", 1000)}
		p, err := fifo.NewPublisher(long, "https://sqs.us-east-1.amazonaws.com/000000000000/orders.fifo", refstore.Source)
		if err != nil {
			t.Fatal(err)
		}
		r, err := outbox.NewRelay(long, p, func(o *outbox.Options) { o.Page = 1000 })
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		if err := r.Drain(ctx, "g"); err != nil {
			t.Fatal(err)
		}
		if long.sent != events || long.deleted != events {
			t.Errorf("%d events sent and %d deleted, want %d", long.sent, long.deleted, events)
		}
		if long.heap == 0 || long.heap > most {
			t.Errorf("%d MiB in use, want at most %d", long.heap>>20, most>>20)
		}
		t.Logf("%d MiB in use", long.heap>>20)
	})
}

// longGroup is an outbox with one group, whose events are made when they are read, and a queue that keeps nothing.
type longGroup struct {
	outbox.Store                  // nil: no other method is called
	fifo.Client                   // nil
	events, deleted, sent, visits int
	body                          string
	heap                          uint64 // the most that was in use
}

func (l *longGroup) Claim(_ context.Context, groups []string, _ time.Duration) ([]string, error) {
	return groups, nil
}

func (l *longGroup) Unclaim(context.Context, []string) error { return nil }

func (l *longGroup) Read(_ context.Context, g outbox.Group, _ outbox.Known, limit int) (es []outbox.Entry, err error) {
	for n := l.deleted + 1; n <= l.events && len(es) < limit; n++ {
		e := outbox.Entry{Source: refstore.Source, Seq: int64(n)}
		e.ID, e.Group, e.Body = fmt.Sprint(n), g.Name, strings.Clone(l.body)
		es = append(es, e)
	}
	return es, nil
}

func (l *longGroup) Delete(_ context.Context, es []outbox.Entry) ([]outbox.Entry, error) {
	l.deleted += len(es)
	return nil, nil
}

func (l *longGroup) GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return &sqs.GetQueueAttributesOutput{Attributes: map[string]string{"MaximumMessageSize": "1048576"}}, nil
}

func (l *longGroup) SendMessageBatch(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	out := &sqs.SendMessageBatchOutput{}
	for _, e := range in.Entries {
		l.sent++
		sum := md5.Sum([]byte(aws.ToString(e.MessageBody)))
		out.Successful = append(out.Successful, sqstypes.SendMessageBatchResultEntry{
			Id: e.Id, MessageId: e.Id, SequenceNumber: aws.String("1"), MD5OfMessageBody: aws.String(hex.EncodeToString(sum[:])),
		})
	}
	if l.visits++; l.visits%500 == 0 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		l.heap = max(l.heap, m.HeapAlloc)
	}
	return out, nil
}
