package otelsqs

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

// Attributes of our own. Their names are stable.
const (
	keyAttempts     = attribute.Key("sqsonce.attempts")
	keyConsumer     = attribute.Key("sqsonce.consumer")
	keyDecision     = attribute.Key("sqsonce.dedup.outcome")
	keyEventKey     = attribute.Key("sqsonce.event.key")
	keyExtensions   = attribute.Key("sqsonce.extensions")
	keyFailed       = attribute.Key("sqsonce.failed")
	keyFence        = attribute.Key("sqsonce.fence")
	keyGroup        = attribute.Key("sqsonce.message.group")
	keyIncident     = attribute.Key("sqsonce.incident")
	keyKeySource    = attribute.Key("sqsonce.key.source")
	keyLimit        = attribute.Key("sqsonce.limit")
	keyMemory       = attribute.Key("sqsonce.dedup.memory")
	keyOperation    = attribute.Key("sqsonce.store.operation")
	keyOutcome      = attribute.Key("sqsonce.outcome")
	keyReceiveCount = attribute.Key("sqsonce.receive_count")
	keyRedelivered  = attribute.Key("sqsonce.redelivered")
	keyRenewals     = attribute.Key("sqsonce.renewals")
	keyResult       = attribute.Key("sqsonce.result")
	keyRule         = attribute.Key("sqsonce.rule")
	keyRun          = attribute.Key("sqsonce.run")
	keyState        = attribute.Key("sqsonce.state")
	keyTimeInQueue  = attribute.Key("sqsonce.time_in_queue")
)

// set is an attribute set of metrics, as the methods of instruments take it.
type set struct {
	record  []metric.RecordOption
	add     []metric.AddOption
	observe []metric.ObserveOption
}

// sets keeps the sets of metrics. Making a set costs more than recording a value. There are few sets, because their values don't
// come from messages. The values of a user's ErrorType, which should be few words, are bounded.
type sets struct {
	common []attribute.KeyValue
	known  known[attributes, *set]
}

// attributes are the attributes of a set in addition to the common ones. It is an array, which doesn't allocate. A zero attribute
// is left out.
type attributes [3]attribute.KeyValue

func (s *sets) get(as attributes) *set { return s.known.get(as, s.make) }

func (s *sets) make(as attributes) *set {
	all := slices.Clone(s.common)
	for _, a := range as {
		if a.Valid() {
			all = append(all, a)
		}
	}
	option := metric.WithAttributeSet(attribute.NewSet(all...))
	return &set{[]metric.RecordOption{option}, []metric.AddOption{option}, []metric.ObserveOption{option}}
}

// mostKnown bounds how much is kept. What does not fit is made each time.
const mostKnown = 1024

// known keeps the results for keys.
type known[K comparable, V any] struct {
	mu sync.RWMutex
	m  map[K]V
}

func (k *known[K, V]) get(key K, make func(K) V) V {
	k.mu.RLock()
	v, found := k.m[key]
	k.mu.RUnlock()
	if found {
		return v
	}
	v = make(key)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.m == nil {
		k.m = map[K]V{}
	}
	if len(k.m) < mostKnown {
		k.m[key] = v
	}
	return v
}

// coded is an error of AWS: the SDK's smithy.APIError, or that of an entry of a batch.
type coded interface {
	error
	ErrorCode() string
}

// errorType returns the attribute error.type of an error.
func (t *Telemetry) errorType(err error) attribute.KeyValue {
	if word := ownErrorType(err); word != "" {
		return semconv.ErrorTypeKey.String(word)
	}
	if o := sqsonce.OutcomeOf(err); o.Retry && o.Err != nil {
		err = o.Err // what failed
	}
	if t.userErrorType != nil {
		var word string
		if err := host.Recover(func() { word = t.userErrorType(err) }); err != nil { // else this hook would be off, and with it most of telemetry
			t.errorTypeFailed.Do(func() {
				slog.Error("otelsqs: Options.ErrorType panicked: error.type is _OTHER (logged once)", host.ErrorAttrs(err)...)
			})
			return semconv.ErrorTypeOther
		}
		return semconv.ErrorTypeKey.String(word)
	}
	if aws, ok := errors.AsType[coded](err); ok {
		return semconv.ErrorTypeKey.String(aws.ErrorCode())
	}
	kv := semconv.ErrorType(err)
	switch kv.Value.AsString() {
	case "*errors.errorString", "*fmt.wrapError", "*fmt.wrapErrors", "*errors.joinError": // which say nothing
		return semconv.ErrorTypeOther
	}
	return kv
}

// ownErrorType returns the word for an error that sqsonce knows, or "".
func ownErrorType(err error) string {
	if _, ok := errors.AsType[*sqsonce.PanicError](err); ok {
		return "panic"
	}
	if _, ok := errors.AsType[*sqsonce.DecodeError](err); ok {
		return "decode"
	}
	switch {
	case errors.Is(err, sqsonce.ErrLeaseLost):
		return "lease_lost"
	case errors.Is(err, sqsonce.ErrShutdown):
		return "shutdown"
	case sqsonce.OutcomeOf(err).Reject:
		return "rejected"
	case errors.Is(err, sqsonce.ErrUnavailable):
		return "unavailable"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	}
	return ""
}

// destination is the description of a queue in spans and metrics. It is made once for each queue.
type destination struct {
	name    string
	attrs   []attribute.KeyValue    // of spans and metrics
	process string                  // the name of handlers' spans
	child   []trace.SpanStartOption // of these spans
	root    []trace.SpanStartOption // of those that are to have no parent
	sets    sets
}

// destinations keeps the descriptions of queues, by URL or ARN. It is bounded, for a host with ever new queues.
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
