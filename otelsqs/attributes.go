package otelsqs

import (
	"slices"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
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

// sets keeps the sets of metrics. Making one costs more than recording a value, and there are few: no value is of a message. What a
// user's ErrorType returns, which should be few words, is bounded.
type sets struct {
	common []attribute.KeyValue
	known  known[attributes, *set]
}

// attributes are the attributes of a set besides the common ones. An array, which takes no memory of its own; a zero one is none.
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

// known keeps what was made of keys.
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
