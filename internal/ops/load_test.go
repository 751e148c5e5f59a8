package ops_test

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/ops"
)

const (
	loadBody  = 4 << 10
	sqsTakes  = 15 * time.Millisecond
	readTakes = 5 * time.Millisecond
)

// Of a reason of 256 KiB, which anybody may send, the beginning makes the class.
func TestClassOfLongReasons(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("1", 4<<10)
	if a, b := ops.ClassOf(long+" a"), ops.ClassOf(long+" b"); a != b || a.Text != "*" {
		t.Errorf("%+v and %+v", a, b)
	}
	for n := range 4 { // characters of several bytes at either end
		if c := ops.ClassOf(strings.Repeat("x", n) + strings.Repeat("\u20ac", 90_000)); len(c.Text) > 1024 || len(c.Text) < 1021 || !utf8.ValidString(c.Text) {
			t.Errorf("%q", c.Text)
		}
	}
}

// A listing ends at 1 GiB.
func TestListBytes(t *testing.T) {
	t.Parallel()
	bubble(t, setup{}, func(x *fixture) {
		c := &plenty{Client: x.looker().sqs, count: 1_000_000, body: strings.Repeat("b", 1<<20)}
		d := must.Get(ops.Open(x.Context(), c, x.dlq))(t)
		l, err := d.List(x.Context(), -1)
		if n := len(l.Messages); err != nil || n < 1020 || n > 1110 || int(c.received.Load()) != n || int(c.back.Load()) != n || l.Complete {
			t.Errorf("%d messages of %d received, %d given back, complete %t, %v", n, c.received.Load(), c.back.Load(), l.Complete, err)
		}
	})
}

// plenty is a queue that always has more. Its calls that change visibility take their time.
type plenty struct {
	ops.Client
	count         int    // as it says
	body          string // of each message
	received      atomic.Int64
	back          atomic.Int64
	calling, most atomic.Int64 // receives at once
	hidden        atomic.Int64 // for so many seconds
}

func (c *plenty) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, o ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	out, err := c.Client.GetQueueAttributes(ctx, in, o...)
	const visible = string(sqstypes.QueueAttributeNameApproximateNumberOfMessages)
	if err == nil && out.Attributes[visible] != "" {
		out.Attributes[visible] = strconv.Itoa(c.count)
	}
	return out, err
}

func (c *plenty) ReceiveMessage(_ context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	c.hidden.Store(int64(in.VisibilityTimeout))
	now := c.calling.Add(1)
	defer c.calling.Add(-1)
	for most := c.most.Load(); now > most && !c.most.CompareAndSwap(most, now); most = c.most.Load() {
	}
	time.Sleep(sqsTakes)
	out := &sqs.ReceiveMessageOutput{}
	for range in.MaxNumberOfMessages {
		id := strconv.FormatInt(c.received.Add(1), 10)
		out.Messages = append(out.Messages, sqstypes.Message{MessageId: &id, ReceiptHandle: &id, Body: &c.body})
	}
	return out, nil
}

func (c *plenty) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	time.Sleep(10 * sqsTakes)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out := &sqs.ChangeMessageVisibilityBatchOutput{}
	for _, e := range in.Entries {
		c.back.Add(1)
		out.Successful = append(out.Successful, sqstypes.ChangeMessageVisibilityBatchResultEntry{Id: e.Id})
	}
	return out, nil
}

// A large listing reads no more than its limit, eight receives at once, and hides its messages for longer than a small one: to
// read and give back so many takes minutes.
func TestListMany(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		fifo         bool
		count, limit int
		read         int
		atOnce       int64
		hold         int64 // seconds
	}{
		{count: 1_000_000, limit: 25_003, read: 25_003, atOnce: 8, hold: 180},
		{count: 12_000, limit: 15_000, read: 15_000, atOnce: 8, hold: 120},
		{count: 79, limit: 10_000, read: 10_000, atOnce: 7, hold: 60}, // the count is approximate
		{count: 1_000_000, limit: 1_003, read: 1_003, atOnce: 1, hold: 60, fifo: true},
	} {
		bubble(t, setup{fifo: tt.fifo}, func(x *fixture) {
			c := &plenty{Client: x.looker().sqs, count: tt.count}
			d := must.Get(ops.Open(x.Context(), c, x.dlq))(t)
			l, err := d.List(x.Context(), tt.limit)
			read := int(c.received.Load())
			if err != nil || read != tt.read || len(l.Messages) != read || int(c.back.Load()) != read || l.Complete {
				t.Errorf("%+v: %d messages of %d received, %d given back, complete %t, %v", tt, len(l.Messages), read, c.back.Load(), l.Complete, err)
			}
			if c.most.Load() != tt.atOnce || c.hidden.Load() != tt.hold {
				t.Errorf("%+v: %d receives at once, hidden for %d s", tt, c.most.Load(), c.hidden.Load())
			}
		})
	}
}
