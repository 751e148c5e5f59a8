package otelsqs

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/sqsonce/sqsonce"
)

// Extract returns the contexts that a message carries: none, one, or two where traceparent and AWSTraceHeader differ. What is
// malformed is none.
func (t *Telemetry) Extract(m *sqsonce.Message) []trace.SpanContext {
	found, n := t.extract(m)
	return append([]trace.SpanContext(nil), found[:n]...)
}

// extract is Extract without an allocation. The producer may have set either form, or each for another trace.
func (t *Telemetry) extract(m *sqsonce.Message) (found [2]trace.SpanContext, n int) {
	if t.propagator != nil {
		if found[0] = trace.SpanContextFromContext(t.propagator.Extract(context.Background(), received{m})); found[0].IsValid() {
			n = 1
		}
		return found, n
	}
	if sc := parseTraceParent(m.Attributes["traceparent"].String, m.Attributes["tracestate"].String); sc.IsValid() {
		found[0], n = sc, 1
	}
	if sc := parseXRay(m.TraceHeader); sc.IsValid() && (n == 0 || sc.TraceID() != found[0].TraceID() || sc.SpanID() != found[0].SpanID()) {
		found[n] = sc
		n++
	}
	return found, n
}

// inject writes trace context into a carrier, in both forms by default. Baggage is never written: it is unbounded and may be
// personal.
func (t *Telemetry) inject(ctx context.Context, c propagation.TextMapCarrier) {
	if t.propagator != nil {
		t.propagator.Inject(ctx, c)
		return
	}
	propagation.TraceContext{}.Inject(ctx, c)
	xray{}.Inject(ctx, c)
}

// parseTraceParent returns the span context of W3C trace context; an invalid one if it is malformed. It is
// [propagation.TraceContext]'s own reading, which makes a context.
// https://www.w3.org/TR/trace-context/
func parseTraceParent(header, state string) trace.SpanContext {
	version, rest, _ := strings.Cut(header, "-")
	traceID, rest, _ := strings.Cut(rest, "-")
	spanID, rest, _ := strings.Cut(rest, "-")
	flags, rest, _ := strings.Cut(rest, "-")
	v, okVersion := hexByte(version)
	f, okFlags := hexByte(flags)
	if !okVersion || !okFlags || v == 0xff || v == 0 && (rest != "" || f > 3) {
		return trace.SpanContext{}
	}
	c := trace.SpanContextConfig{TraceFlags: trace.TraceFlags(f) & (trace.FlagsSampled | trace.FlagsRandom), Remote: true}
	var errTrace, errSpan error
	c.TraceID, errTrace = trace.TraceIDFromHex(traceID)
	c.SpanID, errSpan = trace.SpanIDFromHex(spanID)
	if errTrace != nil || errSpan != nil {
		return trace.SpanContext{}
	}
	if state != "" {
		c.TraceState, _ = trace.ParseTraceState(state) // a malformed one must not harm the rest
	}
	return trace.NewSpanContext(c)
}

// hexByte reads two lower-case hexadecimal digits.
func hexByte(s string) (n byte, ok bool) {
	if len(s) != 2 {
		return 0, false
	}
	for _, c := range []byte(s) {
		i := strings.IndexByte("0123456789abcdef", c)
		if i < 0 {
			return 0, false
		}
		n = n<<4 | byte(i)
	}
	return n, true
}

// received is a message to read trace context from: its attributes, and the AWSTraceHeader under the name of the HTTP header.
type received struct{ m *sqsonce.Message }

func (r received) Get(key string) string {
	if strings.EqualFold(key, traceHeader) {
		return r.m.TraceHeader
	}
	return r.m.Attributes[key].String
}

func (r received) Keys() (keys []string) {
	if r.m.TraceHeader != "" {
		keys = append(keys, traceHeader)
	}
	for name := range r.m.Attributes {
		keys = append(keys, name)
	}
	return keys
}

// Set does nothing: a message that was received is not changed.
func (r received) Set(string, string) {}
