package memsqs

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"
)

// dedupKey is what a FIFO queue remembers for five minutes after it accepted a message. group is empty unless the queue
// deduplicates within groups.
type dedupKey struct{ group, id string }

// accepted is the first message with a deduplication ID; later ones get the same answer. The message itself may be gone.
type accepted struct{ id, seq string }

func (q *queue) dedupKey(m *message) dedupKey {
	if q.perGroup {
		return dedupKey{m.group, m.dedupID}
	}
	return dedupKey{"", m.dedupID}
}

// accept stores a sent message, unless the queue accepted its deduplication ID within the last five minutes: then
// nothing changes (the interval is not renewed either) and m takes the ID and sequence number of the one accepted.
func (q *queue) accept(m *message, now time.Time) {
	if q.attrs.FIFO {
		k := q.dedupKey(m)
		if first, ok := q.dedup.get(k); ok {
			m.id, m.seq = first.id, first.seq
			return
		}
		m.seq = q.server.nextSequence()
		q.dedup.put(k, accepted{m.id, m.seq}, now)
	}
	q.insert(m, nil, now)
}

// contentID is the deduplication ID of ContentBasedDeduplication: of the body alone, without attributes.
func contentID(body string) string {
	sum := sha256.Sum256([]byte(body))
	return hex.EncodeToString(sum[:])
}

// nextSequence returns a sequence number as AWS's look: 20 digits, increasing, not consecutive.
func (s *Server) nextSequence() string {
	n := strconv.FormatUint(s.nextSerial()*256, 10)
	return "1885" + "0000000000000000"[len(n):] + n
}

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

// attempt is a receive that carried a ReceiveRequestAttemptId: what it handed out, and in which state.
type attempt struct{ items []attempted }

type attempted struct {
	m                *message
	receipt, changes uint64
}

func (q *queue) remember(r *request, got []*message, now time.Time) {
	if r.attempt == "" || len(got) == 0 {
		return
	}
	var a attempt
	for _, m := range got {
		a.items = append(a.items, attempted{m, m.receipt, m.changes})
	}
	q.attempts.put(r.attempt, a, now)
}

// replay returns the messages of an earlier receive with the same ReceiveRequestAttemptId, with the same receipt handles
// and a fresh visibility timeout: a client that lost the reply asks again. It returns nil, and the call is an ordinary
// receive, after five minutes, or once any of the messages was deleted, changed its visibility or became visible.
func (q *queue) replay(r *request, now time.Time) []*message {
	a, ok := q.attempts.get(r.attempt)
	if !ok {
		return nil
	}
	var out []*message
	for _, it := range a.items {
		m := it.m
		if q.messages[m.serial] != m || m.receipt != it.receipt || m.changes != it.changes || !m.inFlight() {
			q.attempts.drop(r.attempt)
			return nil
		}
		out = append(out, m)
	}
	for _, m := range out {
		// The time in flight counts from the first receive, which the reset must not extend beyond 12 h.
		until := now.Add(r.visibility)
		if limit := m.receivedAt.Add(maxVisibility * time.Second); until.After(limit) {
			until = limit
		}
		q.hide(m, until)
	}
	return out
}
