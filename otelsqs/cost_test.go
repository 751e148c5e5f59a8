package otelsqs_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
	"github.com/sqsonce/sqsonce/otelsqs"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// observed makes the options of telemetry of which the sampler takes what it takes.
func observed(tb testing.TB, sampler sdktrace.Sampler) *otelsqs.Telemetry {
	tel, err := otelsqs.New(func(o *otelsqs.Options) {
		o.TracerProvider = sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler), sdktrace.WithBatcher(tracetest.NewNoopExporter()))
		o.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	})
	if err != nil {
		tb.Fatal(err)
	}
	return tel
}

func noHooks(*sqsworker.Options) {}

// BenchmarkWorker is what telemetry costs a message of a worker; SQS is in the same process and answers at once.
//
//	go test -run '^$' -bench Worker -benchtime 20000x -count 5
func BenchmarkWorker(b *testing.B) {
	for _, c := range []struct {
		name   string
		option func(*sqsworker.Options)
	}{
		{"hooks=none", noHooks},
		{"hooks=empty", func(o *sqsworker.Options) {
			o.Hooks = []sqsworker.Hooks{{Hooks: sqsonce.Hooks{
				Start: func(ctx context.Context, _ sqsonce.Delivery) context.Context { return ctx },
				End:   func(context.Context, sqsonce.Delivery, sqsonce.Return) {},
			}}}
		}},
		{"sampled=none", observed(b, sdktrace.NeverSample()).Worker},
		{"sampled=1%", observed(b, sdktrace.TraceIDRatioBased(0.01)).Worker},
		{"sampled=all", observed(b, sdktrace.AlwaysSample()).Worker},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			work, stop := workload(b, b.N, c.option)
			b.ResetTimer()
			work()
			b.StopTimer()
			stop()
		})
	}
}

// What telemetry may cost a message above none: its handler's hooks, and its part of a receive and a delete of ten.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	log, ctx := slog.New(slog.DiscardHandler), context.Background()
	d := sqsonce.Delivery{QueueURL: "https://sqs.eu-west-1.amazonaws.com/123456789012/orders", Run: 1, Message: &sqsonce.Message{
		ID: "1", ReceiveCount: 1, SentAt: time.Now(), Attributes: map[string]sqsonce.Attribute{
			"traceparent": {Type: "String", String: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
		},
	}}
	for name, tt := range map[string]struct {
		sampler sdktrace.Sampler
		most    float64
	}{"unsampled": {sdktrace.NeverSample(), 12}, "sampled": {sdktrace.AlwaysSample(), 25}} {
		var o sqsworker.Options
		observed(t, tt.sampler).Worker(&o)
		handlers := host.NewHooks(log, "", []sqsonce.Hooks{o.Hooks[0].Hooks})
		calls := host.Around[sqsworker.Call, sqsworker.CallResult]{}.With(log, "", o.Hooks[0].Call)
		n := testing.AllocsPerRun(1000, func() {
			call := handlers.Call(d)
			call.Start(ctx)
			call.End(sqsonce.Return{Outcome: sqsonce.OutcomeDone})
		})
		for _, purpose := range []sqsworker.Purpose{sqsworker.PurposeReceive, sqsworker.PurposeDelete} {
			n += testing.AllocsPerRun(1000, func() {
				_, done := calls.Begin(ctx, sqsworker.Call{Purpose: purpose, QueueURL: d.QueueURL, Entries: 10})
				done(sqsworker.CallResult{Entries: 10})
			}) / 10
		}
		t.Logf("%s: %.1f allocations", name, n)
		if n > tt.most {
			t.Errorf("%s: %.1f allocations, want at most %g", name, n, tt.most)
		}
	}
}

// workload returns what has a worker handle n messages, each with a traceparent, and what ends the worker.
func workload(tb testing.TB, n int, option func(*sqsworker.Options)) (work, stop func()) {
	server := memsqs.New()
	tb.Cleanup(server.Close)
	client := sqs.New(sqs.Options{
		Region: "eu-west-1", BaseEndpoint: aws.String("https://sqs.eu-west-1.amazonaws.com"), HTTPClient: &http.Client{Transport: server},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, nil
		}),
	})
	queue, err := client.CreateQueue(tb.Context(), &sqs.CreateQueueInput{QueueName: aws.String("orders")})
	if err != nil {
		tb.Fatal(err)
	}
	for sent := 0; sent < n; {
		in := &sqs.SendMessageBatchInput{QueueUrl: queue.QueueUrl}
		for ; len(in.Entries) < 10 && sent < n; sent++ {
			in.Entries = append(in.Entries, types.SendMessageBatchRequestEntry{
				Id: aws.String(strconv.Itoa(sent)), MessageBody: aws.String("{}"),
				MessageAttributes: map[string]types.MessageAttributeValue{"traceparent": {
					DataType: aws.String("String"), StringValue: aws.String(fmt.Sprintf("00-%032x-00f067aa0ba902b7-00", sent+1)),
				}},
			})
		}
		if _, err := client.SendMessageBatch(tb.Context(), in); err != nil {
			tb.Fatal(err)
		}
	}
	var handled atomic.Int64
	all, ended := make(chan struct{}), make(chan error, 1)
	w, err := sqsworker.New(client, *queue.QueueUrl, func(context.Context, *sqsonce.Message) error {
		if handled.Add(1) == int64(n) {
			close(all)
		}
		return nil
	}, option, func(o *sqsworker.Options) {
		o.Concurrency, o.WaitTime, o.Logger = 100, time.Second, slog.New(slog.DiscardHandler)
	})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	work = func() {
		go func() { ended <- w.Run(ctx) }()
		<-all
	}
	return work, func() {
		cancel()
		if err := <-ended; err != nil {
			tb.Error(err)
		}
	}
}
