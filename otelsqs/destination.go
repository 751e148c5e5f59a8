package otelsqs

import (
	"net/url"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/sqsonce/sqsonce/internal/host"
)

// destination is what spans and metrics say of a queue. It is made once for each.
type destination struct {
	name    string
	attrs   []attribute.KeyValue    // of spans and metrics
	process string                  // the name of handlers' spans
	child   []trace.SpanStartOption // of these spans
	root    []trace.SpanStartOption // of those that are to have no parent
	sets    sets
}

// destinations keeps what is known of queues, by URL or ARN. A host with ever new queues is bounded.
type destinations struct{ known known[string, *destination] }

func (d *destinations) get(queue string) *destination { return d.known.get(queue, newDestination) }

// newDestination reads the name and the server of a queue from its URL or ARN.
func newDestination(queue string) *destination {
	d := &destination{name: queue[strings.LastIndexAny(queue, "/:")+1:]}
	d.attrs = []attribute.KeyValue{semconv.MessagingSystemAWSSQS, semconv.MessagingDestinationName(d.name)}
	location := queue
	arn, err := host.ParseQueueARN(queue)
	if err == nil {
		location = arn.URL()
	}
	u, _ := url.Parse(location)
	isQueue := u != nil && u.Host != ""
	if isQueue {
		d.attrs = append(d.attrs, semconv.ServerAddress(u.Hostname()))
	}
	d.process = "process " + d.name
	handled := d.with(operationProcess, semconv.MessagingOperationTypeProcess)
	if isQueue && location == queue {
		handled = append(handled, semconv.AWSSQSQueueURL(queue))
	}
	d.child = []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(handled...)}
	d.root = append(slices.Clip(d.child), trace.WithNewRoot())
	d.sets.common = d.attrs
	return d
}

// with returns the queue's attributes and others, for a span.
func (d *destination) with(others ...attribute.KeyValue) []attribute.KeyValue {
	return slices.Concat(d.attrs, others)
}
