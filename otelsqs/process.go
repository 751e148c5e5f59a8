package otelsqs

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/sqsonce/sqsonce"
)

// process is a handler's span, and what is counted for it.
type process struct {
	span       trace.Span
	extensions atomic.Int64
	renewals   atomic.Int64
}

type processKey struct{ t *Telemetry }

// processOf returns the span of the delivery of ctx, or nil. It is not the innermost span: middleware and handlers make their own.
func (t *Telemetry) processOf(ctx context.Context) *process {
	p, _ := ctx.Value(processKey{t}).(*process)
	return p
}

// handlers are the hooks of both hosts.
func (t *Telemetry) handlers() sqsonce.Hooks {
	return sqsonce.Hooks{Start: t.start, End: t.end, Extended: t.extended}
}

func queueOf(d sqsonce.Delivery) string { return cmp.Or(d.QueueURL, d.Message.QueueARN) }

func (t *Telemetry) start(ctx context.Context, d sqsonce.Delivery) context.Context {
	m, queue := d.Message, t.destinations.get(queueOf(d))
	waited := max(0, time.Since(m.SentAt)).Seconds() // by two clocks
	if d.Run == 1 {
		t.timeInQueue.Record(ctx, waited, queue.sets.get(attributes{keyRedelivered.Bool(m.ReceiveCount > 1)}).record...)
		t.receives.Record(ctx, int64(m.ReceiveCount), queue.sets.get(attributes{}).record...)
	}
	attrs := make([]attribute.KeyValue, 0, len(queue.handled)+5)
	attrs = append(append(attrs, queue.handled...), semconv.MessagingMessageID(m.ID), keyReceiveCount.Int(m.ReceiveCount), keyTimeInQueue.Float64(waited))
	if d.Run > 1 {
		attrs = append(attrs, keyRun.Int(d.Run))
	}
	if t.identifiers && m.Group != "" {
		attrs = append(attrs, keyGroup.String(m.Group))
	}
	p := &process{}
	ctx, p.span = t.startProcess(ctx, queue.process, m, attrs)
	return context.WithValue(ctx, processKey{t}, p)
}

// startProcess starts a handler's span. Its parent is the span of the invocation; in a worker it has none: what Run's context has is
// not about the message. The producer's context is a link, or with ParentFromMessage the parent, and the parent a link.
func (t *Telemetry) startProcess(ctx context.Context, name string, m *sqsonce.Message, attrs []attribute.KeyValue) (context.Context, trace.Span) {
	opts := make([]trace.SpanStartOption, 0, 4)
	opts = append(opts, trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(attrs...))
	created, n := t.extract(m)
	links := created[:n]
	around := trace.SpanContextFromContext(ctx)
	parent := trace.SpanContext{}
	if t.batchOf(ctx) != nil {
		parent = around
	}
	if t.parentFromMessage && n > 0 {
		ctx, links = trace.ContextWithRemoteSpanContext(ctx, created[0]), links[1:]
		if parent.IsValid() {
			links = append(links, parent)
		}
	} else if !parent.IsValid() && around.IsValid() { // else it is a root anyway
		opts = append(opts, trace.WithNewRoot())
	}
	if len(links) > 0 {
		all := make([]trace.Link, len(links))
		for i, l := range links {
			all[i].SpanContext = l
		}
		opts = append(opts, trace.WithLinks(all...))
	}
	return t.tracer.Start(ctx, name, opts...)
}

func (t *Telemetry) end(ctx context.Context, d sqsonce.Delivery, r sqsonce.Return) {
	sets := &t.destinations.get(queueOf(d)).sets
	outcome := keyOutcome.String(r.Outcome.String())
	t.deliveries.Add(ctx, 1, sets.get(attributes{outcome}).add...)
	failed := isFailure(r.Outcome)
	as := attributes{operationProcess}
	if failed {
		as[1] = t.errorTypeOf(r)
	}
	t.processDuration.Record(ctx, r.Elapsed.Seconds(), sets.get(as).record...)
	p := t.processOf(ctx)
	if p == nil {
		return
	}
	defer p.span.End()
	if !p.span.IsRecording() {
		return
	}
	p.span.SetAttributes(outcome)
	if n := p.extensions.Load(); n > 0 {
		p.span.SetAttributes(keyExtensions.Int64(n))
	}
	if n := p.renewals.Load(); n > 0 {
		p.span.SetAttributes(keyRenewals.Int64(n))
	}
	if failed {
		p.span.SetAttributes(as[1])
		p.span.SetStatus(codes.Error, r.Outcome.String())
	}
}

// isFailure says which outcomes are errors of spans. An event in progress elsewhere and a shutdown are none.
func isFailure(o sqsonce.OutcomeKind) bool {
	switch o {
	case sqsonce.OutcomeFailed, sqsonce.OutcomeRejected, sqsonce.OutcomeLeaseLost, sqsonce.OutcomeAbandoned, sqsonce.OutcomeUnavailable:
		return true
	}
	return false
}

// errorTypeOf is the error.type of a handler. One that was abandoned has no error, one that lost its lease may have any.
func (t *Telemetry) errorTypeOf(r sqsonce.Return) attribute.KeyValue {
	switch r.Outcome {
	case sqsonce.OutcomeAbandoned, sqsonce.OutcomeLeaseLost:
		return semconv.ErrorTypeKey.String(r.Outcome.String())
	}
	return t.errorType(r.Err)
}

func (t *Telemetry) extended(ctx context.Context, d sqsonce.Delivery, e sqsonce.Extension) {
	p := t.processOf(ctx)
	if p == nil {
		return
	}
	p.extensions.Add(1)
	if e.Err != nil {
		p.span.AddEvent("sqsonce.extension_failed", trace.WithAttributes(t.errorType(e.Err)))
	}
}
