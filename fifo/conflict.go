package fifo

import (
	"crypto/sha256"
	"hash/maphash"
	"time"
)

// dedupInterval is how long SQS remembers a MessageDeduplicationId.
const dedupInterval = 5 * time.Minute

// recentEvents finds conflicts: events with the same ID and different bodies. SQS answers the second one with success and
// drops it, and so does a consumer that deduplicates events by their IDs.
//
// It remembers the events that this publisher accepted and those that it sent in the last five minutes. An event costs
// about 100 bytes. There may be millions, so the map has no pointers that the garbage collector would follow. It belongs
// to the publisher's mutex.
type recentEvents struct {
	start    time.Time
	seed     maphash.Seed
	byKey    map[keyHash]recentEvent
	expiries []expiry // oldest first
}

type keyHash [16]byte

func hashKey(key string) keyHash {
	sum := sha256.Sum256([]byte(key))
	return keyHash(sum[:16])
}

type recentEvent struct {
	body    uint64        // its hash
	pending int           // entries that are accepted and have no result yet
	until   time.Duration // from start: when SQS forgets the last one that is, or may be, in the queue; 0: none is
}

type expiry struct {
	key keyHash
	at  time.Duration // from start
}

func newRecentEvents() recentEvents {
	return recentEvents{start: time.Now(), seed: maphash.MakeSeed(), byKey: make(map[keyHash]recentEvent)}
}

// begin adds an accepted entry. It returns false, and adds nothing, for a conflict.
func (r *recentEvents) begin(e *entry, now time.Time) bool {
	r.expire(now.Sub(r.start))
	body := maphash.String(r.seed, e.event.Body)
	ev, known := r.byKey[e.keyHash]
	if known && ev.body != body {
		return false
	}
	ev.body = body
	ev.pending++
	r.byKey[e.keyHash] = ev
	return true
}

// end notes that an entry has its result. An event that is certainly not in the queue is forgotten at once, so that it can
// be published again with a corrected body.
func (r *recentEvents) end(e *entry, maybeSent bool, now time.Time) {
	ev := r.byKey[e.keyHash]
	ev.pending--
	if maybeSent {
		ev.until = now.Sub(r.start) + dedupInterval
		r.expiries = append(r.expiries, expiry{key: e.keyHash, at: ev.until})
	}
	r.set(e.keyHash, ev)
}

func (r *recentEvents) expire(now time.Duration) {
	n := 0
	for n < len(r.expiries) && r.expiries[n].at <= now {
		key := r.expiries[n].key
		// If the event was sent again since then, it has a later expiry as well. If it is pending, end decides.
		if ev, known := r.byKey[key]; known && ev.until <= now {
			ev.until = 0
			r.set(key, ev)
		}
		n++
	}
	r.expiries = r.expiries[n:]
}

func (r *recentEvents) set(key keyHash, ev recentEvent) {
	if ev.pending == 0 && ev.until == 0 {
		delete(r.byKey, key)
		return
	}
	r.byKey[key] = ev
}
