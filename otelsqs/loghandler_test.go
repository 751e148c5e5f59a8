package otelsqs

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"
	"testing/slogtest"

	"go.opentelemetry.io/otel/trace"
)

// Attributes and groups of the logger stay where they are, and the trace is outside of the groups.
func TestLogHandler(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	ctx := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled}))
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
	const want = `{"level":"INFO","msg":"m","a":1,"trace_id":"01000000000000000000000000000000","span_id":"0200000000000000","trace_flags":"01","g":{"b":2,"h":{"c":3}}}` + "\n"
	if out.String() != want {
		t.Errorf("%s, want %s", &out, want)
	}
	out.Reset()
	log.InfoContext(t.Context(), "without a span")
	if got, want := out.String(), `{"level":"INFO","msg":"without a span","a":1,"g":{"b":2}}`+"\n"; got != want {
		t.Errorf("%s, want %s", got, want)
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
