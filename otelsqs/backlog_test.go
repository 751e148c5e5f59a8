package otelsqs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
)

const queueURL = "https://sqs.eu-west-1.amazonaws.com/123456789012/orders.fifo"

// queues answers GetQueueAttributes.
type queues func(ctx context.Context, queue string) (map[string]string, error)

func (a queues) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, _ ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	out, err := a(ctx, *in.QueueUrl)
	return &sqs.GetQueueAttributesOutput{Attributes: out}, err
}

func counts(visible int64) map[string]string {
	return map[string]string{
		"ApproximateNumberOfMessages": fmt.Sprint(visible), "ApproximateNumberOfMessagesNotVisible": "2", "ApproximateNumberOfMessagesDelayed": "3",
	}
}

// collect returns the values of sqsonce.queue.messages by queue and state.
func collect(t *testing.T, r sdkmetric.Reader) (map[string]int64, error) {
	t.Helper()
	var all metricdata.ResourceMetrics
	err := r.Collect(t.Context(), &all)
	values := map[string]int64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			for _, p := range m.Data.(metricdata.Gauge[int64]).DataPoints {
				queue, _ := p.Attributes.Value("messaging.destination.name")
				state, _ := p.Attributes.Value("sqsonce.state")
				values[queue.AsString()+" "+state.AsString()] = p.Value
			}
		}
	}
	return values, err
}

// However often metrics are collected, there is one call per queue and interval. One that fails is a gap.
func TestBacklog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		var failure error
		client := queues(func(_ context.Context, queue string) (map[string]string, error) {
			if calls.Add(1); failure != nil {
				return nil, failure
			}
			return counts(calls.Load()), nil
		})
		reader := sdkmetric.NewManualReader()
		tel := newTelemetry(t, func(o *Options) { o.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)) })
		stop := must.Get(tel.Backlog(client, time.Minute, queueURL))(t)
		want := func(wantCalls int64, wantErr error, values map[string]int64) {
			t.Helper()
			got, err := collect(t, reader)
			if !maps.Equal(got, values) || !errors.Is(err, wantErr) || calls.Load() != wantCalls {
				t.Errorf("after %d calls: %v, %v; want %d calls: %v, %v", calls.Load(), got, err, wantCalls, values, wantErr)
			}
		}
		first := map[string]int64{"orders.fifo visible": 1, "orders.fifo in_flight": 2, "orders.fifo delayed": 3}
		for range 10 {
			want(1, nil, first)
			time.Sleep(5 * time.Second)
		}
		failure = errors.New("away")
		time.Sleep(10 * time.Second)
		want(2, failure, map[string]int64{})
		failure = nil
		want(2, nil, map[string]int64{})
		time.Sleep(time.Minute)
		want(3, nil, map[string]int64{"orders.fifo visible": 3, "orders.fifo in_flight": 2, "orders.fifo delayed": 3})
		stop()
		time.Sleep(time.Minute)
		want(3, nil, map[string]int64{})
	})
}

// A client that panics, answers nothing or hangs harms its own queue.
func TestBacklogOfABadClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := queues(func(ctx context.Context, queue string) (map[string]string, error) {
			switch queue[strings.LastIndexByte(queue, '/')+1:] {
			case "panics":
				panic("oops")
			case "empty":
				return nil, nil
			case "hangs":
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return counts(1), nil
		})
		reader := sdkmetric.NewManualReader()
		tel := newTelemetry(t, func(o *Options) { o.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)) })
		const base = "https://sqs.eu-west-1.amazonaws.com/123456789012/"
		must.Get(tel.Backlog(client, time.Minute, base+"panics", base+"empty", base+"hangs", base+"healthy"))(t)
		begun := time.Now()
		got, err := collect(t, reader)
		if want := map[string]int64{"healthy visible": 1, "healthy in_flight": 2, "healthy delayed": 3}; !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "oops") || time.Since(begun) != backlogTimeout {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
	})
}

func TestBacklogRefuses(t *testing.T) {
	t.Parallel()
	_, err := newTelemetry(t).Backlog(nil, time.Second, "orders")
	if want := []string{"client", "every", "queueURLs[0]"}; !slices.Equal(testaws.Fields(err), want) {
		t.Errorf("%v, want fields %v", err, want)
	}
	if _, err := newTelemetry(t).Backlog(queues(nil), time.Minute); err == nil {
		t.Error("a client that is a nil function and no queue are accepted")
	}
}

func TestDestination(t *testing.T) {
	t.Parallel()
	for queue, want := range map[string]string{
		queueURL: "messaging.destination.name=orders.fifo messaging.system=aws_sqs server.address=sqs.eu-west-1.amazonaws.com",
		"arn:aws:sqs:eu-west-1:123456789012:orders":     "messaging.destination.name=orders messaging.system=aws_sqs server.address=sqs.eu-west-1.amazonaws.com",
		"arn:aws-cn:sqs:cn-north-1:123456789012:orders": "messaging.destination.name=orders messaging.system=aws_sqs server.address=sqs.cn-north-1.amazonaws.com.cn",
		"http://localhost:4566/000000000000/orders":     "messaging.destination.name=orders messaging.system=aws_sqs server.address=localhost",
	} {
		set := attribute.NewSet(newDestination(queue).attrs...)
		if got := strings.ReplaceAll(set.Encoded(attribute.DefaultEncoder()), ",", " "); got != want {
			t.Errorf("%s: %s, want %s", queue, got, want)
		}
	}
}
