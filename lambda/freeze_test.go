package lambda

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/internal/thaw/thawtest"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
)

// TestAcquiresAreReleasedInTheMargin: acquires that are in flight when the margin begins succeed for handlers that are not
// started any more. Lambda freezes the process after the response, so they are released before it. A record under a lease
// would look as if its handler had crashed, and under the policy Block it would stay blocked.
func TestAcquiresAreReleasedInTheMargin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := memdynamodb.New()
		defer srv.Close()
		client := testaws.DynamoDB(srv)
		must.Do(t, dynamostore.CreateTable(t.Context(), client, "dedup"))
		store := must.Get(dynamostore.New(client, "dedup"))(t)
		o := must.Get(dedup.New(store, "billing", func(o *dedup.Options) { o.OnCrash = dedup.OnCrashBlock }))(t)
		var n atomic.Int64
		f := wrap(t, o.Handler(func(context.Context, *sqsonce.Message) error { n.Add(1); return nil }))

		// Every acquire ends within the margin of 500 ms, however many share a call. The releases are sent after the fault.
		srv.Set(fault.Plan{Seed: 1, Rules: []fault.Rule{{Prob: 1, Do: fault.Delay, Delay: 650 * time.Millisecond}}})
		time.AfterFunc(500*time.Millisecond, func() { srv.Set(fault.Plan{}) })
		sent := len(srv.Calls())
		if got := invoke(t, f, timeout(t, 1100*time.Millisecond), batch("1", "2", "3")); got != "1 2 3" || n.Load() != 0 {
			t.Fatalf("failed %q, %d runs; want all three and none: the margin had begun", got, n.Load())
		}
		if len(srv.Calls()) == sent {
			t.Fatal("nothing was in flight when the margin began")
		}
		for _, record := range srv.Items("dedup") {
			if !strings.Contains(string(record), `"in_progress_expiration":{"N":"0"}`) {
				t.Errorf("record at the response: got %s, want it released", record)
			}
		}

		time.Sleep(time.Hour) // frozen
		if got := invoke(t, f, timeout(t, 30*time.Second), batch("1", "2", "3")); got != "" || n.Load() != 3 {
			t.Errorf("after the freeze: failed %q, %d runs; want none, 3", got, n.Load())
		}
		if s := o.Stats(); s.First != 3 || s.Takeovers != 0 || s.StoreErrors != 3 {
			t.Errorf("stats: got %+v, want First 3 and, for the three handlers that were not started, StoreErrors 3", s)
		}
	})
}

// TestConnectionsThatDiedInTheFreeze: while a process is frozen, its idle connections die and it does not notice. The calls
// of the next invocation, visibility changes and sends to the dead-letter queue, do not wait for a response on one of them.
func TestConnectionsThatDiedInTheFreeze(t *testing.T) {
	retry, reject := sqsonce.RetryAfter(time.Second, errTest), sqsonce.Reject(errTest)
	for name, errs := range map[string][2]error{
		"visibility change": {retry, retry},
		"dead-letter queue": {reject, reject},
		"queue URL":         {reject, retry},
	} {
		runWithQueue(t, name, false, nil, func(x *fixture) {
			n := thawtest.New(x.T, x.srv)
			client := sqs.New(x.c.Options(), func(o *sqs.Options) { o.HTTPClient = n.Client() })
			i := 0
			f := x.wrap(func(context.Context, *sqsonce.Message) error { return errs[i] }, func(o *Options) { o.Client = client })
			x.send("1", "2", "3") // nobody deletes them: both invocations get all three
			for i = range errs {
				start := time.Now()
				x.failed(f, 30*time.Second, x.receive())
				if took := time.Since(start); took > 10*thawtest.Latency {
					x.Errorf("invocation %d took %s", i, took)
				}
				n.Kill()
				time.Sleep(10 * time.Minute) // frozen
			}
			if got := x.log.count("not changed") + x.log.count("not sent"); got != 0 {
				x.Errorf("%d calls failed, want none:\n%s", got, &x.log)
			}
		})
	}
}
