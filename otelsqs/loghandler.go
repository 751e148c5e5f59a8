package otelsqs

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// LogHandler adds trace_id, span_id and trace_flags of the context to each record, outside of the logger's groups, by the
// conventions for logs that are not OTLP. It leaves the record unchanged if the context has no span.
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

// attached are the workers, the publishers, or the relays, of each queue. They are reported together, since a metric has one
// value for a queue. One callback stays, so the counts of a worker until its end are exported after it.
type attached[T observable[S], S any] struct {
	mu     sync.Mutex
	queues map[string]*ofQueue[T, S]
}

// observable is a worker, a publisher, a relay or a limiter.
type observable[S any] interface {
	comparable
	Stats() S
}

// ofQueue are those of one queue.
type ofQueue[T observable[S], S any] struct {
	mu    sync.Mutex
	live  map[T]time.Time // since when
	ended S               // the counts of those that have ended
}

// attach adds x to those of its queue. The first one has report registered for the instruments. At its end x is taken away, and
// count adds what it has counted to the counts of those before it.
func (a *attached[T, S]) attach(m metric.Meter, queue string, x T, report func(*ofQueue[T, S], metric.Observer), count func(sum *S, s S),
	instruments ...metric.Observable) (detach func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	q := a.queues[queue]
	if q == nil {
		q = &ofQueue[T, S]{live: map[T]time.Time{}}
		_, err := m.RegisterCallback(func(_ context.Context, o metric.Observer) error { report(q, o); return nil }, instruments...)
		if err != nil {
			panic(err) // the guard logs it
		}
		if a.queues == nil {
			a.queues = map[string]*ofQueue[T, S]{}
		}
		a.queues[queue] = q
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.live[x] = time.Now()
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if _, is := q.live[x]; is { // the same option twice
			delete(q.live, x)
			count(&q.ended, x.Stats())
		}
	}
}

// all returns those that run, since when, and what those that have ended have counted.
func (q *ofQueue[T, S]) all() (live map[T]time.Time, ended S) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return maps.Clone(q.live), q.ended
}
