package otelsqs

import (
	"net/url"
	"slices"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// destination is what spans and metrics say of a queue. It is made once for each.
type destination struct {
	name    string
	attrs   []attribute.KeyValue // of spans and metrics
	process string               // the name of handlers' spans
	handled []attribute.KeyValue // of these spans
	sets    sets
}

// destinations keeps what is known of queues, by URL or ARN.
type destinations struct {
	mu sync.RWMutex
	m  map[string]*destination
}

// mostDestinations bounds what a host with ever new queues costs.
const mostDestinations = 1024

func (d *destinations) get(queue string) *destination {
	d.mu.RLock()
	found := d.m[queue]
	d.mu.RUnlock()
	if found != nil {
		return found
	}
	made := newDestination(queue)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.m == nil {
		d.m = map[string]*destination{}
	}
	if len(d.m) < mostDestinations {
		d.m[queue] = made
	}
	return made
}

// newDestination reads the name and the server of a queue from its URL or ARN.
func newDestination(queue string) *destination {
	d := &destination{name: queue[strings.LastIndexAny(queue, "/:")+1:]}
	d.attrs = []attribute.KeyValue{semconv.MessagingSystemAWSSQS, semconv.MessagingDestinationName(d.name)}
	isURL := false
	if arn := strings.Split(queue, ":"); len(arn) == 6 && arn[0] == "arn" {
		server := "sqs." + arn[3] + ".amazonaws.com"
		if arn[1] == "aws-cn" {
			server += ".cn"
		}
		d.attrs = append(d.attrs, semconv.ServerAddress(server))
	} else if u, err := url.Parse(queue); err == nil && u.Host != "" {
		d.attrs, isURL = append(d.attrs, semconv.ServerAddress(u.Hostname())), true
	}
	d.process = "process " + d.name
	d.handled = append(slices.Clone(d.attrs), operationProcess, semconv.MessagingOperationTypeProcess)
	if isURL {
		d.handled = append(d.handled, semconv.AWSSQSQueueURL(queue))
	}
	d.sets.common = d.attrs
	return d
}

// with returns the queue's attributes and others, for a span.
func (d *destination) with(others ...attribute.KeyValue) []attribute.KeyValue {
	return slices.Concat(d.attrs, others)
}
