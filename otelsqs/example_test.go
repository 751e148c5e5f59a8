package otelsqs_test

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/lambda"
	"github.com/sqsonce/sqsonce/otelsqs"
	"github.com/sqsonce/sqsonce/otelsqs/linksampler"
	"github.com/sqsonce/sqsonce/sqsworker"
)

var (
	ctx      = context.Background()
	store    = memstore.New()
	box      outbox.Store
	queueURL string
	handler  sqsonce.Handler
	exporter sdktrace.SpanExporter
	reader   sdkmetric.Reader
)

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// A worker, and a publisher: the exporter and the reader are those of your collector, for example otlptracehttp's and
// otlpmetrichttp's.
func Example() {
	traces := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter),
		sdktrace.WithSampler(sdktrace.ParentBased(linksampler.New(sdktrace.TraceIDRatioBased(0.01)))))
	metrics := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	otel.SetTracerProvider(traces)
	otel.SetMeterProvider(metrics)
	slog.SetDefault(slog.New(otelsqs.LogHandler(slog.NewJSONHandler(os.Stdout, nil))))

	client := sqs.NewFromConfig(aws.Config{ /* of config.LoadDefaultConfig */ })
	tel := must(otelsqs.New())
	once := must(dedup.New(store, "billing", tel.Once))
	w := must(sqsworker.New(client, queueURL, once.Handler(handler), tel.Worker))
	p := must(fifo.NewPublisher(client, queueURL, "orders", tel.Publisher))
	defer p.Close(ctx)
	if err := w.Run(ctx); err != nil {
		log.Print(err)
	}
}

// A process that publishes what is committed in an outbox.
func ExampleTelemetry_Relay() {
	client := sqs.NewFromConfig(aws.Config{ /* of config.LoadDefaultConfig */ })
	tel := must(otelsqs.New())
	p := must(fifo.NewPublisher(client, queueURL, "orders", tel.Publisher))
	defer p.Close(ctx)
	relay := must(outbox.NewRelay(box, p, tel.Relay))
	if err := relay.Run(ctx); err != nil {
		log.Print(err)
	}
}

// A function exports before each answer: afterwards Lambda freezes the process.
func ExampleTelemetry_Lambda() {
	traces := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
	metrics := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	tel := must(otelsqs.New(func(o *otelsqs.Options) {
		o.TracerProvider, o.MeterProvider = traces, metrics
		o.Flush = func(ctx context.Context) error { return errors.Join(traces.ForceFlush(ctx), metrics.ForceFlush(ctx)) }
	}))
	once := must(dedup.New(store, "billing", tel.Once))
	lambda.Start(once.Handler(handler), tel.Lambda)
}

// Fewer series: exponential histograms, which the collector must take, and no server.address where all queues are in one region.
func Example_views() {
	ours := instrumentation.Scope{Name: otelsqs.ScopeName}
	metrics := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithView(
		sdkmetric.NewView(sdkmetric.Instrument{Scope: ours, Kind: sdkmetric.InstrumentKindHistogram}, sdkmetric.Stream{
			Aggregation:     sdkmetric.AggregationBase2ExponentialHistogram{MaxSize: 160, MaxScale: 20},
			AttributeFilter: attribute.NewDenyKeysFilter("server.address"),
		}),
	))
	otel.SetMeterProvider(metrics)
}
