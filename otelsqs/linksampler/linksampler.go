// Package linksampler samples a root span whose link was sampled: a message's consumer where its producer was.
//
// A consumer's span has a link to its producer's and is a root of its own: where each side samples 1% by itself, one in 10,000
// messages has both halves.
package linksampler

import (
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// New returns a sampler that takes a span with a sampled link, and leaves every other to root. Use it as the root of
// [sdktrace.ParentBased]. root must not be nil.
func New(root sdktrace.Sampler) sdktrace.Sampler { return sampler{root} }

type sampler struct{ root sdktrace.Sampler }

func (s sampler) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	for _, link := range p.Links {
		if link.SpanContext.IsSampled() {
			return sdktrace.SamplingResult{
				Decision: sdktrace.RecordAndSample, Tracestate: trace.SpanContextFromContext(p.ParentContext).TraceState(),
			}
		}
	}
	return s.root.ShouldSample(p)
}

func (s sampler) Description() string { return "LinkSampler{root:" + s.root.Description() + "}" }
