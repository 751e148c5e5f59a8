package memsqs

import "time"

// interval is how long a FIFO queue remembers deduplication IDs and receive attempts.
const interval = 5 * time.Minute

// window remembers values for five minutes from when they were put.
type window[K comparable, V any] struct {
	values map[K]remembered[V]
	order  []put[K] // oldest first; also those dropped or replaced since
}

type remembered[V any] struct {
	value V
	at    int64 // Unix time in nanoseconds: there may be millions, and a time.Time is three times the size
}

type put[K comparable] struct {
	key K
	at  int64
}

func (w *window[K, V]) get(k K) (V, bool) {
	r, ok := w.values[k]
	return r.value, ok
}

// put remembers v for five minutes from now, in place of what k had.
func (w *window[K, V]) put(k K, v V, now time.Time) {
	if w.values == nil {
		w.values = map[K]remembered[V]{}
	}
	at := now.UnixNano()
	w.values[k] = remembered[V]{v, at}
	w.order = append(w.order, put[K]{k, at})
}

func (w *window[K, V]) drop(k K) { delete(w.values, k) }

// expire forgets what was put five minutes ago or earlier.
func (w *window[K, V]) expire(now time.Time) {
	n, last := 0, now.Add(-interval).UnixNano()
	for n < len(w.order) && w.order[n].at <= last {
		// A key that was put again since has a younger entry further on.
		if k := w.order[n].key; w.values[k].at == w.order[n].at {
			delete(w.values, k)
		}
		n++
	}
	w.order = w.order[n:]
}

func (w *window[K, V]) clear() { w.values, w.order = nil, nil }
