package otelsqs

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

// process is a handler's span, and the values that are counted for it. It is the handler's context too, in which it finds itself.
type process struct {
	context.Context
	t          *Telemetry
	span       trace.Span
	extensions atomic.Int64
	renewals   atomic.Int64
}

type processKey struct{ t *Telemetry }

func (p *process) Value(key any) any {
	if key == (processKey{p.t}) {
		return p
	}
	return p.Context.Value(key)
}

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
	waited, known := host.TimeInQueue(m)
	if d.Run == 1 {
		if known {
			t.timeInQueue.Record(ctx, waited.Seconds(), queue.sets.get(attributes{keyRedelivered.Bool(m.ReceiveCount > 1)}).record...)
		}
		t.receives.Record(ctx, int64(m.ReceiveCount), queue.sets.get(attributes{}).record...)
	}
	p := &process{t: t}
	p.Context, p.span = t.startProcess(ctx, queue, m)
	if p.span.IsRecording() {
		p.span.SetAttributes(semconv.MessagingMessageID(m.ID), keyReceiveCount.Int(m.ReceiveCount))
		if known {
			p.span.SetAttributes(keyTimeInQueue.Float64(waited.Seconds()))
		}
		if d.Run > 1 {
			p.span.SetAttributes(keyRun.Int(d.Run))
		}
		if t.identifiers && m.Group != "" {
			p.span.SetAttributes(keyGroup.String(m.Group))
		}
	}
	return p
}

// startProcess starts a handler's span. Its parent is the span of the invocation; in a worker it has none: what Run's context has is
// not about the message. The producer's context is a link, or with ParentFromMessage the parent, and the parent a link.
func (t *Telemetry) startProcess(ctx context.Context, queue *destination, m *sqsonce.Message) (context.Context, trace.Span) {
	created, n := t.extract(m)
	links := created[:n]
	around := trace.SpanContextFromContext(ctx)
	parent := trace.SpanContext{}
	if t.batchOf(ctx) != nil {
		parent = around
	}
	opts := queue.child
	if t.parentFromMessage && n > 0 {
		ctx, links = trace.ContextWithRemoteSpanContext(ctx, created[0]), links[1:]
		if parent.IsValid() {
			links = append(links, parent)
		}
	} else if !parent.IsValid() && around.IsValid() { // else it is a root anyway
		opts = queue.root
	}
	if len(links) > 0 {
		all := make([]trace.Link, len(links))
		for i, l := range links {
			all[i].SpanContext = l
		}
		opts = append(slices.Clip(opts), trace.WithLinks(all...))
	}
	return t.tracer.Start(ctx, queue.process, opts...)
}

func (t *Telemetry) end(ctx context.Context, d sqsonce.Delivery, r sqsonce.Return) {
	sets := &t.destinations.get(queueOf(d)).sets
	outcome := keyOutcome.String(r.Outcome.String())
	t.deliveries.Add(ctx, 1, sets.get(attributes{outcome}).add...)
	// An event in progress elsewhere and a shutdown are no errors of spans. The duration of a handler that the shutdown ended has an
	// error.type all the same, since it is not that of one that ended by itself.
	failed := host.Outcomes[r.Outcome].Failure
	as := attributes{operationProcess}
	if failed || r.Outcome == sqsonce.OutcomeShutdown {
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

// errorTypeOf is the error.type of a handler. One that was abandoned has no error, one that lost its lease may have any.
func (t *Telemetry) errorTypeOf(r sqsonce.Return) attribute.KeyValue {
	switch r.Outcome {
	case sqsonce.OutcomeAbandoned, sqsonce.OutcomeLeaseLost, sqsonce.OutcomeShutdown:
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

// Batch is an option of [sqsonce.Batch]. The batch's span links to the spans of its messages.
func (t *Telemetry) Batch(o *sqsonce.BatchOptions) { o.Around = t.around }

func (t *Telemetry) around(ctx context.Context, calls []context.Context, ms []*sqsonce.Message) (context.Context, func([]error)) {
	queue := t.destinations.get(ms[0].QueueARN)
	opts := []trace.SpanStartOption{
		trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(queue.with(operationProcess, semconv.MessagingOperationTypeProcess, semconv.MessagingBatchMessageCount(len(ms)))...),
	}
	for _, call := range calls {
		if p := t.processOf(call); p != nil {
			opts = append(opts, trace.WithLinks(trace.Link{SpanContext: p.span.SpanContext()}))
		}
	}
	ctx, span := t.tracer.Start(ctx, queue.process, opts...)
	return ctx, func(errs []error) {
		defer span.End()
		failed := 0
		for _, err := range errs {
			if host.Outcomes[sqsonce.OutcomeOf(err).Kind].Failure {
				failed++
			}
		}
		if failed > 0 {
			span.SetAttributes(keyFailed.Int(failed)) // the messages' own spans have the errors
		}
	}
}

var errExited = errors.New("otelsqs: the handler called runtime.Goexit")

// Handler observes a handler in hosts without hooks, such as another poll loop or sqlstore's Processor. queueURL may be an ARN.
// Handler doesn't observe a delivery that one of this module's hosts already observes. A panic of h goes on.
func (t *Telemetry) Handler(queueURL string, h sqsonce.Handler) sqsonce.Handler {
	return func(ctx context.Context, m *sqsonce.Message) (err error) {
		if t.processOf(ctx) != nil {
			return h(ctx, m)
		}
		begun := time.Now()
		d := sqsonce.Delivery{Message: m, QueueURL: queueURL, Received: begun, Run: 1}
		ctx = t.start(ctx, d)
		err = errExited
		defer func() {
			v := recover()
			if v != nil {
				err = &sqsonce.PanicError{Value: v}
			}
			t.end(ctx, d, sqsonce.Return{Outcome: sqsonce.OutcomeOf(err).Kind, Err: err, Elapsed: time.Since(begun), Delay: -1})
			if v != nil {
				panic(v)
			}
		}()
		err = h(ctx, m)
		return err
	}
}
