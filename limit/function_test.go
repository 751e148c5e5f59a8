package limit_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/lambda"
	"github.com/sqsonce/sqsonce/limit"
	"github.com/sqsonce/sqsonce/localstack/esm"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// Messages of a function wait for their places in the queue. All run, also those that would be moved at their last receive, and about at
// the rate.
func TestFunction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := memsqs.New()
		t.Cleanup(func() { srv.Close() })
		client := testaws.SQS(srv)
		dlq := testaws.Queue(t, client, "dlq", nil)
		url := testaws.Queue(t, client, "orders", map[string]string{
			"RedrivePolicy":     `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dlq","maxReceiveCount":"3"}`,
			"VisibilityTimeout": "60",
		})
		send(t, client, url, "a", 600)
		limits := must.Get(limit.New([]limit.Rule{{
			Name: "api", Key: limit.All, Plan: limit.Plan{Rate: limit.Rate{N: 10}}, Counter: memstore.NewCounter(memstore.New()),
		}}))(t)
		var mu sync.Mutex
		runs, receives, begun := map[string]int{}, 0, time.Now()
		var last time.Duration
		handler := func(_ context.Context, m *sqsonce.Message) error {
			mu.Lock()
			defer mu.Unlock()
			runs[m.Body]++
			receives += m.ReceiveCount
			last = time.Since(begun)
			return nil
		}
		f := must.Get(lambda.Wrap(limit.Handler(limits, handler), func(o *lambda.Options) { o.Client = client }))(t)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- esm.Run(ctx, client, esm.Config{QueueURL: url, FunctionTimeout: 10 * time.Second, ReportBatchItemFailures: true},
				testaws.Invoke(f))
		}()
		time.Sleep(5 * time.Minute)
		cancel()
		must.Do(t, <-ended)
		must.Do(t, limits.Close(t.Context()))
		dead := must.Get(client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &dlq}))(t)
		t.Logf("%d of 600 have run, the last after %s, %.2f receives each", len(runs), last, float64(receives)/600)
		if len(runs) != 600 || len(dead.Messages) > 0 || last < 55*time.Second || last > 80*time.Second {
			t.Errorf("%d of 600 have run in %s, dead-lettered: %t; want all in about a minute, and none", len(runs), last, len(dead.Messages) > 0)
		}
	})
}
