package otelsqs_test

import (
	"context"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/otelsqs"
)

// What a handler's span and metrics cost, above the handler without hooks.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	m := &sqsonce.Message{ID: "1", QueueARN: "arn:aws:sqs:eu-west-1:123456789012:orders", ReceiveCount: 1, SentAt: time.Now(),
		Attributes: map[string]sqsonce.Attribute{"traceparent": {Type: "String", String: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}}}
	for name, tt := range map[string]struct {
		sampler sdktrace.Sampler
		most    float64
	}{"unsampled": {sdktrace.NeverSample(), 12}, "sampled": {sdktrace.AlwaysSample(), 25}} {
		tel, err := otelsqs.New(func(o *otelsqs.Options) {
			o.TracerProvider = sdktrace.NewTracerProvider(sdktrace.WithSampler(tt.sampler))
			o.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
		})
		if err != nil {
			t.Fatal(err)
		}
		h := tel.Handler("https://sqs.eu-west-1.amazonaws.com/123456789012/orders", func(context.Context, *sqsonce.Message) error { return nil })
		ctx := context.Background()
		if n := testing.AllocsPerRun(1000, func() { _ = h(ctx, m) }); n > tt.most {
			t.Errorf("%s: %g allocations, want at most %g", name, n, tt.most)
		} else {
			t.Logf("%s: %g allocations", name, n)
		}
	}
}
