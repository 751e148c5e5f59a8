package dynamostore

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/granted"
	"github.com/sqsonce/sqsonce/internal/thaw/thawtest"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
)

// During a freeze all idle connections of the client break, and the client is not informed. After it no call waits for an
// answer on one of them: neither the first, nor those that follow its answer.
func TestConnectionsThatDiedInAFreeze(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := memdynamodb.New()
		t.Cleanup(srv.Close)
		n := thawtest.New(t, srv)
		b := &bed{T: t}
		client := dynamodb.New(b.client(nil).Options(), func(o *dynamodb.Options) { o.HTTPClient = n.Client() })
		if err := CreateTable(t.Context(), client, testTable); err != nil {
			t.Fatal(err)
		}
		s, err := New(client, testTable, func(o *Options) { o.MaxBatch = -1 })
		if err != nil {
			t.Fatal(err)
		}
		invocation := func(i int) {
			var wg sync.WaitGroup
			for k := range 8 {
				wg.Go(func() {
					c := claim(fmt.Sprint("owner ", i, k))
					c.Key = fmt.Sprint("billing#", i, "-", k)
					l, err := granted.Lease(s.Acquire(t.Context(), c))
					if err == nil {
						err = s.Complete(t.Context(), l, dedup.Result{})
					}
					if err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		}
		invocation(1)
		n.Kill()
		time.Sleep(time.Minute)
		start := time.Now()
		invocation(2)
		if took := time.Since(start); took != 2*thawtest.Latency {
			t.Errorf("after the freeze: took %s, want that of two answers", took)
		}
	})
}
