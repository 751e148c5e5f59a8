package otelsqs

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/lambda"
)

// mostLinks is how many links a batch's span has at most: the SDK's own limit.
const mostLinks = 128

// Lambda is an option of [lambda.Start], [lambda.NewHandler] and [lambda.Wrap]. otellambda makes the span of the invocation
// itself, and this span is its child.
func (t *Telemetry) Lambda(o *lambda.Options) {
	o.Hooks = append(o.Hooks, lambda.Hooks{Hooks: t.handlers(), Begin: t.begin, Finish: t.finish})
}

type batchKey struct{ t *Telemetry }

// batchOf returns the span of the invocation of ctx, or nil.
func (t *Telemetry) batchOf(ctx context.Context) trace.Span {
	span, _ := ctx.Value(batchKey{t}).(trace.Span)
	return span
}

func (t *Telemetry) begin(ctx context.Context, messages []*sqsonce.Message) context.Context {
	queue := t.destinations.get(messages[0].QueueARN)
	t.consumed.Add(ctx, int64(len(messages)), queue.sets.get(attributes{operationProcess}).add...)
	opts := []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(queue.with(operationProcess, semconv.MessagingOperationTypeProcess,
			semconv.MessagingBatchMessageCount(len(messages)), semconv.FaaSTriggerPubSub)...),
	}
	linked := map[trace.SpanID]bool{}
	for _, m := range messages {
		for _, c := range t.Extract(m) {
			if len(linked) < mostLinks && !linked[c.SpanID()] {
				linked[c.SpanID()] = true
				opts = append(opts, trace.WithLinks(trace.Link{SpanContext: c}))
			}
		}
	}
	ctx, span := t.tracer.Start(ctx, queue.process, opts...)
	return context.WithValue(ctx, batchKey{t}, span)
}

func (t *Telemetry) finish(ctx context.Context, r lambda.Report) {
	sets := &t.destinations.get(r.QueueARN).sets
	if n := r.Outcomes[sqsonce.OutcomeNotStarted]; n > 0 {
		t.deliveries.Add(ctx, int64(n), sets.get(attributes{keyOutcome.String(sqsonce.OutcomeNotStarted.String())}).add...)
	}
	failed := r.Records
	for kind, n := range r.Outcomes {
		if host.Outcomes[kind].Ended {
			failed -= n
		}
	}
	result := "partial"
	switch {
	case r.Err != nil:
		result = "failed"
	case failed == 0:
		result = "ok"
	}
	t.invocations.Add(ctx, 1, sets.get(attributes{keyResult.String(result)}).add...)
	if r.Remaining > 0 {
		t.remainingTime.Record(ctx, r.Remaining.Seconds(), sets.get(attributes{}).record...)
	}
	if span := t.batchOf(ctx); span != nil {
		if failed > 0 {
			span.SetAttributes(keyFailed.Int(failed))
		}
		span.End()
	}
	if t.flush != nil {
		var err error
		if panicked := host.Recover(func() { err = t.flush(ctx) }); panicked != nil { // else this hook would not be called again
			err = panicked
		}
		if err != nil {
			t.flushError(ctx, err)
		}
	}
}

var operationProcess = attribute.KeyValue(semconv.MessagingOperationName("process"))
