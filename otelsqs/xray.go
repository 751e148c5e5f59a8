package otelsqs

import (
	"context"
	"os"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

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
