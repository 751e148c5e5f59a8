package choose

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/lambda"
	"github.com/sqsonce/sqsonce/localstack/esm"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// lab is SQS and DynamoDB in memory, in a bubble of virtual time.
type lab struct {
	*testing.T
	sqs   *memsqs.Server
	ddb   *memdynamodb.Server
	c     *sqs.Client
	store *dynamostore.Store
	cost  page
}

func inLab(t *testing.T, f func(*lab)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		x := &lab{T: t, sqs: memsqs.New(), ddb: memdynamodb.New(), cost: readPage(t, "cost.md")}
		defer x.sqs.Close()
		defer x.ddb.Close()
		x.c, x.store = newSQS(x.sqs), newStore(x.ddb)
		f(x)
	})
}

// The operations of SQS, in the order of the page's columns.
var operations = []string{"SendMessage", "ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility"}

// queueCosts checks a row of the page's table of SQS: the requests of f for each of n events. Operations whose cell
// is - are not f's.
func (x *lab) queueCosts(row string, n int, f func()) {
	x.Helper()
	before := len(x.sqs.Calls())
	f()
	for i, op := range operations {
		requests := 0
		for _, c := range x.sqs.Calls()[before:] {
			if strings.HasPrefix(c.Op, op) {
				requests++
			}
		}
		if x.cost.row(row)[i+1] != "-" {
			x.cost.check(row, i+1, "", float64(requests)/float64(n))
		}
	}
}

// storeCosts checks a row of the page's table of DynamoDB: requests, write units and read units of f for each of n events.
func (x *lab) storeCosts(row string, n int, f func()) (requests, units float64) {
	x.Helper()
	before, stats := len(x.ddb.Calls()), x.store.Stats()
	f()
	for _, c := range x.ddb.Calls()[before:] {
		requests += 1 / float64(n)
		units += c.Units / float64(n)
	}
	reads := (x.store.Stats().ReadUnits - stats.ReadUnits) / float64(n)
	for i, got := range []float64{requests, units - reads, reads} {
		x.cost.check(row, i+1, "", got)
	}
	return requests, units
}

func (x *lab) must(err error) {
	x.Helper()
	if err != nil {
		x.Fatal(err)
	}
}

// publish sends n events of a hundred groups.
func (x *lab) publish(queue *string, n int) {
	x.Helper()
	p := must.Get(fifo.NewPublisher(x.c, *queue, "orders"))(x)
	all := make([]fifo.Event, n)
	for i := range all {
		all[i] = fifo.Event{ID: fmt.Sprint(i), Group: fmt.Sprint(i % 100), Body: "{}"}
	}
	must.Get(p.PublishAll(x.Context(), all))(x)
	x.must(p.Close(x.Context()))
}

func (x *lab) untilEmpty(queue *string) {
	for len(x.sqs.Messages(*queue)) > 0 {
		time.Sleep(10 * time.Millisecond)
	}
}

// work runs a worker until the queue is empty.
func (x *lab) work(queue *string, h sqsonce.Handler) {
	x.Helper()
	w := must.Get(sqsworker.New(x.c, *queue, h, func(o *sqsworker.Options) {
		o.Concurrency, o.Logger = 50, slog.New(slog.DiscardHandler)
		o.Backoff = func(int) time.Duration { return time.Second }
	}))(x)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	x.untilEmpty(queue)
	stop()
	x.must(<-done)
}

// invoke runs a function behind an event source mapping until the queue is empty.
func (x *lab) invoke(queue *string, h sqsonce.Handler) {
	x.Helper()
	handle := must.Get(lambda.Wrap(h, func(o *lambda.Options) { o.Client, o.Logger = lambda.NoClient, slog.New(slog.DiscardHandler) }))(x)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		config := esm.Config{QueueURL: *queue, FunctionTimeout: 10 * time.Second, ReportBatchItemFailures: true}
		done <- esm.Run(ctx, x.c, config, testaws.Invoke(handle))
	}()
	x.untilEmpty(queue)
	stop()
	x.must(<-done)
}

func short(context.Context, *sqsonce.Message) error {
	time.Sleep(20 * time.Millisecond)
	return nil
}

func TestQueueCosts(t *testing.T) {
	const n = 5000
	inLab(t, func(x *lab) {
		queue := createQueue(x.c, "standard", nil)
		x.queueCosts("publisher, requests full", n, func() { x.publish(queue, n) })
		x.queueCosts("worker, standard queue", n, func() { x.work(queue, short) })
		queue = createQueue(x.c, "orders.fifo", map[string]string{"FifoQueue": "true"})
		x.publish(queue, n)
		x.queueCosts("worker, FIFO queue of 100 groups", n, func() { x.work(queue, short) })
		queue = createQueue(x.c, "function", map[string]string{"VisibilityTimeout": "60"})
		x.publish(queue, n)
		x.queueCosts("event source mapping, batches of 10", n, func() { x.invoke(queue, short) })
		queue = createQueue(x.c, "slow", nil)
		x.publish(queue, 10)
		x.queueCosts("worker, handlers of 55 s", 10, func() {
			x.work(queue, func(context.Context, *sqsonce.Message) error { time.Sleep(55 * time.Second); return nil })
		})
		queue = createQueue(x.c, "failing", nil)
		x.publish(queue, 1)
		failed := false
		x.queueCosts("worker, an event that fails once, alone", 1, func() {
			x.work(queue, func(context.Context, *sqsonce.Message) error {
				if failed {
					return nil
				}
				failed = true
				return errors.New("fails once")
			})
		})
	})
}

func (x *lab) handler(h sqsonce.Handler, optFns ...func(*dedup.Options)) func(*sqsonce.Message) {
	x.Helper()
	once := must.Get(dedup.New(x.store, "billing", append(optFns, func(o *dedup.Options) { o.Logger = slog.New(slog.DiscardHandler) })...))(x)
	handler := once.Handler(h)
	return func(m *sqsonce.Message) { _ = handler(x.Context(), m) }
}

// concurrently handles n events of a name, so many at once.
func concurrently(handlers, n int, name string, handle func(*sqsonce.Message)) {
	next := make(chan int, n)
	for i := range n {
		next <- i
	}
	close(next)
	var wg sync.WaitGroup
	for range handlers {
		wg.Go(func() {
			for i := range next {
				handle(event(fmt.Sprint(name, i)))
			}
		})
	}
	wg.Wait()
}

func TestStoreCosts(t *testing.T) {
	done := func(context.Context, *sqsonce.Message) error { return nil }
	inLab(t, func(x *lab) {
		// Each process has its own memory of what is completed.
		handle, other := x.handler(done), x.handler(done)
		requests, units := x.storeCosts("first delivery, alone", 1, func() { handle(event("a")) })
		choosePage(t).check("Record with a lease, DynamoDB", perEvent, `(\S+) requests`, requests)
		choosePage(t).check("Record with a lease, DynamoDB", perEvent+1, `(\S+) write units`, units)
		x.storeCosts("duplicate, alone", 1, func() { other(event("a")) })
		x.storeCosts("duplicate of an event that the process completed in the last minute", 1, func() { handle(event("a")) })
		fails := x.handler(func(context.Context, *sqsonce.Message) error { return errors.New("fails") })
		x.storeCosts("failed delivery", 1, func() { fails(event("f")) })
		time.Sleep(time.Second)
		x.storeCosts("the next one after a failure", 1, func() { handle(event("f")) })
		slow := x.handler(func(context.Context, *sqsonce.Message) error { time.Sleep(55 * time.Second); return nil })
		x.storeCosts("first delivery, handler of 55 s in a worker", 1, func() { slow(event("s")) })

		x.ddb.Set(fault.Plan{Rules: []fault.Rule{{Nth: 1, Times: 1 << 30, Do: fault.Delay, Delay: 5 * time.Millisecond}}})
		for _, handlers := range []int{64, 1000} {
			name := fmt.Sprintf("first delivery, %d handlers", handlers)
			requests, _ = x.storeCosts(name, 10_000, func() { concurrently(handlers, 10_000, name, handle) })
			if handlers == 64 {
				choosePage(t).check("Record with a lease, DynamoDB", perEvent, `(?i)with 64 handlers (.+) of a request`, requests)
			}
		}
		x.storeCosts("duplicate, 64 handlers", 10_000, func() { concurrently(64, 10_000, "first delivery, 64 handlers", other) })
	})
}

// Every way of an event, under the load of 64 handlers that take time: none leaves the batches unseen.
func TestStoreCostsUnderLoad(t *testing.T) {
	const n = 2000
	inLab(t, func(x *lab) {
		x.ddb.Set(fault.Plan{Rules: []fault.Rule{{Nth: 1, Times: 1 << 30, Do: fault.Delay, Delay: 5 * time.Millisecond}}})
		costs := func(row, events string, handle func(*sqsonce.Message)) {
			x.Helper()
			x.storeCosts(row, n, func() { concurrently(64, n, events, handle) })
		}
		fails := func(ctx context.Context, m *sqsonce.Message) error {
			return errors.Join(short(ctx, m), errors.New("fails"))
		}
		costs("first delivery, 64 handlers of 20 ms", "first", x.handler(short))
		costs("first delivery with `PayloadHash`, 64 handlers of 20 ms", "validated", x.handler(short, func(o *dedup.Options) {
			o.PayloadHash = func(*sqsonce.Message) string { return strings.Repeat("a", 64) }
		}))
		costs("failed delivery, 64 handlers of 20 ms", "failed", x.handler(fails))
		time.Sleep(time.Second)
		costs("the next one after a failure, 64 handlers of 20 ms", "failed", again(x.handler(short)))
		for i := range n {
			must.Get(x.store.Acquire(x.Context(), dedup.Claim{
				Key: fmt.Sprint("billing#orders|crashed", i), Owner: "crashed", Lease: time.Second, Retention: time.Hour, ReceiveCount: 1,
			}))(x)
		}
		time.Sleep(10 * time.Second)
		costs("takeover after a crash, 64 handlers of 20 ms", "crashed", again(x.handler(short)))

		inbox := must.Get(dynamostore.NewInbox(x.store, "ledger"))(x)
		handler := inbox.Handler(func(ctx context.Context, m *sqsonce.Message, tx *dynamostore.Tx) error {
			tx.Put(&ddbtypes.Put{TableName: aws.String(table), Item: map[string]ddbtypes.AttributeValue{"id": &ddbtypes.AttributeValueMemberS{Value: m.ID}}})
			return short(ctx, m)
		})
		costs("inbox with one write of up to 1 KB, 64 handlers of 20 ms", "inbox", func(m *sqsonce.Message) { x.must(handler(x.Context(), m)) })
	})
}

// again handles a second delivery.
func again(handle func(*sqsonce.Message)) func(*sqsonce.Message) {
	return func(m *sqsonce.Message) {
		m.ReceiveCount = 2
		handle(m)
	}
}

func TestInboxCosts(t *testing.T) {
	inLab(t, func(x *lab) {
		inbox := must.Get(dynamostore.NewInbox(x.store, "ledger"))(x)
		write := map[string]ddbtypes.AttributeValue{"id": &ddbtypes.AttributeValueMemberS{Value: "account"}}
		handler := inbox.Handler(func(_ context.Context, _ *sqsonce.Message, tx *dynamostore.Tx) error {
			tx.Put(&ddbtypes.Put{TableName: aws.String(table), Item: write})
			return nil
		})
		client := newDynamoDB(x.ddb)
		x.storeCosts("one write of up to 1 KB, without an inbox", 1, func() {
			must.Get(client.PutItem(x.Context(), &dynamodb.PutItemInput{TableName: aws.String(table), Item: write}))(x)
		})
		requests, units := x.storeCosts("inbox with one write of up to 1 KB", 1, func() { x.must(handler(x.Context(), event("a"))) })
		choosePage(t).check("Inbox, DynamoDB", perEvent, `(\S+) requests`, requests)
		choosePage(t).check("Inbox, DynamoDB", perEvent+1, `(\S+) write units`, units)
	})
}

// Results of 10 KB, and the protocol of Powertools: a conditional PutItem, an UpdateItem with the result or a DeleteItem.
// Powertools itself runs in dedup/dynamostore/interop and in bench.
func TestPowertoolsCosts(t *testing.T) {
	inLab(t, func(x *lab) {
		once := must.Get(dedup.New(x.store, "billing", func(o *dedup.Options) { o.CacheSize = -1 }))(x)
		large := strings.Repeat("x", 10_000)
		do := func() {
			must.Get(dedup.Do(x.Context(), once, "large", func(context.Context) (string, error) { return large, nil }))(x)
		}
		x.storeCosts("`dedup.Do`, result of 10 KB", 1, do)
		x.storeCosts("`dedup.Do`, duplicate with that result", 1, do)

		client := newDynamoDB(x.ddb)
		text := func(s string) ddbtypes.AttributeValue { return &ddbtypes.AttributeValueMemberS{Value: s} }
		number := func(n int64) ddbtypes.AttributeValue { return &ddbtypes.AttributeValueMemberN{Value: fmt.Sprint(n)} }
		key := func(id string) map[string]ddbtypes.AttributeValue {
			return map[string]ddbtypes.AttributeValue{"id": text("billing.handler#" + id)}
		}
		put := func(id string) {
			item := key(id)
			item["status"], item["expiration"] = text("INPROGRESS"), number(time.Now().Add(time.Hour).Unix())
			item["in_progress_expiration"] = number(time.Now().Add(time.Minute).UnixMilli())
			_, err := client.PutItem(x.Context(), &dynamodb.PutItemInput{
				TableName: aws.String(table), Item: item, ConditionExpression: aws.String("attribute_not_exists(id)"),
				ReturnValuesOnConditionCheckFailure: ddbtypes.ReturnValuesOnConditionCheckFailureAllOld,
			})
			if _, refused := errors.AsType[*ddbtypes.ConditionalCheckFailedException](err); !refused {
				x.must(err)
			}
		}
		update := func(id, result string) {
			must.Get(client.UpdateItem(x.Context(), &dynamodb.UpdateItemInput{
				TableName: aws.String(table), Key: key(id),
				UpdateExpression:         aws.String("SET #d = :d, expiration = :e, #s = :s"),
				ExpressionAttributeNames: map[string]string{"#d": "data", "#s": "status"},
				ExpressionAttributeValues: map[string]ddbtypes.AttributeValue{
					":d": text(result), ":e": number(time.Now().Add(time.Hour).Unix()), ":s": text("COMPLETED"),
				},
			}))(x)
		}
		x.storeCosts("Powertools: first delivery", 1, func() { put("a"); update("a", "") })
		x.storeCosts("Powertools: duplicate", 1, func() { put("a") })
		x.storeCosts("Powertools: failed delivery", 1, func() {
			put("f")
			must.Get(client.DeleteItem(x.Context(), &dynamodb.DeleteItemInput{TableName: aws.String(table), Key: key("f")}))(x)
		})
		x.storeCosts("Powertools: result of 10 KB", 1, func() { put("l"); update("l", large) })
		x.storeCosts("Powertools: duplicate with that result", 1, func() { put("l") })
	})
}
