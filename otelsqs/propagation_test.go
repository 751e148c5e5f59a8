package otelsqs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/slogtest"

	contrib "go.opentelemetry.io/contrib/propagators/aws/xray"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/must"
)

const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	spanID  = "00f067aa0ba902b7"
	parent  = "00-" + traceID + "-" + spanID + "-01"
	header  = "Root=1-4bf92f35-77b34da6a3ce929d0e0e4736;Parent=" + spanID + ";Sampled=1"
)

func newTelemetry(t testing.TB, optFns ...func(*Options)) *Telemetry {
	t.Helper()
	return must.Get(New(optFns...))(t)
}

func carrying(traceparent, tracestate, header string) *sqsonce.Message {
	m := &sqsonce.Message{TraceHeader: header, Attributes: map[string]sqsonce.Attribute{}}
	for name, value := range map[string]string{"traceparent": traceparent, "tracestate": tracestate} {
		if value != "" {
			m.Attributes[name] = sqsonce.Attribute{Type: "String", String: value}
		}
	}
	return m
}

func TestExtract(t *testing.T) {
	t.Parallel()
	const one, other = traceID + "-" + spanID, "5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8"
	const otherHeader = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=0"
	long := strings.Repeat("x", 1024)
	for name, tt := range map[string]struct {
		m    *sqsonce.Message
		want []string
	}{
		"nothing":                 {&sqsonce.Message{}, nil},
		"traceparent":             {carrying(parent, "", ""), []string{one + " sampled"}},
		"header":                  {carrying("", "", header), []string{one + " sampled"}},
		"both, of one span":       {carrying(parent, "a=b", header), []string{one + " sampled a=b"}},
		"both, of two":            {carrying(parent, "", otherHeader), []string{one + " sampled", other}},
		"Root alone":              {carrying("", "", "Root=1-5759e988-bd862e3fe1be46a994272793"), nil},
		"a part of no form":       {carrying("", "", header+";what"), nil},
		"Lineage":                 {carrying("", "", header+";Lineage=1:a87bd80c:0"), []string{one + " sampled"}},
		"to be decided":           {carrying("", "", strings.TrimSuffix(header, "1")+"?"), []string{one}},
		"a malformed traceparent": {carrying("00-"+traceID, "", otherHeader), []string{other}},
		"a malformed tracestate":  {carrying(parent, "=", ""), []string{one + " sampled"}},
		"1 KB":                    {carrying(long, long, long), nil},
		"of another type": {&sqsonce.Message{Attributes: map[string]sqsonce.Attribute{
			"traceparent": {Type: "Binary", Binary: []byte(parent)},
		}}, nil},
	} {
		var got []string
		for _, sc := range newTelemetry(t).Extract(tt.m) {
			text := sc.TraceID().String() + "-" + sc.SpanID().String()
			if sc.IsSampled() {
				text += " sampled"
			}
			if s := sc.TraceState().String(); s != "" {
				text += " " + s
			}
			if !sc.IsRemote() {
				t.Errorf("%s: not remote", name)
			}
			got = append(got, text)
		}
		if fmt.Sprint(got) != fmt.Sprint(tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestExtractByTheUsersPropagator(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t, func(o *Options) { o.Propagator = propagation.TraceContext{} })
	if got := tel.Extract(carrying("", "", header)); got != nil {
		t.Errorf("%v, want none: the propagator reads no header of X-Ray", got)
	}
	if got := tel.Extract(carrying(parent, "", "")); len(got) != 1 {
		t.Errorf("%v, want one", got)
	}
}

// The parser agrees with the one of OpenTelemetry's contributors, whatever is done to a header.
func TestXRayIsTheContributors(t *testing.T) {
	t.Parallel()
	parts := []string{
		"Root=1-4bf92f35-77b34da6a3ce929d0e0e4736", "Root=1-4bf92f35-77b34da6a3ce929d0e0e4736", "Parent=00f067aa0ba902b7", "Root=1-00000000-000000000000000000000000", "Root=1-4bf92f3577b34da6a3ce929d0e0e47-36", "Root=",
		"Root=1-4BF92F35-77B34DA6A3CE929D0E0E4736", "Root=1-4bf92f35-77b34da6a3ce929d0e0e473", "Parent=00f067aa0ba902b7", "Parent=0000000000000000",
		"Parent=00f067aa0ba902b", "Parent=", "Sampled=1", "Sampled=0", "Sampled=?", "Sampled=", "Sampled", "Self=1-67891234-12456789abcdef012345678",
		"Lineage=1:a87bd80c:0", "Lineage=a87bd80c:1|68fd508a:5", "", "=", "==",
	}
	random := rand.New(rand.NewPCG(1, 2))
	valid := 0
	for range 20_000 {
		some := make([]string, random.IntN(5))
		for i := range some {
			some[i] = parts[random.IntN(len(parts))]
		}
		text := strings.Join(some, ";")
		if b := []byte(text); len(b) > 0 && random.IntN(4) == 0 {
			b[random.IntN(len(b))] = "0a-=;Zé"[random.IntN(7)]
			text = string(b)
		}
		carrier := propagation.MapCarrier{traceHeader: text}
		got := parseXRay(text)
		want := trace.SpanContextFromContext(contrib.Propagator{}.Extract(t.Context(), carrier))
		if got.IsValid() != want.IsValid() || want.IsValid() && !got.Equal(want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
		if want.IsValid() {
			valid++
		}
	}
	if valid < 100 {
		t.Errorf("%d valid headers, want at least 100", valid)
	}
}

// So does the parser of traceparent with OpenTelemetry's.
func TestTraceParentIsOpenTelemetrys(t *testing.T) {
	t.Parallel()
	parts := [][]string{
		{"00", "01", "cc", "ff", "0", "000", "0A", ""},
		{traceID, traceID, traceID, strings.Repeat("0", 32), strings.ToUpper(traceID), traceID[1:], ""},
		{spanID, spanID, spanID, strings.Repeat("0", 16), spanID + "0", ""},
		{"00", "01", "02", "03", "04", "ff", "1", "0G", ""},
		{"", "", "", "what", "-"},
	}
	random := rand.New(rand.NewPCG(1, 2))
	valid := 0
	for range 20_000 {
		text := ""
		for i, choices := range parts {
			part := choices[random.IntN(len(choices))]
			if i > 0 && (i < 4 || part != "") && random.IntN(50) > 0 {
				text += "-"
			}
			text += part
		}
		state := []string{"", "a=b", "=", "a=b,c=d"}[random.IntN(4)]
		got := parseTraceParent(text, state)
		want := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(t.Context(), propagation.MapCarrier{"traceparent": text, "tracestate": state}))
		if got.IsValid() != want.IsValid() || want.IsValid() && !got.Equal(want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
		if want.IsValid() {
			valid++
		}
	}
	if valid < 100 {
		t.Errorf("%d valid headers, want at least 100", valid)
	}
}

func TestXRayInjectIsTheContributors(t *testing.T) {
	t.Parallel()
	for _, flags := range []trace.TraceFlags{0, trace.FlagsSampled, 0xff} {
		ctx := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: trace.TraceID{1, 2, 3}, SpanID: trace.SpanID{4, 5}, TraceFlags: flags,
		}))
		got, want := propagation.MapCarrier{}, propagation.MapCarrier{}
		xray{}.Inject(ctx, got)
		contrib.Propagator{}.Inject(ctx, want)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("flags %x: %v, want %v", flags, got, want)
		}
	}
	none := propagation.MapCarrier{}
	xray{}.Inject(t.Context(), none)
	if len(none) != 0 {
		t.Errorf("without a span: %v, want nothing", none)
	}
}

// invocation is the context that aws-lambda-go makes for an invocation.
func invocation(ctx context.Context, header string) context.Context {
	//lint:ignore SA1029 aws-lambda-go's key is a string
	return context.WithValue(ctx, "x-amzn-trace-id", header)
}

// What a function sends keeps the fields of its invocation's header that it does not know, from the invocation's own context.
func TestInjectKeepsTheLineage(t *testing.T) {
	t.Setenv("AWS_LAMBDA_FUNCTION_NAME", "orders")
	t.Setenv("_X_AMZN_TRACE_ID", "Root=1-a-b;Lineage=1:00000000:7")
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled})
	const own = "Root=1-01000000-000000000000000000000000;Parent=0200000000000000;Sampled=1"
	for name, tt := range map[string]struct {
		ctx  context.Context
		want string
	}{
		"context":     {invocation(t.Context(), "Root=1-a-b;Parent=c;Sampled=0;Lineage=1:a87bd80c:3; Self=d"), own + ";Lineage=1:a87bd80c:3;Self=d"},
		"empty":       {invocation(t.Context(), ""), own},
		"malformed":   {invocation(t.Context(), "Lineage;;=;x=y"), own + ";=;x=y"},
		"environment": {t.Context(), own + ";Lineage=1:00000000:7"},
	} {
		got := propagation.MapCarrier{}
		xray{}.Inject(trace.ContextWithSpanContext(tt.ctx, span), got)
		if got[traceHeader] != tt.want {
			t.Errorf("%s: %q, want %q", name, got[traceHeader], tt.want)
		}
	}
	t.Setenv("AWS_LAMBDA_FUNCTION_NAME", "")
	got := propagation.MapCarrier{}
	xray{}.Inject(trace.ContextWithSpanContext(t.Context(), span), got)
	if got[traceHeader] != own {
		t.Errorf("not in a function: %q, want %q", got[traceHeader], own)
	}
}

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
			must.Do(t, d.Decode(&line))
			lines = append(lines, line)
		}
		return lines
	})
	if err != nil {
		t.Error(err)
	}
}
