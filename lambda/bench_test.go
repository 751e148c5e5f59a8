package lambda

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/aws/aws-lambda-go/events"

	"github.com/sqsonce/sqsonce"
)

// BenchmarkBatch compares the function with a loop written by hand, for records without message attributes and a handler
// that does almost nothing. The difference is the cost of the package.
func BenchmarkBatch(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) { benchBatch(b, n) })
	}
}

func benchBatch(b *testing.B, records int) {
	event := benchEvent(records)
	work := func(id, body string) error {
		if id == "" || body == "" {
			return errors.New("empty")
		}
		return nil
	}
	adapted := must.Get(Wrap(func(_ context.Context, m *sqsonce.Message) error { return work(m.ID, m.Body) }))(b)
	byHand := func(_ context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
		failures := []events.SQSBatchItemFailure{}
		for _, r := range e.Records {
			if err := work(r.MessageId, r.Body); err != nil {
				failures = append(failures, events.SQSBatchItemFailure{ItemIdentifier: r.MessageId})
			}
		}
		return events.SQSEventResponse{BatchItemFailures: failures}, nil
	}
	for _, c := range []struct {
		name string
		f    func(context.Context, events.SQSEvent) (events.SQSEventResponse, error)
	}{{"hand", byHand}, {"adapter", adapted}} {
		b.Run(c.name, func(b *testing.B) {
			ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
			defer cancel()
			b.ReportAllocs()
			for b.Loop() {
				if r, err := c.f(ctx, event); err != nil || len(r.BatchItemFailures) != 0 {
					b.Fatalf("got %v, %v", r, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(records), "ns/record")
		})
	}
}

func benchEvent(n int) events.SQSEvent {
	e := events.SQSEvent{}
	for i := range n {
		e.Records = append(e.Records, events.SQSMessage{
			MessageId: fmt.Sprintf("059f36b4-87a3-44ab-83d2-%012d", i), ReceiptHandle: "AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a",
			Body: `{"order":"42"}`, EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:us-east-1:123456789012:jobs", AWSRegion: "us-east-1",
			Attributes: map[string]string{
				"ApproximateReceiveCount": "1", "SentTimestamp": "1545082649183",
				"SenderId": "AIDAIENQZJOLO23YVJ4VO", "ApproximateFirstReceiveTimestamp": "1545082649185",
			},
		})
	}
	return e
}
