package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"
)

// load is a localaws that is called without a network.
type load struct {
	*testing.T
	w       *world
	handler http.Handler
	base    uint64 // bytes of the heap before anything
}

func newLoad(t *testing.T, dir string) *load {
	w := newWorld(options{region: defaultRegion, dir: dir}, "http://localaws", io.Discard)
	t.Cleanup(w.close)
	must.Do(t, w.restore())
	x := &load{T: t, w: w, handler: w.handler()}
	x.base = x.heap()
	return x
}

// heap returns the bytes in use after a collection.
func (x *load) heap() uint64 {
	runtime.GC()
	runtime.GC() // of pools too
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// holds expects at most this much of the heap beyond the base.
func (x *load) holds(what string, most int) {
	x.Helper()
	got := int64(x.heap()) - int64(x.base)
	x.Logf("%s: %d MB of at most %d MB", what, got>>20, most>>20)
	if got > int64(most) {
		x.Errorf("%s holds %d bytes, want at most %d", what, got, most)
	}
}

// call makes a call, and reads its answer into out, unless that is nil.
func (x *load) call(target, body string, out any) {
	r := httptest.NewRequest(http.MethodPost, "http://localaws/", strings.NewReader(body))
	r.Header.Set("X-Amz-Target", target)
	r.Header.Set("Authorization", "x")
	rec := httptest.NewRecorder()
	x.handler.ServeHTTP(rec, r)
	if rec.Code != http.StatusOK {
		x.Errorf("%s: %d %s", target, rec.Code, rec.Body)
	}
	if out != nil {
		if err := json.Unmarshal(rec.Body.Bytes(), out); err != nil {
			x.Errorf("%s: %v", target, err)
		}
	}
}

// each calls f with every number below n, some at once.
func (x *load) each(n int, f func(i int)) {
	var running sync.WaitGroup
	const workers = 4
	for worker := range workers {
		running.Go(func() {
			for i := worker; i < n && !x.Failed(); i += workers {
				f(i)
			}
		})
	}
	running.Wait()
}

const (
	slack      = 32 << 20 // maps that do not shrink, pools
	perMessage = 2 << 10  // of a message of 100 bytes
)

// Memory is in proportion to the stored data. Deleted data and answered calls leave none. SOAK=1 takes a million messages, a table of
// 1 GB and a million calls, others take a thousandth.
func TestLoad(t *testing.T) {
	n := 1000
	if os.Getenv("SOAK") != "" {
		n = 1_000_000
	}
	dir := t.TempDir()
	x := newLoad(t, dir)
	goroutines := runtime.NumGoroutine()

	t.Logf("%d messages", n)
	x.call("AmazonSQS.CreateQueue", `{"QueueName":"jobs"}`, nil)
	x.call("AmazonSQS.CreateQueue", `{"QueueName":"jobs.fifo","Attributes":{"FifoQueue":"true"}}`, nil)
	body := strings.Repeat("b", 100)
	x.each(n/10, func(i int) {
		var entries []string
		for e := range 10 {
			entry := fmt.Sprintf(`{"Id":"%d","MessageBody":"%s"`, e, body)
			if i%2 == 1 {
				entry += fmt.Sprintf(`,"MessageGroupId":"%d","MessageDeduplicationId":"%d-%d"`, i%1000, i, e)
			}
			entries = append(entries, entry+"}")
		}
		x.call("AmazonSQS.SendMessageBatch", `{"QueueUrl":"`+[]string{"jobs", "jobs.fifo"}[i%2]+`","Entries":[`+strings.Join(entries, ",")+`]}`, nil)
	})
	x.holds("messages", slack+n*perMessage)

	begin := time.Now()
	must.Do(t, x.w.save())
	saved := time.Since(begin)
	x.holds("messages after a save", slack+n*perMessage)
	begin = time.Now()
	again := newLoad(t, dir)
	t.Logf("saved in %s, loaded in %s", saved.Round(time.Millisecond), time.Since(begin).Round(time.Millisecond))
	if got := len(again.w.home().SQS.Messages("jobs")) + len(again.w.home().SQS.Messages("jobs.fifo")); got != n {
		t.Errorf("%d messages were loaded, want %d", got, n)
	}
	again.w.places.Swap(newPlaces(again.w.o)).Close() // not the test's to hold

	x.each(n/20, func(int) {
		var got struct {
			Messages []struct{ MessageId, ReceiptHandle string }
		}
		x.call("AmazonSQS.ReceiveMessage", `{"QueueUrl":"jobs","MaxNumberOfMessages":10}`, &got)
		var entries []string
		for i, m := range got.Messages {
			entries = append(entries, fmt.Sprintf(`{"Id":"%d","ReceiptHandle":"%s"}`, i, m.ReceiptHandle))
		}
		if len(entries) > 0 {
			x.call("AmazonSQS.DeleteMessageBatch", `{"QueueUrl":"jobs","Entries":[`+strings.Join(entries, ",")+`]}`, nil)
		}
	})
	if got := len(x.w.home().SQS.Messages("jobs")); got != 0 {
		t.Errorf("%d messages are left, want none", got)
	}
	x.call("AmazonSQS.DeleteQueue", `{"QueueUrl":"jobs.fifo"}`, nil)
	x.holds("no messages", slack+n*64) // a map keeps its buckets

	t.Logf("a table of %d KB", n)
	x.call("DynamoDB_20120810.CreateTable", `{"TableName":"big","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}],"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}]}`, nil)
	value := strings.Repeat("v", 10<<10)
	x.each(n/250, func(i int) {
		var puts []string
		for e := range 25 {
			puts = append(puts, fmt.Sprintf(`{"PutRequest":{"Item":{"id":{"S":"%d-%d"},"v":{"S":"%s"}}}}`, i, e, value))
		}
		x.call("DynamoDB_20120810.BatchWriteItem", `{"RequestItems":{"big":[`+strings.Join(puts, ",")+`]}}`, nil)
	})
	x.holds("the table", slack+n*64+n*1024*5/4)
	x.call("DynamoDB_20120810.DeleteTable", `{"TableName":"big"}`, nil)
	x.holds("no table", slack+n*64)

	t.Logf("%d calls", n)
	x.call("DynamoDB_20120810.CreateTable", `{"TableName":"records","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}],"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}]}`, nil)
	begin = time.Now()
	x.each(n, func(i int) {
		switch i % 5 {
		case 0:
			x.call("AmazonSQS.SendMessage", `{"QueueUrl":"jobs","MessageBody":"a"}`, nil)
		case 1:
			var got struct {
				Messages []struct{ ReceiptHandle string }
			}
			x.call("AmazonSQS.ReceiveMessage", `{"QueueUrl":"jobs"}`, &got)
			for _, m := range got.Messages {
				x.call("AmazonSQS.DeleteMessage", `{"QueueUrl":"jobs","ReceiptHandle":"`+m.ReceiptHandle+`"}`, nil)
			}
		case 2:
			x.call("DynamoDB_20120810.UpdateItem", fmt.Sprintf(`{"TableName":"records","Key":{"id":{"S":"%d"}},"UpdateExpression":"ADD n :one","ExpressionAttributeValues":{":one":{"N":"1"}}}`, i%1000), nil)
		case 3:
			x.call("DynamoDB_20120810.ExecuteStatement", fmt.Sprintf(`{"Statement":"SELECT * FROM records WHERE id='%d'"}`, i), nil)
		case 4:
			x.call("DynamoDB_20120810.GetItem", fmt.Sprintf(`{"TableName":"records","Key":{"id":{"S":"%d"}}}`, i%1000), nil)
		}
	})
	t.Logf("%d calls in %s", n, time.Since(begin).Round(time.Millisecond))
	x.call("AmazonSQS.DeleteQueue", `{"QueueUrl":"jobs"}`, nil)
	x.holds("after the calls", slack+n*64)
	for range 100 {
		if runtime.NumGoroutine() <= goroutines {
			break
		}
		time.Sleep(100 * time.Millisecond) // some are just ending
	}
	if got := runtime.NumGoroutine(); got > goroutines {
		t.Errorf("%d goroutines, want the %d of before", got, goroutines)
	}
}
