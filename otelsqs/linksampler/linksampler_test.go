package linksampler_test

import (
	"context"
	"encoding/binary"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/sqsonce/sqsonce/otelsqs/linksampler"
)

// ids are trace IDs that are spread evenly over what a ratio sampler looks at.
type ids struct{ n uint64 }

func (g *ids) NewIDs(ctx context.Context) (id trace.TraceID, _ trace.SpanID) {
	g.n++
	binary.BigEndian.PutUint64(id[:], g.n)
	binary.BigEndian.PutUint64(id[8:], g.n*0x9E3779B97F4A7C15) // the golden ratio's multiples
	return id, g.NewSpanID(ctx, id)
}

func (g *ids) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	g.n++
	binary.BigEndian.PutUint64(id[:], g.n)
	return id
}

// Of all producers 1% are sampled, and with them all of their consumers, and 1% of the others.
func TestSamples(t *testing.T) {
	t.Parallel()
	const messages = 100_000
	ratio := sdktrace.TraceIDRatioBased(0.01)
	producer := sdktrace.NewTracerProvider(sdktrace.WithSampler(ratio), sdktrace.WithIDGenerator(&ids{})).Tracer("producer")
	consumer := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.ParentBased(linksampler.New(ratio))), sdktrace.WithIDGenerator(&ids{n: 1 << 40})).Tracer("consumer")
	var sampled, both, others int
	for range messages {
		_, p := producer.Start(t.Context(), "create")
		_, c := consumer.Start(t.Context(), "process", trace.WithLinks(trace.Link{SpanContext: p.SpanContext()}))
		switch {
		case p.SpanContext().IsSampled() && c.SpanContext().IsSampled():
			sampled++
			both++
		case p.SpanContext().IsSampled():
			sampled++
		case c.SpanContext().IsSampled():
			others++
		}
		// A child is its parent's to decide: ParentBased does not ask.
		_, child := consumer.Start(trace.ContextWithSpan(t.Context(), c), "call")
		if child.SpanContext().IsSampled() != c.SpanContext().IsSampled() {
			t.Fatal("a child was sampled by another rule than its parent's")
		}
	}
	if both != sampled || sampled < 900 || sampled > 1_100 || others < 900 || others > 1_100 {
		t.Errorf("of %d messages %d producers sampled, %d with their consumer, and %d consumers without: want about 1,000, all of these and about 1,000", messages, sampled, both, others)
	}
}

func TestDescription(t *testing.T) {
	t.Parallel()
	if got := linksampler.New(sdktrace.NeverSample()).Description(); got != "LinkSampler{root:AlwaysOffSampler}" {
		t.Error(got)
	}
}
