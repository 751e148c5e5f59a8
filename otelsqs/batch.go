package otelsqs

import (
	"context"

	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/sqsonce/sqsonce"
)

// Batch is an option of [sqsonce.Batch]: the batch's span links to those of its messages.
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
			if err != nil {
				failed++
			}
		}
		if failed > 0 {
			span.SetAttributes(keyFailed.Int(failed)) // the messages' own spans have the errors
		}
	}
}
