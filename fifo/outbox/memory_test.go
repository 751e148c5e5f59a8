package outbox_test

import (
	"context"
	"crypto/md5" //nolint:gosec // SQS's checksum of bodies
	"encoding/hex"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/fifo/outbox/internal/refstore"
)

// 10,000 events of 4 KB in one group: the relay holds a page of them.
func TestMemoryOfALargeGroup(t *testing.T) {
	const events = 10_000
	synctest.Test(t, func(t *testing.T) {
		var most, sent atomic.Int64
		measure := func() {
			if sent.Add(1)%(events/10) != 0 {
				return
			}
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most.Store(max(most.Load(), int64(m.HeapAlloc)))
		}
		p, err := fifo.NewPublisher(&sink{sent: measure}, "https://sqs.us-east-1.amazonaws.com/000000000000/orders.fifo", refstore.Source)
		if err != nil {
			t.Fatal(err)
		}
		s := &endless{last: events, body: strings.Repeat("x", 4096)}
		r, err := outbox.NewRelay(s, p, func(o *outbox.Options) { o.Logger, o.Settle = slog.New(slog.DiscardHandler), -1 })
		if err != nil {
			t.Fatal(err)
		}
		runtime.GC()
		var before runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := r.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s := r.Stats(); s.Published != events || s.Deleted != events {
			t.Errorf("stats %+v, want %d events", s, events)
		}
		if grown := most.Load() - int64(before.HeapAlloc); grown > 20<<20 {
			t.Errorf("the heap has grown by %d MiB, want less than 20", grown>>20)
		}
	})
}

// endless is a store with one large group, which is made as it is read.
type endless struct {
	outbox.Store
	first, last int64 // first was deleted
	body        string
}

func (s *endless) Groups(context.Context, string, int) ([]outbox.Group, string, error) {
	return []outbox.Group{{Name: "g", Last: s.last}}, "", nil
}

func (s *endless) Claim(_ context.Context, groups []string, _ time.Duration) ([]string, error) {
	return groups, nil
}

func (s *endless) Unclaim(context.Context, []string) error { return nil }

func (s *endless) Read(_ context.Context, g outbox.Group, _ outbox.Known, limit int) (es []outbox.Entry, _ error) {
	for seq := s.first + 1; seq <= min(s.last, s.first+int64(limit)); seq++ {
		e := outbox.Entry{Source: refstore.Source, Seq: seq}
		e.ID, e.Group, e.Body = fmt.Sprint("e", seq), g.Name, s.body
		es = append(es, e)
	}
	return es, nil
}

func (s *endless) Delete(_ context.Context, es []outbox.Entry) ([]outbox.Entry, error) {
	s.first = es[len(es)-1].Seq
	return nil, nil
}

// sink is an SQS that accepts all and keeps nothing.
type sink struct{ sent func() }

func (s *sink) SendMessageBatch(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	out := &sqs.SendMessageBatchOutput{}
	for _, e := range in.Entries {
		s.sent()
		sum := md5.Sum([]byte(*e.MessageBody)) //nolint:gosec // as above
		text, id := hex.EncodeToString(sum[:]), "m"
		out.Successful = append(out.Successful, sqstypes.SendMessageBatchResultEntry{Id: e.Id, MessageId: &id, MD5OfMessageBody: &text})
	}
	return out, nil
}

func (s *sink) GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return &sqs.GetQueueAttributesOutput{Attributes: map[string]string{"MaximumMessageSize": "1048576"}}, nil
}
