package otelsqs

import (
	"context"
	"os"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/sqsonce/sqsonce"
)

// Extract returns the contexts that a message carries, two at most. It returns two if traceparent and AWSTraceHeader differ, and
// an empty list if the message has neither. It ignores malformed contexts.
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

// Set does nothing, because a received message doesn't change.
func (r received) Set(string, string) {}

// traceHeader is the header that SQS makes the AWSTraceHeader system attribute of.
// https://docs.aws.amazon.com/xray/latest/devguide/xray-services-sqs.html
const traceHeader = "X-Amzn-Trace-Id"

// xray writes X-Ray's header, Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1.
//
// In a Lambda function it keeps every other field of the invocation's header. By Lineage Lambda counts how often an event has been
// through functions, and ends a loop: a header without it would hide the loop.
// https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html
type xray struct{}

func (xray) Inject(ctx context.Context, c propagation.TextMapCarrier) {
	sc := trace.SpanContextFromContext(ctx)
	if !sc.IsValid() {
		return
	}
	id, sampled := sc.TraceID().String(), "0"
	if sc.IsSampled() {
		sampled = "1"
	}
	header := "Root=1-" + id[:8] + "-" + id[8:] + ";Parent=" + sc.SpanID().String() + ";Sampled=" + sampled
	for field := range strings.SplitSeq(invocationHeader(ctx), ";") {
		switch name, _, ok := strings.Cut(strings.TrimSpace(field), "="); {
		case !ok, name == "Root", name == "Parent", name == "Sampled":
		default:
			header += ";" + strings.TrimSpace(field)
		}
	}
	c.Set(traceHeader, header)
}

// invocationHeader returns the header of the Lambda invocation of ctx, or "". With several invocations at once in a process the
// environment has that of any of them.
func invocationHeader(ctx context.Context) string {
	if header, ok := ctx.Value("x-amzn-trace-id").(string); ok { // aws-lambda-go's key
		return header
	}
	if os.Getenv("AWS_LAMBDA_FUNCTION_NAME") == "" {
		return ""
	}
	return os.Getenv("_X_AMZN_TRACE_ID")
}

// parseXRay returns the span context of a header; an invalid one if it is malformed, or without Root or Parent.
func parseXRay(header string) trace.SpanContext {
	var c trace.SpanContextConfig
	for field := range strings.SplitSeq(strings.TrimSuffix(header, ";"), ";") {
		name, value, ok := strings.Cut(strings.TrimSpace(field), "=")
		var err error
		switch {
		case !ok:
			return trace.SpanContext{}
		case name == "Root":
			c.TraceID, err = parseRoot(value)
		case name == "Parent":
			c.SpanID, err = trace.SpanIDFromHex(value)
		case name == "Sampled": // "?" asks whoever comes next to decide
			c.TraceFlags = c.TraceFlags.WithSampled(value == "1")
		}
		if err != nil {
			return trace.SpanContext{}
		}
	}
	c.Remote = true
	return trace.NewSpanContext(c)
}

// parseRoot reads 1-, eight hexadecimal digits of the time, - and 24 more.
func parseRoot(root string) (trace.TraceID, error) {
	if len(root) != len("1-5759e988-bd862e3fe1be46a994272793") || root[:2] != "1-" || root[10] != '-' {
		return trace.TraceIDFromHex("") // an error
	}
	return trace.TraceIDFromHex(root[2:10] + root[11:])
}
