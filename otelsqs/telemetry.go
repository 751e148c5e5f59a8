// Package otelsqs is OpenTelemetry for sqsonce: traces and metrics of its hosts, its deduplication, its limits, its publisher and
// its outbox, by the semantic conventions for messaging, version 1.43.0.
//
//	tel, err := otelsqs.New()
//	once, err := dedup.New(store, "billing", tel.Once)
//	w, err := sqsworker.New(client, queueURL, once.Handler(h), tel.Worker) // or lambda.Start(once.Handler(h), tel.Lambda)
//	p, err := fifo.NewPublisher(client, queueURL, "orders", tel.Publisher)
//	r, err := outbox.NewRelay(box, p, tel.Relay)
//	l, err := limit.New(rules, tel.Limiter)
//
// It depends on the OpenTelemetry API alone. Your program sets up the exporters and the sampling.
package otelsqs

import (
	"context"
	"log/slog"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/limit"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// ScopeName is the instrumentation scope of all spans and metrics.
const ScopeName = "github.com/sqsonce/sqsonce/otelsqs"

// Options configure [New].
type Options struct {
	// Most users set these first.

	// TracerProvider and MeterProvider make the tracer and the meter.
	// Default: the global ones, looked up by New.
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider
	// ErrorType names the class of a handler's error, in few and stable words. It is not called for the classes "panic",
	// "decode", "timeout", "shutdown", "lease_lost", "unavailable" and "rejected", which always have these names.
	// Default: the code of an AWS error, else the name that the conventions' own function makes of the Go type.
	ErrorType func(error) string
	// Flush exports the gathered spans and metrics at the end of each Lambda invocation, in the time that the margin leaves. Use
	// the SDK's ForceFlush of both.
	// Default: nil.
	Flush func(context.Context) error

	// Traces.

	// Propagator reads and writes trace context in messages. It sees the message attributes, and the AWSTraceHeader system
	// attribute as "X-Amzn-Trace-Id". The global propagator is not used, because Go's default doesn't propagate.
	// Default: W3C trace context and the X-Ray header, both ways, without baggage.
	Propagator propagation.TextMapPropagator
	// ParentFromMessage makes the producer's context the parent of a handler's span, and the span's usual parent a link.
	// Default: false, the producer is a link.
	ParentFromMessage bool
	// Identifiers adds the event's key and the message group to spans. Both may be personal data.
	// Default: false.
	Identifiers bool
	// NoTraceParent keeps the publisher from writing the traceparent attribute, one of a message's ten, and leaves the context to
	// AWSTraceHeader.
	// Default: false.
	NoTraceParent bool
	// NoCreateSpans keeps the publisher from making a span for each event. It writes the caller's own context into the message.
	// Default: false.
	NoCreateSpans bool
}

// Telemetry makes the options that connect it with the hosts, the deduplication, the publisher and the outbox. It is safe for
// concurrent use, and you don't have to close it.
type Telemetry struct {
	instruments
	tracer       trace.Tracer
	meter        metric.Meter
	sets         sets // of metrics that have no queue
	destinations destinations
	workers      attached[*sqsworker.Worker, sqsworker.Stats]
	publishers   attached[*fifo.Publisher, fifo.Stats]
	relays       attached[*outbox.Relay, outbox.Stats]
	limiters     attached[*limit.Limiter, []limit.RuleStats]
	propagator   propagation.TextMapPropagator // the user's; nil: the default

	noTraceParent, createSpans, parentFromMessage, identifiers bool

	userErrorType func(error) string
	flush         func(context.Context) error
	flushFailed   sync.Once

	errorTypeFailed sync.Once
}

// New makes the tracer and the instruments. It returns a [*sqsonce.OptionError] for each option that is a typed nil, joined, or
// the errors of the MeterProvider.
func New(optFns ...func(*Options)) (*Telemetry, error) {
	var o Options
	for _, fn := range optFns {
		fn(&o)
	}
	if o.TracerProvider == nil {
		o.TracerProvider = otel.GetTracerProvider()
	}
	if o.MeterProvider == nil {
		o.MeterProvider = otel.GetMeterProvider()
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	t := &Telemetry{
		tracer: o.TracerProvider.Tracer(ScopeName, trace.WithSchemaURL(semconv.SchemaURL)),
		meter:  o.MeterProvider.Meter(ScopeName, metric.WithSchemaURL(semconv.SchemaURL)),

		propagator:    o.Propagator,
		noTraceParent: o.NoTraceParent, createSpans: !o.NoCreateSpans, parentFromMessage: o.ParentFromMessage, identifiers: o.Identifiers,
		userErrorType: o.ErrorType, flush: o.Flush,
	}
	var err error
	if t.instruments, err = newInstruments(t.meter); err != nil {
		return nil, err
	}
	return t, nil
}

func (o *Options) check() error {
	p := host.Problems{Package: "otelsqs"}
	check := func(field string, value any) { p.Add(value != nil && host.IsNil(value), field, "is a nil %T", value) }
	check("Options.TracerProvider", o.TracerProvider)
	check("Options.MeterProvider", o.MeterProvider)
	check("Options.Propagator", o.Propagator)
	return p.Err()
}

// flushError reports a failed export once: each invocation would fail alike.
func (t *Telemetry) flushError(ctx context.Context, err error) {
	t.flushFailed.Do(func() {
		slog.WarnContext(ctx, "otelsqs: telemetry not exported (logged once)", "error", err)
	})
}
