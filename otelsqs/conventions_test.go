package otelsqs_test

import (
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// conventions are the rules for a span by its messaging.operation.name.
// https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/
var conventions = map[string]struct {
	kind   trace.SpanKind
	single bool // is about one message
	batch  bool // may be about several, and then has their number
}{
	"create":  {trace.SpanKindProducer, true, false},
	"send":    {trace.SpanKindClient, false, true}, // a client's, since each message has a create span
	"process": {trace.SpanKindConsumer, true, true},
}

// wantConventions checks a span that has ended.
func wantConventions(t *testing.T, s tracetest.SpanStub) {
	t.Helper()
	all := attribute.NewSet(s.Attributes...)
	text := func(key attribute.Key) string {
		v, _ := all.Value(key)
		return v.AsString()
	}
	operation := text(semconv.MessagingOperationNameKey)
	rule, known := conventions[operation]
	_, one := all.Value(semconv.MessagingMessageIDKey)
	count, several := all.Value(semconv.MessagingBatchMessageCountKey)
	_, failed := all.Value(semconv.ErrorTypeKey)
	for problem, is := range map[string]bool{
		"its operation is unknown":                            !known,
		"it has not the kind of its operation":                s.SpanKind != rule.kind,
		"its name is not operation and destination":           s.Name != operation+" "+text(semconv.MessagingDestinationNameKey),
		"messaging.operation.type is not that of its name":    text(semconv.MessagingOperationTypeKey) != operation, // create, send and process are types too
		"it has a message's ID and a number of messages":      one && several,
		"it has a message's ID, and is not about one message": one && !rule.single,
		"it has a number of messages, and is about one":       several && !rule.batch,
		"it has no message's ID, and no number":               !one && !several && !(operation == "create" && failed), // SQS gave none
		"the number of messages is not positive":              several && count.AsInt64() < 1,
		"error.type and the status differ":                    failed != (s.Status.Code == codes.Error),
	} {
		if is {
			t.Errorf("%s %s: %s: %v", s.SpanKind, s.Name, problem, s.Attributes)
		}
	}
	wantSampling(t, s.Name, s.Attributes)
}

// wantSampling checks the attributes by which a sampler may decide.
func wantSampling(t *testing.T, name string, attrs []attribute.KeyValue) {
	t.Helper()
	all := attribute.NewSet(attrs...)
	for _, key := range []attribute.Key{
		semconv.MessagingSystemKey, semconv.MessagingOperationNameKey, semconv.MessagingOperationTypeKey, semconv.MessagingDestinationNameKey,
		semconv.ServerAddressKey,
	} {
		if v, _ := all.Value(key); v.AsString() == "" {
			t.Errorf("%s: no %s in %v", name, key, attrs)
		}
	}
	if v, _ := all.Value(semconv.MessagingSystemKey); v != semconv.MessagingSystemAWSSQS.Value {
		t.Errorf("%s: system %s", name, v.AsString())
	}
}

// sampler takes every span, and checks what it is given at the span's start.
type sampler struct {
	*testing.T
	sdktrace.Sampler
}

func (s sampler) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	wantSampling(s.T, "sampler: "+p.Name, p.Attributes)
	return s.Sampler.ShouldSample(p)
}
