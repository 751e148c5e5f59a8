//go:build unix

package dynamostore

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

// BenchmarkFirstDelivery is an acquire and a complete, with dynoxide in a process of its own. It also reports the requests
// and this process's CPU time for each message.
func BenchmarkFirstDelivery(b *testing.B) {
	url := testserver.Dynoxide.Shared(b).URL
	for _, handlers := range []int{1, 64, 100} {
		for name, size := range map[string]int{"single": -1, "batched": 0} {
			b.Run(fmt.Sprintf("handlers=%d/%s", handlers, name), func(b *testing.B) {
				benchmarkFirst(b, url, handlers, func(o *Options) { o.MaxBatch = size })
			})
		}
	}
}

// counted counts the requests that go to the emulator.
type counted struct {
	aws.HTTPClient
	n atomic.Int64
}

func (c *counted) Do(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return c.HTTPClient.Do(r)
}

func benchmarkFirst(b *testing.B, url string, handlers int, opt func(*Options)) {
	requests := &counted{HTTPClient: awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) { t.MaxIdleConnsPerHost = handlers })}
	client := (&bed{}).clientOf(nil, url)
	client = dynamodb.New(client.Options(), func(o *dynamodb.Options) { o.HTTPClient = requests })
	table := "bench-" + rand.Text()
	if err := CreateTable(b.Context(), client, table); err != nil {
		b.Fatal(err)
	}
	s, err := New(client, table, opt)
	if err != nil {
		b.Fatal(err)
	}
	var next atomic.Int64
	sent, cpu := requests.n.Load(), cpuTime(b)
	b.ResetTimer()
	var wg sync.WaitGroup
	for range handlers {
		wg.Go(func() {
			for {
				i := next.Add(1)
				if i > int64(b.N) {
					return
				}
				c := dedup.Claim{Key: fmt.Sprint("bench#", i), Owner: rand.Text(), Lease: lease, Retention: time.Hour, Attempt: 1}
				l, err := s.Acquire(b.Context(), c)
				if err == nil {
					err = s.Complete(b.Context(), l, dedup.Result{})
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(requests.n.Load()-sent)/float64(b.N), "requests/msg")
	b.ReportMetric(float64((cpuTime(b)-cpu).Microseconds())/float64(b.N), "cpu-µs/msg")
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkClient is the cost of a message in this process: an empty handler in dedup.Once, 500 at a time, each on a
// goroutine of its own, as in a worker. The server is a constant answer after 5 ms.
func BenchmarkClient(b *testing.B) {
	s, err := New((&bed{}).client(yes(5*time.Millisecond)), testTable)
	if err != nil {
		b.Fatal(err)
	}
	once, err := dedup.New(s, "billing")
	if err != nil {
		b.Fatal(err)
	}
	h := once.Handler(func(context.Context, *sqsonce.Message) error { return nil })
	b.ReportAllocs()
	b.ResetTimer()
	cpu := cpuTime(b)
	slots := make(chan struct{}, 500)
	var wg sync.WaitGroup
	for i := range b.N {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			m := &sqsonce.Message{ID: strconv.Itoa(i), QueueARN: "arn:aws:sqs:us-east-1:123456789012:orders", ReceiveCount: 1}
			if err := h(b.Context(), m); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64((cpuTime(b)-cpu).Nanoseconds())/1000/float64(b.N), "cpu-µs/msg")
	b.ReportMetric(float64(s.Stats().Statements)/float64(s.Stats().Batches), "statements/call")
}

var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// yes answers, after that time, that every statement had its effect.
type yes time.Duration

func (latency yes) RoundTrip(r *http.Request) (*http.Response, error) {
	body := bodies.Get().(*bytes.Buffer)
	defer bodies.Put(body)
	body.Reset()
	if _, err := body.ReadFrom(r.Body); err != nil {
		return nil, err
	}
	n := bytes.Count(body.Bytes(), []byte(`"Statement":`))
	time.Sleep(time.Duration(latency))
	one := `{"TableName":"` + testTable + `"}`
	answer := `{"Responses":[` + strings.Repeat(one+",", max(0, n-1)) + one + `],"ConsumedCapacity":[{"TableName":"` + testTable + `","CapacityUnits":1}]}`
	if n == 0 {
		answer = `{}` // an update
	}
	return &http.Response{
		StatusCode: http.StatusOK,
		Header:     http.Header{"Date": {time.Now().UTC().Format(http.TimeFormat)}, requestID: {"1"}},
		Body:       io.NopCloser(strings.NewReader(answer)), ContentLength: int64(len(answer)), Request: r,
	}, nil
}
