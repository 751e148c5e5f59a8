package otelsqs

import (
	"errors"

	"go.opentelemetry.io/otel/metric"
)

// instruments are those of all components. Names, units and buckets are stable.
type instruments struct {
	processDuration, operationDuration, timeInQueue, storeDuration, publishDuration, remainingTime metric.Float64Histogram

	receives                                                            metric.Int64Histogram
	consumed, sent, deliveries, decisions, keys, incidents, invocations metric.Int64Counter

	worker    workerGauges
	publisher publisherGauges
	relay     relayGauges
	limit     *limitGauges
}

// Bounds of histograms. Those of the conventions are for calls; messages may wait for days.
var (
	callBounds    = []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}
	storeBounds   = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5}
	waitBounds    = []float64{0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 14400, 43200, 86400, 345600}
	receiveBounds = []float64{1, 2, 3, 4, 5, 10}
)

// newInstruments makes the instruments. The error joins those of the MeterProvider.
func newInstruments(m metric.Meter) (i instruments, err error) {
	b := builder{meter: m}
	i.processDuration = b.seconds("messaging.process.duration", "Duration of handlers.", callBounds)
	i.operationDuration = b.seconds("messaging.client.operation.duration", "Duration of calls of SQS.", callBounds)
	i.consumed = b.counter("messaging.client.consumed.messages", "{message}", "Messages that were delivered, each delivery counted.")
	i.sent = b.counter("messaging.client.sent.messages", "{message}", "Events that have their results.")
	i.deliveries = b.counter("sqsonce.deliveries", "{delivery}", "Handlers by their messages' outcomes, and messages whose handlers did not start.")
	i.timeInQueue = b.seconds("sqsonce.message.time_in_queue", "Time from when SQS accepted a message to the start of its handler.", waitBounds)
	i.receives = b.histogram("sqsonce.message.receives", "{receive}", "How often messages had been received when their handlers started.", receiveBounds)
	i.decisions = b.counter("sqsonce.dedup.decisions", "{delivery}", "Deliveries by deduplication's decision.")
	i.keys = b.counter("sqsonce.dedup.keys", "{key}", "Keys by their source.")
	i.storeDuration = b.seconds("sqsonce.dedup.store.duration", "Duration of calls of the store.", storeBounds)
	i.incidents = b.counter("sqsonce.dedup.incidents", "{event}", "Rare events of deduplication, by kind.")
	i.publishDuration = b.seconds("sqsonce.publish.duration", "Time from an event's acceptance to its result.", callBounds)
	i.invocations = b.counter("sqsonce.lambda.invocations", "{invocation}", "Invocations by their messages' outcomes.")
	i.remainingTime = b.seconds("sqsonce.lambda.remaining_time", "Time until the deadline when an invocation had its answer.", callBounds)

	i.worker = workerGauges{
		messages:   b.upDown("sqsonce.worker.messages", "{message}", "Messages in flight by state."),
		limit:      b.upDown("sqsonce.worker.limit", "{message}", "Most messages in flight, and most of them whose handlers run."),
		intake:     b.upDown("sqsonce.worker.intake", "{worker}", "Workers that receive, by whether they do: 1 for the state that a worker is in."),
		receivers:  b.upDown("sqsonce.worker.receivers", "{receive}", "Receives under way."),
		stuck:      b.upDown("sqsonce.worker.handlers.stuck", "{handler}", "Handlers that ignore the end of their context."),
		handlerAge: b.age("sqsonce.worker.handler.age", "How long the oldest handler has run."),
		receiveAge: b.age("sqsonce.worker.receive.age", "Time since a receive last succeeded."),
		extensions: b.observed("sqsonce.worker.extensions", "{message}", "Extensions of visibility timeouts."),
		incidents:  b.observed("sqsonce.worker.incidents", "{message}", "Rare events of a worker, by kind."),
	}
	i.publisher = publisherGauges{
		events:    b.upDown("sqsonce.publisher.events", "{event}", "Events without a result by state."),
		bytes:     b.upDown("sqsonce.publisher.bytes", "By", "Bytes of pending events."),
		requests:  b.upDown("sqsonce.publisher.requests", "{request}", "Requests under way."),
		age:       b.age("sqsonce.publisher.age", "Time since the oldest pending event was accepted."),
		repeated:  b.observed("sqsonce.publisher.repeated", "{attempt}", "Attempts after an event's first."),
		throttled: b.observed("sqsonce.publisher.throttled", "{request}", "Requests that SQS throttled."),
	}
	i.relay = newRelayGauges(&b)
	i.limit = newLimitGauges(&b)
	return i, errors.Join(b.errs...)
}

// builder makes instruments and keeps the errors.
type builder struct {
	meter metric.Meter
	errs  []error
}

func made[I any](b *builder, i I, err error) I {
	if err != nil {
		b.errs = append(b.errs, err)
	}
	return i
}

func (b *builder) seconds(name, description string, bounds []float64) metric.Float64Histogram {
	i, err := b.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description), metric.WithExplicitBucketBoundaries(bounds...))
	return made(b, i, err)
}

func (b *builder) histogram(name, unit, description string, bounds []float64) metric.Int64Histogram {
	i, err := b.meter.Int64Histogram(name, metric.WithUnit(unit), metric.WithDescription(description), metric.WithExplicitBucketBoundaries(bounds...))
	return made(b, i, err)
}

func (b *builder) counter(name, unit, description string) metric.Int64Counter {
	i, err := b.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
	return made(b, i, err)
}

func (b *builder) upDown(name, unit, description string) metric.Int64ObservableUpDownCounter {
	i, err := b.meter.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
	return made(b, i, err)
}

func (b *builder) observed(name, unit, description string) metric.Int64ObservableCounter {
	i, err := b.meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
	return made(b, i, err)
}

func (b *builder) gauge(name, unit, description string) metric.Int64ObservableGauge {
	i, err := b.meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(description))
	return made(b, i, err)
}

func (b *builder) age(name, description string) metric.Float64ObservableGauge {
	i, err := b.meter.Float64ObservableGauge(name, metric.WithUnit("s"), metric.WithDescription(description))
	return made(b, i, err)
}
