package memsqs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

// dedupKey identifies a message for deduplication. group is empty unless the queue deduplicates in each group.
type dedupKey struct{ group, id string }

// accepted is the message ID and sequence number of the first message with a dedupKey. The message itself may be deleted
// by now.
type accepted struct{ id, seq string }

func (q *queue) dedupKey(m *message) dedupKey {
	if q.perGroup {
		return dedupKey{m.group, m.dedupID}
	}
	return dedupKey{"", m.dedupID}
}

// insertOnce stores a sent message. If a FIFO queue accepted the same deduplication ID within the last five minutes, it
// stores nothing, does not renew the five minutes, and sets m's ID and sequence number to those of the first message.
func (q *queue) insertOnce(m *message, now time.Time) {
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

// contentDedupID is the deduplication ID of ContentBasedDeduplication: a sum of the body, without the attributes.
func contentDedupID(body string) string {
	sum := sha256.Sum256([]byte(body))
	return hex.EncodeToString(sum[:])
}

// nextSequence returns a sequence number of AWS's form: 20 digits, increasing, not consecutive.
func (s *Server) nextSequence() string {
	return fmt.Sprintf("1885%016d", s.nextSerial()*256)
}

// intervalMap keeps values for dedupInterval after they were put.
type intervalMap[K comparable, V any] struct {
	values map[K]intervalValue[V]
	order  []insertion[K] // oldest first; includes values that were dropped or replaced since
}

type intervalValue[V any] struct {
	value V
	at    int64 // Unix time in nanoseconds; a time.Time has three times the size, and there may be millions
}

type insertion[K comparable] struct {
	key K
	at  int64
}

func (w *intervalMap[K, V]) get(k K) (V, bool) {
	r, ok := w.values[k]
	return r.value, ok
}

// put keeps v for dedupInterval from now, and replaces the value that k had.
func (w *intervalMap[K, V]) put(k K, v V, now time.Time) {
	if w.values == nil {
		w.values = map[K]intervalValue[V]{}
	}
	at := now.UnixNano()
	w.values[k] = intervalValue[V]{v, at}
	w.order = append(w.order, insertion[K]{k, at})
}

func (w *intervalMap[K, V]) drop(k K) { delete(w.values, k) }

// expire drops the values that were put dedupInterval ago or earlier.
func (w *intervalMap[K, V]) expire(now time.Time) {
	n, last := 0, now.Add(-dedupInterval).UnixNano()
	for n < len(w.order) && w.order[n].at <= last {
		// If the key was put again since, its value is younger and stays.
		if k := w.order[n].key; w.values[k].at == w.order[n].at {
			delete(w.values, k)
		}
		n++
	}
	w.order = w.order[n:]
}

func (w *intervalMap[K, V]) clear() { w.values, w.order = nil, nil }

// receiveAttempt is a receive that had a ReceiveRequestAttemptId: its messages and their state at that time.
type receiveAttempt struct{ items []attemptItem }

type attemptItem struct {
	m                *message
	receipt, changes uint64
}

func (q *queue) recordAttempt(r *receiveRequest, got []*message, now time.Time) {
	if r.attempt == "" || len(got) == 0 {
		return
	}
	var a receiveAttempt
	for _, m := range got {
		a.items = append(a.items, attemptItem{m, m.receipt, m.changes})
	}
	q.attempts.put(r.attempt, a, now)
}

// replayAttempt returns the messages of an earlier receive that had the same ReceiveRequestAttemptId, and starts their
// visibility timeouts again: a client that did not get the response repeats the call. The receipt handles stay the same.
// After five minutes, or once any of the messages was deleted, changed its visibility or became visible, it returns nil,
// and the call is an ordinary receive.
func (q *queue) replayAttempt(r *receiveRequest, now time.Time) []*message {
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
		// The time in flight counts from the receive. A replay must not extend it beyond 12 h.
		until := now.Add(r.visibility)
		if limit := m.receivedAt.Add(maxVisibility * time.Second); until.After(limit) {
			until = limit
		}
		q.hide(m, until, now)
	}
	return out
}
