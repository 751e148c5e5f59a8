package otelsqs

import (
	"context"
	"errors"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
)

// Publisher is an option of [fifo.NewPublisher].
func (t *Telemetry) Publisher(o *fifo.Options) {
	o.Hooks = append(o.Hooks, fifo.Hooks{Accept: t.accept, Answered: t.answered, Send: t.send, Attach: t.attachPublisher})
}

var operationCreate, operationSend = semconv.MessagingOperationName("create"), semconv.MessagingOperationName("send")

// accept starts the event's span, whose context is sent with the event.
func (t *Telemetry) accept(ctx context.Context, a fifo.Acceptance) (context.Context, fifo.Carry) {
	if t.createSpans {
		queue := t.destinations.get(a.QueueURL)
		attrs := queue.with(operationCreate, semconv.MessagingOperationTypeCreate, semconv.AWSSQSQueueURL(a.QueueURL))
		if t.identifiers && a.Event.Group != "" {
			attrs = append(attrs, keyGroup.String(a.Event.Group))
		}
		var span trace.Span
		ctx, span = t.tracer.Start(ctx, "create "+queue.name, trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(attrs...))
		ctx = context.WithValue(ctx, createKey{t}, span)
	}
	var c carrier
	t.inject(ctx, &c)
	if t.noTraceParent {
		c.TraceParent, c.TraceState = "", ""
	}
	return ctx, c.Carry
}

type createKey struct{ t *Telemetry }

// carrier receives the trace context of an event. It leaves out values without a place in a [fifo.Carry], such as baggage.
type carrier struct{ fifo.Carry }

func (c *carrier) Get(string) string { return "" }
func (c *carrier) Keys() []string    { return nil }

func (c *carrier) Set(key, value string) {
	switch strings.ToLower(key) {
	case "traceparent":
		c.TraceParent = value
	case "tracestate":
		c.TraceState = value
	case strings.ToLower(traceHeader):
		c.TraceHeader = value
	}
}

func (t *Telemetry) answered(ctx context.Context, a fifo.Answer) {
	var errorType attribute.KeyValue
	if a.Err != nil {
		errorType = publishErrorType(a.Err)
	}
	sets := &t.destinations.get(a.QueueURL).sets
	if a.Elapsed > 0 || a.Err == nil { // else it was not accepted
		t.publishDuration.Record(ctx, a.Elapsed.Seconds(), sets.get(attributes{errorType}).record...)
	}
	t.sent.Add(ctx, 1, sets.get(attributes{operationSend, errorType}).add...)
	span, ok := ctx.Value(createKey{t}).(trace.Span)
	if !ok {
		return
	}
	defer span.End()
	if a.Err != nil {
		span.SetAttributes(errorType)
		span.SetStatus(codes.Error, errorType.Value.AsString()) // not the error, which has the event's ID
		return
	}
	span.SetAttributes(semconv.MessagingMessageID(a.Receipt.MessageID), keyAttempts.Int(a.Receipt.Attempts))
}

// publishErrorType is the error.type of a PublishError: what is certain of the event, in few words.
func publishErrorType(err error) attribute.KeyValue {
	word := "unknown_outcome"
	_, invalid := errors.AsType[*sqsonce.OptionError](err)
	switch {
	case invalid:
		word = "invalid"
	case errors.Is(err, fifo.ErrUnknownOutcome): // whatever else is known: the event may be in the queue
	case errors.Is(err, fifo.ErrGroupHalted):
		word = "group_halted"
	case errors.Is(err, fifo.ErrBufferFull):
		word = "buffer_full"
	case errors.Is(err, fifo.ErrDedupConflict):
		word = "dedup_conflict"
	case errors.Is(err, fifo.ErrClosed):
		word = "closed"
	case errors.Is(err, fifo.ErrNotSent):
		word = "not_sent"
	}
	return semconv.ErrorTypeKey.String(word)
}

func (t *Telemetry) send(ctx context.Context, s fifo.Send) (context.Context, func(fifo.SendResult)) {
	queue := t.destinations.get(s.QueueURL)
	opts := []trace.SpanStartOption{
		trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(queue.with(operationSend, semconv.MessagingOperationTypeSend,
			semconv.AWSSQSQueueURL(s.QueueURL), semconv.MessagingBatchMessageCount(len(s.Events)))...),
	}
	for _, e := range s.Events {
		if sc := trace.SpanContextFromContext(e); sc.IsValid() {
			opts = append(opts, trace.WithLinks(trace.Link{SpanContext: sc}))
		}
	}
	ctx, span := t.tracer.Start(ctx, "send "+queue.name, opts...)
	return ctx, func(r fifo.SendResult) {
		as := attributes{operationSend, semconv.MessagingOperationTypeSend}
		if r.Err != nil {
			as[2] = t.errorType(r.Err)
			span.SetAttributes(as[2])
			span.SetStatus(codes.Error, as[2].Value.AsString())
		}
		t.operationDuration.Record(ctx, r.Elapsed.Seconds(), queue.sets.get(as).record...)
		span.End()
	}
}

// publisherGauges are the gauges that read a publisher's Stats.
type publisherGauges struct {
	events, bytes, requests metric.Int64ObservableUpDownCounter
	age                     metric.Float64ObservableGauge
	repeated, throttled     metric.Int64ObservableCounter
}

type publishers = ofQueue[*fifo.Publisher, fifo.Stats]

// attachPublisher has a publisher's Stats reported when metrics are collected.
func (t *Telemetry) attachPublisher(p *fifo.Publisher) (detach func()) {
	sets, g := &t.destinations.get(p.QueueURL()).sets, &t.publisher
	return t.publishers.attach(t.meter, p.QueueURL(), p, func(all *publishers, o metric.Observer) { g.report(all, o, sets) }, countPublisher,
		g.events, g.bytes, g.requests, g.age, g.repeated, g.throttled)
}

// countPublisher adds what a publisher has counted.
func countPublisher(sum *fifo.Stats, s fifo.Stats) {
	sum.Repeated += s.Repeated
	sum.Throttled += s.Throttled
}

// report reports the publishers of a queue: numbers are sums, the age is that of the oldest event.
func (g *publisherGauges) report(all *publishers, o metric.Observer, sets *sets) {
	live, sum := all.all()
	for p := range live {
		s := p.Stats()
		countPublisher(&sum, s)
		sum.Pending += s.Pending
		sum.Waiting += s.Waiting
		sum.PendingBytes += s.PendingBytes
		sum.Active += s.Active
		sum.Oldest = max(sum.Oldest, s.Oldest)
	}
	whole := sets.get(attributes{}).observe
	o.ObserveInt64(g.repeated, sum.Repeated, whole...)
	o.ObserveInt64(g.throttled, sum.Throttled, whole...)
	if len(live) == 0 {
		return
	}
	o.ObserveInt64(g.events, sum.Pending, sets.get(attributes{keyState.String("pending")}).observe...)
	o.ObserveInt64(g.events, sum.Waiting, sets.get(attributes{keyState.String("waiting")}).observe...)
	o.ObserveInt64(g.bytes, sum.PendingBytes, whole...)
	o.ObserveInt64(g.requests, sum.Active, whole...)
	o.ObserveFloat64(g.age, sum.Oldest.Seconds(), whole...)
}
