package outboxstorm_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/fifo/outbox/dynamooutbox"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
	"github.com/sqsonce/sqsonce/sqsworker"
)

const (
	boxTable, recordTable = "outbox", "records"
	namespace             = "shop"
	copied                = 3 // events
)

// An event that is relayed again ten minutes later is accepted and delivered again, and its handler runs once: the copy has the
// same deduplication key. Without dedup it runs twice, which guards the test.
func TestRelayedTwiceRunsOnce(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"dedup": 1, "no dedup": 2} {
		must.RunParallel(t, name, func(t *testing.T) {
			x := newEndToEnd(t)
			x.work(name == "dedup")
			for n := range copied {
				x.commit(n + 1)
			}
			// The first relay cannot delete what SQS has confirmed, and dies.
			x.ddbServer.Set(fault.Plan{Rules: []fault.Rule{{Op: "BatchWriteItem", Prob: 1, Do: fault.Error}}})
			if err := x.drain(); err == nil {
				t.Error("Drain without deletes: got no error")
			}
			time.Sleep(10 * time.Minute)
			if got, want := x.counts(), all(1, 1); !maps.Equal(got, want) {
				t.Errorf("after the first relay: delivered and ran %v, want %v", got, want)
			}
			x.ddbServer.Set(fault.Plan{})
			must.Do(t, x.drain())
			time.Sleep(time.Minute)
			if got, want := x.counts(), all(2, want); !maps.Equal(got, want) {
				t.Errorf("after the second relay: delivered and ran %v, want %v", got, want)
			}
			if left := len(x.ddbServer.Items(boxTable)) + len(x.queue.Messages(x.url)); left > 0 {
				t.Errorf("%d events are left in the outbox or the queue", left)
			}
		})
	}
}

// count is how often an event was delivered, and how often its handler ran.
type count struct{ delivered, ran int }

func all(delivered, ran int) map[string]count {
	counts := map[string]count{}
	for n := range copied {
		counts[eventOf(n+1).ID] = count{delivered, ran}
	}
	return counts
}

func eventOf(n int) fifo.Event {
	return fifo.Event{ID: fmt.Sprintf("ord-42/v%d", n), Group: "ord-42", Body: fmt.Sprint(n)}
}

// endToEnd is a producer's table, a queue, and a consumer's table.
type endToEnd struct {
	*testing.T
	queue     *memsqs.Server
	ddbServer *memdynamodb.Server
	ddb       *dynamodb.Client
	sqs       *sqs.Client
	url       string
	box       *dynamooutbox.Outbox

	mu   sync.Mutex
	seen map[string]count
}

func newEndToEnd(t *testing.T) *endToEnd {
	x := &endToEnd{T: t, queue: memsqs.New(), ddbServer: memdynamodb.New(), seen: map[string]count{}}
	t.Cleanup(x.queue.Close)
	t.Cleanup(x.ddbServer.Close)
	x.ddb, x.sqs = testaws.DynamoDB(x.ddbServer), testaws.SQS(x.queue)
	must.Do(t, dynamooutbox.CreateTable(t.Context(), x.ddb, boxTable))
	must.Do(t, dynamostore.CreateTable(t.Context(), x.ddb, recordTable))
	x.url = testaws.Queue(t, x.sqs, "orders.fifo", nil)
	x.box = must.Get(dynamooutbox.New(x.ddb, boxTable, "orders", namespace))(t)
	return x
}

func (x *endToEnd) commit(n int) {
	x.Helper()
	put := must.Get(x.box.Put(eventOf(n), int64(n)))(x)
	must.Get(x.ddb.TransactWriteItems(x.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []ddbtypes.TransactWriteItem{{Put: put}}}))(x)
}

// drain has a relay of a new process publish the group within a minute.
func (x *endToEnd) drain() error {
	x.Helper()
	p := must.Get(fifo.NewPublisher(x.sqs, x.url, namespace))(x)
	r := must.Get(outbox.NewRelay(x.box, p))(x)
	ctx, cancel := context.WithTimeout(x.Context(), time.Minute)
	defer cancel()
	return r.Drain(ctx, "ord-42")
}

// work runs a worker until the end of the test.
func (x *endToEnd) work(deduplicated bool) {
	x.Helper()
	handler := func(_ context.Context, m *sqsonce.Message) error {
		x.note(m, count{ran: 1})
		return nil
	}
	h := sqsonce.Handler(handler)
	if deduplicated {
		store := must.Get(dynamostore.New(x.ddb, recordTable))(x)
		once := must.Get(dedup.New(store, "mailer"))(x)
		h = once.Handler(handler)
	}
	w, err := sqsworker.New(x.sqs, x.url, func(ctx context.Context, m *sqsonce.Message) error {
		x.note(m, count{delivered: 1})
		return h(ctx, m)
	}, func(o *sqsworker.Options) { o.Logger = slog.New(slog.DiscardHandler) })
	must.Do(x, err)
	ctx, stop := context.WithCancel(x.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	x.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			x.Errorf("Run: %v", err)
		}
	})
}

func (x *endToEnd) note(m *sqsonce.Message, c count) {
	x.mu.Lock()
	defer x.mu.Unlock()
	id := m.Attributes[sqsonce.AttrEventID].String
	x.seen[id] = count{x.seen[id].delivered + c.delivered, x.seen[id].ran + c.ran}
}

func (x *endToEnd) counts() map[string]count {
	x.mu.Lock()
	defer x.mu.Unlock()
	return maps.Clone(x.seen)
}
