//go:build unix

package dynamostore

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// BenchmarkClient is what a guarded message costs this process: an empty handler behind dedup.Once, 500 at a time, each
// on a goroutine of its own, as a worker's are. The table is a constant that answers 5 ms later.
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

// yes answers that every statement had its effect, after that time.
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
		Header:     http.Header{"Date": {time.Now().UTC().Format(http.TimeFormat)}},
		Body:       io.NopCloser(strings.NewReader(answer)), ContentLength: int64(len(answer)), Request: r,
	}, nil
}
