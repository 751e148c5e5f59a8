package otelsqs_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/smithy-go"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
	need "github.com/sqsonce/sqsonce/internal/must" // must is in the examples
	"github.com/sqsonce/sqsonce/lambda"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/otelsqs"
)

// published returns what the queue has of an event that was published in a span of the caller.
func (f *fixture) published() (m *sqsonce.Message, caller trace.SpanContext) {
	f.Helper()
	ctx, span := sdktrace.NewTracerProvider().Tracer("test").Start(context.Background(), "request")
	p := f.publisher()
	need.Get(p.Publish(ctx, fifo.Event{ID: "1", Body: "{}"}))(f)
	need.Do(f, p.Close(ctx))
	var got *sqsonce.Message
	f.work(time.Second, func(_ context.Context, m *sqsonce.Message) error { got = m; return nil })
	return got, span.SpanContext()
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(t *testing.T){
		"default": func(t *testing.T) {
			f := newFixture(t, "orders")
			m, caller := f.published()
			found := f.tel.Extract(m)
			if len(found) != 1 || found[0].TraceID() != caller.TraceID() || found[0].SpanID() == caller.SpanID() {
				t.Errorf("message has %v, want a span of the caller's trace %v", found, caller)
			}
			if m.TraceHeader == "" || m.Attributes["traceparent"].String == "" {
				t.Errorf("trace header %q, traceparent %v: want both", m.TraceHeader, m.Attributes["traceparent"])
			}
			spans := f.spans.GetSpans()
			if last := spans[len(spans)-1]; last.Parent.IsValid() || len(last.Links) != 1 || last.Links[0].SpanContext.SpanID() != found[0].SpanID() {
				t.Errorf("the handler's span has the parent %v and links %v, want one link to the event's", last.Parent, last.Links)
			}
		},
		"NoCreateSpans": func(t *testing.T) {
			f := newFixture(t, "orders", func(o *otelsqs.Options) { o.NoCreateSpans = true })
			m, caller := f.published()
			if found := f.tel.Extract(m); len(found) != 1 || found[0].SpanID() != caller.SpanID() {
				t.Errorf("message has %v, want the caller's %v", found, caller)
			}
			for _, s := range f.spans.GetSpans() {
				if s.SpanKind == trace.SpanKindProducer {
					t.Errorf("span %s", s.Name)
				}
			}
		},
		"NoTraceParent": func(t *testing.T) {
			f := newFixture(t, "orders", func(o *otelsqs.Options) { o.NoTraceParent = true })
			m, _ := f.published()
			if _, there := m.Attributes["traceparent"]; there || m.TraceHeader == "" {
				t.Errorf("trace header %q and attributes %v, want the header alone", m.TraceHeader, m.Attributes)
			}
		},
		"Propagator": func(t *testing.T) {
			f := newFixture(t, "orders", func(o *otelsqs.Options) { o.Propagator = propagation.Baggage{} })
			m, _ := f.published()
			if len(m.Attributes) != 2 || m.TraceHeader != "" {
				t.Errorf("trace header %q and attributes %v, want the event's own", m.TraceHeader, m.Attributes)
			}
		},
		"ParentFromMessage": func(t *testing.T) {
			f := newFixture(t, "orders", func(o *otelsqs.Options) { o.ParentFromMessage = true })
			m, _ := f.published()
			created := f.tel.Extract(m)[0]
			spans := f.spans.GetSpans()
			if last := spans[len(spans)-1]; last.Parent.SpanID() != created.SpanID() || len(last.Links) != 0 {
				t.Errorf("the handler's span has the parent %v and links %v, want the event's span as parent", last.Parent, last.Links)
			}
			f.spans.Reset()
			f.invoke(takes(0), record("1", ""))
			spans = f.spans.GetSpans()
			handler, batch := spans[0], spans[1]
			if handler.Parent.SpanID().String() != "00f067aa0ba902b7" || len(handler.Links) != 1 || handler.Links[0].SpanContext.SpanID() != batch.SpanContext.SpanID() {
				t.Errorf("in a function: parent %v, links %v, want the producer's and the batch", handler.Parent, handler.Links)
			}
		},
		"Identifiers": func(t *testing.T) {
			for _, identifiers := range []bool{false, true} {
				f := newFixture(t, "orders.fifo", func(o *otelsqs.Options) { o.Identifiers = identifiers })
				f.publish("secret-1")
				f.work(5*time.Second, f.once().Handler(takes(0)))
				text := dump(f.spans.GetSpans())
				if strings.Contains(text, "secret-1") != identifiers || strings.Contains(text, "sqsonce.message.group=g") != identifiers {
					t.Errorf("Identifiers %t:\n%s", identifiers, text)
				}
			}
		},
		"ErrorType": func(t *testing.T) {
			f := newFixture(t, "orders", func(o *otelsqs.Options) { o.ErrorType = func(error) string { return "card" } })
			f.invoke(takes(0, errCard, context.DeadlineExceeded), record("1", ""), record("2", ""))
			text := dump(f.spans.GetSpans())
			if strings.Count(text, "error.type=card") != 1 || strings.Count(text, "error.type=timeout") != 1 {
				t.Errorf("spans:\n%s", text)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, run)
		})
	}
}

// A handler's own calls are children of its span.
func TestHandlerHasTheSpan(t *testing.T) {
	bubble(t, "orders", func(t *testing.T, f *fixture) {
		f.publish("1")
		var seen trace.SpanContext
		f.work(time.Second, f.once().Handler(func(ctx context.Context, _ *sqsonce.Message) error {
			seen = trace.SpanContextFromContext(ctx)
			return nil
		}))
		if spans := f.spans.GetSpans(); len(spans) != 1 || seen.SpanID() != spans[0].SpanContext.SpanID() {
			t.Errorf("the handler has %v, want the span of %v", seen, spans)
		}
	})
}

func TestErrorTypes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		type wrong struct{ error }
		for want, err := range map[string]error{
			"error.type=_OTHER":              errCard,
			"error.type=Throttled":           &smithy.GenericAPIError{Code: "Throttled"},
			"error.type=decode":              sqsonce.Reject(&sqsonce.DecodeError{}),
			"error.type=rejected":            sqsonce.Reject(errCard),
			"error.type=unavailable":         sqsonce.Unavailable(errCard),
			"error.type=timeout":             sqsonce.RetryAfter(time.Second, context.DeadlineExceeded),
			"error.type=lease_lost":          sqsonce.ErrLeaseLost,
			"otelsqs_test.wrong":             wrong{errCard},
			"error.type=*sqsonce.retryError": sqsonce.RetryAfter(time.Second, nil),
		} {
			f := newFixture(t, "orders")
			f.invoke(func(context.Context, *sqsonce.Message) error { return err }, record("1", ""))
			if text := dump(f.spans.GetSpans()); !strings.Contains(text, want+"\n") {
				t.Errorf("want %s:\n%s", want, text)
			}
		}
	})
}

// The duration of a handler that the shutdown ended is no success's; its span is no error.
func TestErrorTypeOfAShutdown(t *testing.T) {
	bubble(t, "orders", func(t *testing.T, f *fixture) {
		f.invoke(takes(time.Hour), record("1", ""))
		if n := f.value("messaging.process.duration", "error.type=shutdown"); n != 1 {
			t.Errorf("%g durations with error.type shutdown, want 1", n)
		}
	})
}

// An ErrorType that panics is logged once, and is called again.
func TestErrorTypePanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		old := slog.Default()
		slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
		defer slog.SetDefault(old)
		calls := 0
		f := newFixture(t, "orders", func(o *otelsqs.Options) {
			o.ErrorType = func(error) string {
				if calls++; calls < 3 {
					panic("no type")
				}
				return "card"
			}
		})
		for range 3 {
			f.invoke(func(context.Context, *sqsonce.Message) error { return errCard }, record("1", ""))
		}
		text := dump(f.spans.GetSpans())
		if strings.Count(text, "error.type=_OTHER") != 2 || strings.Count(text, "error.type=card") != 1 || strings.Count(log.String(), "ErrorType panicked") != 1 {
			t.Errorf("log:\n%s\nspans:\n%s", log.String(), text)
		}
	})
}

// An event that may be in the queue is counted so, whatever else its error says.
func TestErrorTypesOfEvents(t *testing.T) {
	bubble(t, "orders.fifo", func(t *testing.T, f *fixture) {
		f.server.Set(fault.Plan{Rules: []fault.Rule{{Op: "SendMessageBatch", Prob: 1, Do: fault.LoseReply}}})
		p := f.publisher()
		need.Get(p.Enqueue(context.Background(), fifo.Event{ID: "1", Group: "g", Body: "{}"}))(t)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := p.Close(ctx); !errors.Is(err, fifo.ErrUnknownOutcome) || !errors.Is(err, fifo.ErrClosed) {
			t.Errorf("%v, want an event whose outcome is unknown, of a closed publisher", err)
		}
		if text := dump(f.spans.GetSpans()); !strings.Contains(text, "error.type=unknown_outcome\n") || strings.Contains(text, "error.type=closed") {
			t.Errorf("spans:\n%s", text)
		}
	})
}

// Handler is for other hosts, and leaves what one of ours observes.
func TestHandler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &sqsonce.Message{ID: "1", QueueARN: "arn:aws:sqs:eu-west-1:123456789012:orders", ReceiveCount: 1, SentAt: time.Now()}
		for name, tt := range map[string]struct {
			h    sqsonce.Handler
			want string
		}{
			"done":   {takes(0), "sqsonce.outcome=done"},
			"fails":  {takes(0, errCard), "sqsonce.outcome=failed"},
			"panics": {func(context.Context, *sqsonce.Message) error { panic("oops") }, "error.type=panic"},
			"exits":  {func(context.Context, *sqsonce.Message) error { runtime.Goexit(); return nil }, "sqsonce.outcome=failed"},
		} {
			f := newFixture(t, "orders")
			h := f.tel.Handler(m.QueueARN, tt.h)
			var wg sync.WaitGroup
			wg.Go(func() {
				defer func() {
					if v := recover(); (v != nil) != (name == "panics") {
						t.Errorf("%s: recovered %v", name, v)
					}
				}()
				_ = h(context.Background(), m)
			})
			wg.Wait()
			if text := dump(f.spans.GetSpans()); strings.Count(text, "process orders") != 1 || !strings.Contains(text, tt.want) || strings.Contains(text, "queue.url") {
				t.Errorf("%s:\n%s", name, text)
			}
		}
		f := newFixture(t, "orders")
		f.invoke(f.tel.Handler(m.QueueARN, takes(0)), record("1", ""))
		if n := len(f.spans.GetSpans()); n != 2 {
			t.Errorf("%d spans in a function, want the batch's and the handler's", n)
		}
	})
}

// Flush is called once for each invocation, with a context that ends before the deadline. One that fails or panics is logged
// once, and one that hangs costs no success.
func TestFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		old := slog.Default()
		slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
		defer slog.SetDefault(old)
		var mu sync.Mutex // one call goes on beside the test
		var calls []time.Duration
		f := newFixture(t, "orders", func(o *otelsqs.Options) {
			o.Flush = func(ctx context.Context) error {
				deadline, _ := ctx.Deadline()
				mu.Lock()
				calls = append(calls, time.Until(deadline))
				n := len(calls)
				mu.Unlock()
				switch n {
				case 1:
					panic("no exporter")
				case 3:
					time.Sleep(time.Hour)
				}
				return errors.New("no collector")
			}
		})
		call := need.Get(lambda.Wrap(takes(0), f.tel.Lambda, func(o *lambda.Options) { o.Client, o.Logger = lambda.NoClient, f.quiet }))(t)
		for range 3 {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			answer, err := call(ctx, eventOf(record("1", "")))
			if err != nil || len(answer.BatchItemFailures) > 0 || ctx.Err() != nil {
				t.Errorf("%v, %v, %v", answer, err, ctx.Err())
			}
			cancel()
		}
		time.Sleep(2 * time.Hour)
		mu.Lock()
		defer mu.Unlock()
		if n := strings.Count(log.String(), "telemetry not exported"); n != 1 || len(calls) != 3 || calls[0] >= 10*time.Second || calls[0] < 9*time.Second {
			t.Errorf("called with %v to go, logged %d times", calls, n)
		}
	})
}

// The global providers are looked up by New.
func TestGlobalProviders(t *testing.T) {
	t.Parallel()
	need.Get(otelsqs.New())(t)
	exporter := tracetest.NewInMemoryExporter()
	tel := need.Get(otelsqs.New(func(o *otelsqs.Options) {
		o.TracerProvider = sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
		o.MeterProvider = sdkmetric.NewMeterProvider()
	}))(t)
	_ = tel.Handler("arn:aws:sqs:eu-west-1:123456789012:orders", takes(0))(t.Context(), &sqsonce.Message{ID: "1"})
	if spans := exporter.GetSpans(); len(spans) != 1 || spans[0].InstrumentationScope.Name != otelsqs.ScopeName || !strings.HasSuffix(spans[0].InstrumentationScope.SchemaURL, "/1.43.0") {
		t.Errorf("spans %v", spans)
	}
}

// A typed nil is refused before anything is made, each with its name.
func TestTypedNilOptions(t *testing.T) {
	t.Parallel()
	_, err := otelsqs.New(func(o *otelsqs.Options) {
		o.TracerProvider, o.MeterProvider = (*sdktrace.TracerProvider)(nil), (*sdkmetric.MeterProvider)(nil)
		o.Propagator = (*nilPropagator)(nil)
	})
	for _, field := range []string{"TracerProvider", "MeterProvider", "Propagator"} {
		if err == nil || !strings.Contains(err.Error(), "Options."+field+": is a nil *") {
			t.Errorf("%v does not name %s", err, field)
		}
	}
	if _, ok := errors.AsType[*sqsonce.OptionError](err); !ok {
		t.Errorf("%T, want a OptionError", err)
	}
}

type nilPropagator struct{ propagation.TraceContext }
