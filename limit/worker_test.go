package limit_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/limit"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// send sends n messages of a group.
func send(t *testing.T, client *sqs.Client, url, group string, n int) {
	t.Helper()
	for i := 0; i < n; i += 10 {
		var entries []types.SendMessageBatchRequestEntry
		for j := range min(10, n-i) {
			e := types.SendMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(j)), MessageBody: aws.String(fmt.Sprintf("%s-%d", group, i+j)), MessageGroupId: &group}
			if strings.HasSuffix(url, ".fifo") {
				e.MessageDeduplicationId = e.MessageBody
			}
			entries = append(entries, e)
		}
		must.Get(client.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: entries}))(t)
	}
}

// A stop gives back what waits, which leaves no place behind. A FIFO queue keeps the order of its groups.
func TestWorkerStops(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"orders", "orders.fifo"} {
		must.RunParallel(t, name, func(t *testing.T) {
			srv := memsqs.New()
			t.Cleanup(func() { srv.Close() })
			client := testaws.SQS(srv)
			url := testaws.Queue(t, client, name, nil)
			limits := must.Get(limit.New([]limit.Rule{{Name: "r", Key: limit.All, Plan: limit.Plan{Rate: limit.Rate{N: 5, Burst: 1}}}}))(t)
			var mu sync.Mutex
			var order []string
			handler := limit.Handler(limits, func(_ context.Context, m *sqsonce.Message) error {
				mu.Lock()
				defer mu.Unlock()
				order = append(order, m.Body)
				return nil
			})
			for _, group := range []string{"a", "b", "c"} {
				send(t, client, url, group, 20)
			}
			for runs, want := range []int{15, 60} {
				ctx, cancel := context.WithCancel(t.Context())
				var stopped sync.WaitGroup
				w := must.Get(sqsworker.New(client, url, handler))(t)
				stopped.Go(func() { must.Do(t, w.Run(ctx)) })
				for n := 0; n < want; time.Sleep(100 * time.Millisecond) {
					mu.Lock()
					n = len(order)
					mu.Unlock()
				}
				cancel()
				stopped.Wait()
				if s := limits.Stats()[0]; s.Waiting+s.Running > 0 {
					t.Errorf("after stop %d: %+v", runs, s)
				}
			}
			must.Do(t, limits.Close(t.Context()))
			next := map[byte]int{}
			for _, body := range order {
				if name == "orders.fifo" && body != fmt.Sprintf("%c-%d", body[0], next[body[0]]) {
					t.Errorf("%s runs, want %d of its group", body, next[body[0]])
				}
				next[body[0]]++
			}
		})
	}
}

// Three workers share a rate, and caps for each tenant. A tenant with a backlog keeps nobody waiting, the limits hold, nothing is
// dead-lettered, and every message runs once.
func TestWorkers(t *testing.T) {
	t.Parallel()
	must.RunParallel(t, "memstore", func(t *testing.T) {
		store := memstore.New()
		testWorkers(t, store, func() limit.Counter { return memstore.NewCounter(store) })
	})
	must.RunParallel(t, "dynamostore", func(t *testing.T) {
		srv := memdynamodb.New()
		t.Cleanup(func() { srv.Close() })
		client := testaws.DynamoDB(srv)
		must.Do(t, dynamostore.CreateTable(t.Context(), client, "dedup"))
		store := must.Get(dynamostore.New(client, "dedup"))(t)
		testWorkers(t, store, func() limit.Counter { return dynamostore.NewCounter(must.Get(dynamostore.New(client, "dedup"))(t)) })
	})
}

func testWorkers(t *testing.T, store dedup.Store, newCounter func() limit.Counter) {
	srv := memsqs.New()
	t.Cleanup(func() { srv.Close() })
	client := testaws.SQS(srv)
	dlq := testaws.Queue(t, client, "dlq", nil)
	url := testaws.Queue(t, client, "orders", map[string]string{
		"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dlq","maxReceiveCount":"5"}`,
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var (
		mu       sync.Mutex
		begun    = time.Now()
		starts   []time.Duration
		running  = map[string]int{}
		runs     = map[string]int{}
		receives int
	)
	handler := func(_ context.Context, m *sqsonce.Message) error {
		mu.Lock()
		starts = append(starts, time.Since(begun))
		runs[m.Body]++
		receives = max(receives, m.ReceiveCount)
		if running[m.Group]++; running[m.Group] > 3 {
			t.Errorf("%d handlers of %s at once", running[m.Group], m.Group)
		}
		mu.Unlock()
		time.Sleep(100 * time.Millisecond)
		mu.Lock()
		running[m.Group]--
		mu.Unlock()
		return nil
	}
	send(t, client, url, "noisy", 400)
	var all sync.WaitGroup
	for range 3 {
		counter := newCounter()
		limits := must.Get(limit.New([]limit.Rule{
			{Name: "api", Key: limit.All, Plan: limit.Plan{Rate: limit.Rate{N: 10}}, Counter: counter},
			{Name: "tenant", Plan: limit.Plan{Concurrency: 3}, Counter: counter},
		}))(t)
		once := must.Get(dedup.New(store, "test"))(t)
		w := must.Get(sqsworker.New(client, url, limit.Handler(limits, once.Handler(handler)), func(o *sqsworker.Options) {
			o.Delayed = 1000 // SQS in memory is not fair
		}))(t)
		all.Go(func() {
			must.Do(t, w.Run(ctx))
			must.Do(t, limits.Close(context.WithoutCancel(ctx)))
		})
	}
	time.Sleep(10 * time.Second)
	sent := time.Now()
	send(t, client, url, "quiet", 3)
	for quiet := 0; quiet < 3; time.Sleep(100 * time.Millisecond) {
		mu.Lock()
		quiet = runs["quiet-0"] + runs["quiet-1"] + runs["quiet-2"]
		mu.Unlock()
	}
	waited := time.Since(sent)
	time.Sleep(45 * time.Second)
	cancel()
	all.Wait()
	var next time.Duration
	for i, at := range starts {
		if next = max(next, at) + 100*time.Millisecond; next > at+2*time.Second {
			t.Fatalf("start %d, at %s, is %s too early", i, at, next-at-2*time.Second)
		}
	}
	if len(starts) != 403 || len(runs) != 403 || receives > 4 {
		t.Errorf("%d runs of %d messages, at most at receive %d; want 403, 403 and 4 at most", len(starts), len(runs), receives)
	}
	dead := must.Get(client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &dlq}))(t)
	if len(dead.Messages) > 0 {
		t.Errorf("%d messages are dead-lettered", len(dead.Messages))
	}
	t.Logf("the last of 403 after %s, the quiet tenant's after %s, most receives %d", starts[len(starts)-1], waited, receives)
	if waited > 3*time.Second {
		t.Errorf("the quiet tenant's messages waited for %s", waited)
	}
}
