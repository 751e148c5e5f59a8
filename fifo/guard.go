package fifo

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// dedupInterval is how long SQS remembers a MessageDeduplicationId.
const dedupInterval = 5 * time.Minute

// guard finds events of one ID with different bodies: SQS answers success to the second and drops it, and so does a
// consumer that guards its events by their IDs. It costs about 100 bytes for each event of the last five minutes.
//
// It sees this publisher's events only, and belongs to the publisher's mutex.
type guard struct {
	seen    map[guardKey]*guardRecord
	expires []guardExpiry // oldest first
}

type guardKey [16]byte

type guardRecord struct {
	body    uint64
	pending int       // entries that are accepted and not yet answered
	sent    time.Time // when the last of them was, or may have been, enqueued; zero: none was
}

type guardExpiry struct {
	key guardKey
	at  time.Time
}

func newGuard() guard { return guard{seen: make(map[guardKey]*guardRecord)} }

// claim notes an event, or returns false where another body has its key.
func (g *guard) claim(e *entry, now time.Time) bool {
	g.expire(now)
	k, body := keyHash(e.key), bodyHash(*e.message.MessageBody)
	r := g.seen[k]
	if r == nil {
		r = &guardRecord{body: body}
		g.seen[k] = r
	}
	if r.body != body {
		return false
	}
	r.pending++
	return true
}

// settle ends a claim. An event that is certainly not in the queue is forgotten: its ID is free for a corrected body.
func (g *guard) settle(e *entry, maybeSent bool, now time.Time) {
	k := keyHash(e.key)
	r := g.seen[k]
	r.pending--
	if maybeSent {
		r.sent = now
		g.expires = append(g.expires, guardExpiry{key: k, at: now.Add(dedupInterval)})
	}
	if r.pending == 0 && r.sent.IsZero() {
		delete(g.seen, k)
	}
}

func (g *guard) expire(now time.Time) {
	n := 0
	for n < len(g.expires) && !g.expires[n].at.After(now) {
		k := g.expires[n].key
		// A copy that was sent since then has an expiry of its own; one that is still pending decides when it is settled.
		if r := g.seen[k]; r != nil && !r.sent.Add(dedupInterval).After(now) {
			r.sent = time.Time{}
			if r.pending == 0 {
				delete(g.seen, k)
			}
		}
		n++
	}
	g.expires = g.expires[n:]
}

func keyHash(key string) guardKey {
	sum := sha256.Sum256([]byte(key))
	return guardKey(sum[:16])
}

func bodyHash(body string) uint64 {
	sum := sha256.Sum256([]byte(body))
	return binary.BigEndian.Uint64(sum[:8])
}
