package outbox_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/fifo/outbox/internal/refstore"
)

// BenchmarkPublish compares a relay with PublishAll of the same events: 64 groups of 100 events of 1 KB.
func BenchmarkPublish(b *testing.B) {
	var es []fifo.Event
	var names []string
	for g := range 64 {
		names = append(names, fmt.Sprint("g", g))
		for n := range 100 {
			es = append(es, event(names[g], n+1))
			es[len(es)-1].Body = strings.Repeat("x", 1024)
		}
	}
	for _, latency := range []time.Duration{0, 10 * time.Millisecond} {
		for _, relay := range []bool{false, true} {
			b.Run(fmt.Sprintf("relay=%t/latency=%v", relay, latency), func(b *testing.B) {
				for range b.N {
					b.StopTimer()
					c := &slow{sink: sink{sent: func() {}}, latency: latency}
					p, err := fifo.NewPublisher(c, "https://sqs.us-east-1.amazonaws.com/000000000000/orders.fifo", refstore.Source)
					if err != nil {
						b.Fatal(err)
					}
					table := refstore.NewTable()
					table.Commit(es...)
					r, err := outbox.NewRelay(table.Open(), p, func(o *outbox.Options) { o.Logger, o.Settle = slog.New(slog.DiscardHandler), -1 })
					if err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
					if relay {
						_, err = r.Sweep(b.Context())
					} else {
						_, err = p.PublishAll(b.Context(), es)
					}
					if err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(len(es)*b.N)/b.Elapsed().Seconds(), "events/s")
			})
		}
	}
}

type slow struct {
	sink
	latency time.Duration
}

func (s *slow) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, optFns ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	time.Sleep(s.latency)
	return s.sink.SendMessageBatch(ctx, in, optFns...)
}
