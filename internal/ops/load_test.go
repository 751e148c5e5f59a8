package ops_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/granted"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/ops"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

const (
	loadBody  = 4 << 10
	sqsTakes  = 15 * time.Millisecond
	readTakes = 5 * time.Millisecond
)

// load sends n messages of 4 KiB that were rejected, of so many classes, and on FIFO of groups of 20. Every tenth has a record.
func (x *fixture) load(n, classes int) {
	x.Helper()
	body, store := strings.Repeat("b", loadBody), x.store(x.admin)
	for at := 0; at < n; at += 10 {
		in := &sqs.SendMessageBatchInput{QueueUrl: &x.dlq}
		for i := at; i < min(n, at+10); i++ {
			id := strconv.Itoa(i)
			e := sqstypes.SendMessageBatchRequestEntry{Id: &id, MessageBody: &body, MessageAttributes: attributes(map[string]sqsonce.Attribute{
				sqsonce.AttrEventID: {Type: "String", String: id}, sqsonce.AttrEventSource: {Type: "String", String: "orders"},
				sqsonce.AttrRejectReason: {Type: "String", String: fmt.Sprintf("order %d: reason %s of the provider", i, strings.Repeat("x", i%classes))},
			})}
			if x.fifo {
				e.MessageGroupId, e.MessageDeduplicationId = aws.String("g"+strconv.Itoa(i/20)), &id
			}
			in.Entries = append(in.Entries, e)
		}
		if out, err := x.admin.sqs.SendMessageBatch(x.Context(), in); err != nil || len(out.Failed) > 0 {
			x.Fatal(err, out)
		}
		claim := dedup.Claim{Key: consumer + "#orders|" + strconv.Itoa(at), Owner: "o", Lease: visibility, Retention: 24 * time.Hour}
		lease, err := granted.Lease(store.Acquire(x.Context(), claim))
		if err == nil {
			err = store.Release(x.Context(), lease, errCard)
		}
		if err != nil {
			x.Fatal(err)
		}
	}
}

func liveHeap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Of a large queue each message is received once, given back and joined by as few calls as there can be, and a listing has little
// more in memory than the bodies. SOAK=1 lists 100,000.
func TestListLoad(t *testing.T) {
	n := 3_000
	if os.Getenv("SOAK") != "" {
		n = 100_000
	}
	for name, tt := range map[string]struct {
		fifo    bool
		classes int
		read    int
	}{
		"300 classes":            {classes: 300, read: n},
		"one class":              {classes: 1, read: n},
		"FIFO, groups of twenty": {fifo: true, classes: 300, read: n / 2}, // SQS shows ten of a group
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, setup{fifo: tt.fifo}, func(x *fixture) {
				x.load(n, tt.classes)
				x.sqs.Set(fault.Plan{Rules: []fault.Rule{{Op: "ReceiveMessage", Do: fault.Delay, Delay: sqsTakes}, {Op: "ChangeMessageVisibilityBatch", Do: fault.Delay, Delay: sqsTakes}}})
				x.ddb.Set(fault.Plan{Rules: []fault.Rule{{Op: "GetItem", Do: fault.Delay, Delay: readTakes}}})
				p := x.looker()
				d := x.openIn(p)
				before, start := liveHeap(), time.Now()
				l, err := d.List(x.Context(), func(o *ops.ListOptions) { o.Limit = n })
				took, heap := time.Since(start), liveHeap()-before
				if err != nil || len(l.Messages) != tt.read || l.Behind != n-tt.read || l.Hidden != 0 {
					t.Errorf("%d messages, %d behind, %d hidden, %v; want %d, %d behind", len(l.Messages), l.Behind, l.Hidden, err, tt.read, n-tt.read)
				}
				if most := 3*time.Second + time.Duration(n/10)*sqsTakes; took > most {
					t.Errorf("%s, want %s at most", took, most)
				}
				for op, most := range map[string]int{"ReceiveMessage": tt.read/10 + 2, "ChangeMessageVisibilityBatch": tt.read / 10, "GetItem": tt.read} {
					if got := p.requests(op); got > most {
						t.Errorf("%d calls of %s, want %d at most", got, op, most)
					}
				}
				for _, m := range x.sqs.Messages(x.dlq) {
					if m.InFlight || m.ReceiveCount > 1 {
						t.Fatalf("%s: hidden %t, %d receives", m.ID, m.InFlight, m.ReceiveCount)
					}
				}
				each := heap / uint64(max(1, len(l.Messages)))
				if each > loadBody+4<<10 {
					t.Errorf("%d bytes for each message", each)
				}
				t.Logf("%d messages in %s of virtual time, %d MB, %d bytes each", len(l.Messages), took, heap>>20, each)
				runtime.KeepAlive(l)
			})
		})
	}
}

// Of a reason of 256 KiB, which anybody may send, the beginning makes the class.
func TestClassOfLongReasons(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("1", 4<<10)
	if a, b := ops.ClassOf(long+" a"), ops.ClassOf(long+" b"); a != b || a.Text != "*" {
		t.Errorf("%+v and %+v", a, b)
	}
	for n := range 4 { // characters of several bytes at either end
		if c := ops.ClassOf(strings.Repeat("x", n) + strings.Repeat("\u20ac", 90_000)); len(c.Text) > 160 || len(c.Text) < 157 || !utf8.ValidString(c.Text) {
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
		l, err := d.List(x.Context(), func(o *ops.ListOptions) { o.Limit = -1 })
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
			l, err := d.List(x.Context(), func(o *ops.ListOptions) { o.Limit = tt.limit })
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
