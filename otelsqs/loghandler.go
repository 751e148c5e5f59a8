package otelsqs

import (
	"context"
	"log/slog"
	"slices"

	"go.opentelemetry.io/otel/trace"
)

// LogHandler adds trace_id, span_id and trace_flags of the context to each record, outside of the logger's groups, by the
// conventions for logs that are not OTLP. It adds nothing where the context has no span.
// https://opentelemetry.io/docs/specs/otel/compatibility/logging_trace_context/
func LogHandler(next slog.Handler) slog.Handler { return logHandler{Handler: next, root: next} }

type logHandler struct {
	slog.Handler
	root    slog.Handler                      // without what is in grouped
	grouped []func(slog.Handler) slog.Handler // the logger's first group, and what came after it
}

func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	sc := trace.SpanContextFromContext(ctx)
	if !sc.IsValid() {
		return h.Handler.Handle(ctx, r)
	}
	next := h.root.WithAttrs([]slog.Attr{slog.String("trace_id", sc.TraceID().String()), slog.String("span_id", sc.SpanID().String()),
		slog.String("trace_flags", sc.TraceFlags().String())})
	for _, with := range h.grouped {
		next = with(next)
	}
	return next.Handle(ctx, r)
}

func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	if len(h.grouped) == 0 {
		return LogHandler(h.root.WithAttrs(attrs))
	}
	return h.with(func(next slog.Handler) slog.Handler { return next.WithAttrs(attrs) })
}

func (h logHandler) WithGroup(name string) slog.Handler {
	return h.with(func(next slog.Handler) slog.Handler { return next.WithGroup(name) })
}

func (h logHandler) with(f func(slog.Handler) slog.Handler) slog.Handler {
	return logHandler{f(h.Handler), h.root, append(slices.Clip(h.grouped), f)}
}
