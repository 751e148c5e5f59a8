package otelsqs

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"
	"testing/slogtest"

	"go.opentelemetry.io/otel/trace"
)

func TestLogHandler(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(LogHandler(slog.NewJSONHandler(&out, nil))).With("queue", "q")
	log.InfoContext(trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled,
	})), "with a span")
	log.InfoContext(t.Context(), "without")
	lines := json.NewDecoder(&out)
	for _, want := range []string{"01", ""} {
		var line struct {
			Queue, Msg string
			Trace      string `json:"trace_id"`
			Span       string `json:"span_id"`
			Flags      string `json:"trace_flags"`
		}
		if err := lines.Decode(&line); err != nil {
			t.Fatal(err)
		}
		if line.Queue != "q" || line.Flags != want || want != "" && (line.Trace != "01000000000000000000000000000000" || line.Span != "0200000000000000") {
			t.Errorf("%+v, want flags %q", line, want)
		}
	}
}

// Attributes and groups of the logger stay where they are, and the trace is outside of the groups.
func TestLogHandlerGroups(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	ctx := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}}))
	noTime := slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}
	log := slog.New(LogHandler(slog.NewJSONHandler(&out, &noTime))).With("a", 1).WithGroup("g").With("b", 2)
	log.WithGroup("other").InfoContext(ctx, "not seen by the next line", "x", 0)
	out.Reset()
	log.WithGroup("h").InfoContext(ctx, "m", "c", 3)
	const want = `{"level":"INFO","msg":"m","a":1,"trace_id":"01000000000000000000000000000000","span_id":"0200000000000000","trace_flags":"00","g":{"b":2,"h":{"c":3}}}` + "\n"
	if out.String() != want {
		t.Errorf("%s, want %s", &out, want)
	}
}

func TestLogHandlerIsAHandler(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := slogtest.TestHandler(LogHandler(slog.NewJSONHandler(&out, nil)), func() (lines []map[string]any) {
		for d := json.NewDecoder(&out); d.More(); {
			var line map[string]any
			if err := d.Decode(&line); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, line)
		}
		return lines
	})
	if err != nil {
		t.Error(err)
	}
}
