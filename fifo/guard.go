package fifo

import (
	"crypto/sha256"
	"hash/maphash"
	"time"
)

// dedupInterval is how long SQS remembers a MessageDeduplicationId.
const dedupInterval = 5 * time.Minute

// guard finds events of one ID with different bodies: SQS answers success to the second and drops it, and so does a
// consumer that guards its events by their IDs. It costs about 100 bytes for each event of the last five minutes, which
// may be millions: there is no pointer in them for the garbage collector to follow.
//
// It sees this publisher's events only, and belongs to the publisher's mutex.
type guard struct {
	start   time.Time
	seed    maphash.Seed
	seen    map[guardKey]guardRecord
	expires []guardExpiry // oldest first
}

type guardKey [16]byte

type guardRecord struct {
	body    uint64
	pending int           // entries that are accepted and not yet answered
	until   time.Duration // from start, when the last that was, or may have been, enqueued is forgotten; 0: none was
}

type guardExpiry struct {
	key guardKey
	at  time.Duration // from start
}

func newGuard() guard {
	return guard{start: time.Now(), seed: maphash.MakeSeed(), seen: make(map[guardKey]guardRecord)}
}

// claim notes an event, or returns false where another body has its key.
func (g *guard) claim(e *entry, now time.Time) bool {
	g.expire(now.Sub(g.start))
	sum := sha256.Sum256([]byte(e.key))
	e.guardKey = guardKey(sum[:16])
	body := maphash.String(g.seed, e.event.Body)
	r, known := g.seen[e.guardKey]
	if known && r.body != body {
		return false
	}
	r.body = body
	r.pending++
	g.seen[e.guardKey] = r
	return true
}

// settle ends a claim. An event that is certainly not in the queue is forgotten: its ID is free for a corrected body.
func (g *guard) settle(e *entry, maybeSent bool, now time.Time) {
	r := g.seen[e.guardKey]
	r.pending--
	if maybeSent {
		r.until = now.Sub(g.start) + dedupInterval
		g.expires = append(g.expires, guardExpiry{key: e.guardKey, at: r.until})
	}
	g.put(e.guardKey, r)
}

func (g *guard) expire(now time.Duration) {
	n := 0
	for n < len(g.expires) && g.expires[n].at <= now {
		k := g.expires[n].key
		// A copy that was sent since then has an expiry of its own; one that is still pending decides when it is settled.
		if r, known := g.seen[k]; known && r.until <= now {
			r.until = 0
			g.put(k, r)
		}
		n++
	}
	g.expires = g.expires[n:]
}

func (g *guard) put(k guardKey, r guardRecord) {
	if r.pending == 0 && r.until == 0 {
		delete(g.seen, k)
		return
	}
	g.seen[k] = r
}
