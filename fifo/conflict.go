package fifo

import (
	"crypto/sha256"
	"hash/maphash"
	"time"

	"github.com/sqsonce/sqsonce"
)

// dedupInterval is how long SQS remembers a MessageDeduplicationId, at least.
const dedupInterval = 5 * time.Minute

// The sent events are kept in generations, by the time of their results. A generation is forgotten as a whole, so that no
// single step has much to do and its memory is given back.
const (
	generation = time.Minute
	// generations are two more than the interval has: the longer memory finds what SQS remembers for longer than it says.
	generations = int(dedupInterval/generation) + 2
)

// recentEvents remembers the events that this publisher accepted and those that it may have sent lately. It belongs to the
// publisher's mutex.
//
// It finds conflicts: events with the same ID and another group, type, body or attributes. SQS answers the second one with
// success and drops it, and so does a consumer that deduplicates events by their IDs. And it knows when the first attempt
// of an event was, so that a caller that publishes the event again does not begin a new window.
//
// An event costs about 110 bytes. There may be millions, so the maps have no pointers that the garbage collector would follow.
type recentEvents struct {
	start    time.Time
	seed     maphash.Seed
	accepted map[keyHash]acceptedEvent
	sent     [generations]map[keyHash]sentEvent // the latest first
	begun    time.Duration                      // from start: when the latest generation began
}

type keyHash [16]byte

func hashKey(key string) keyHash {
	sum := sha256.Sum256([]byte(key))
	return keyHash(sum[:16])
}

// acceptedEvent is an event that has no result yet.
type acceptedEvent struct {
	content uint64
	entries int
}

// sentEvent is an event that is, or may be, in the queue.
type sentEvent struct {
	content  uint64
	mono     time.Duration // the first attempt, by both clocks
	wall     int64
	end      uint32 // when it had its result: seconds from start, rounded up
	sequence uint32 // a hash of the number that SQS gave it; 0: none
}

func (s sentEvent) first() instant { return instant{mono: s.mono, wall: time.Unix(0, s.wall)} }

func newRecentEvents() recentEvents {
	r := recentEvents{start: time.Now(), seed: maphash.MakeSeed(), accepted: make(map[keyHash]acceptedEvent)}
	r.sent[0] = make(map[keyHash]sentEvent)
	return r
}

// begin adds an accepted entry. It returns false, and adds nothing, for a conflict.
func (r *recentEvents) begin(e *entry, now time.Time) bool {
	r.forget(now)
	e.content = r.contentOf(&e.event)
	a := r.accepted[e.keyHash]
	if a.entries > 0 && a.content != e.content {
		return false
	}
	s, known := r.find(e.keyHash)
	if known && s.content != e.content && now.Sub(r.start) < time.Duration(s.end)*time.Second+dedupInterval {
		return false
	}
	r.accepted[e.keyHash] = acceptedEvent{content: e.content, entries: a.entries + 1}
	return true
}

// end notes that an entry has its result. An event that is certainly not in the queue is forgotten at once, so that it can
// be published again with a corrected body.
func (r *recentEvents) end(e *entry, maybeSent bool, sequence string, now time.Time) {
	r.forget(now)
	a := r.accepted[e.keyHash]
	if a.entries--; a.entries > 0 {
		r.accepted[e.keyHash] = a
	} else {
		delete(r.accepted, e.keyHash)
	}
	if !maybeSent {
		return
	}
	r.sent[0][e.keyHash] = sentEvent{
		content: e.content, mono: e.first.mono, wall: e.first.wall.UnixNano(),
		end: uint32((now.Sub(r.start) + time.Second - 1) / time.Second), sequence: r.hashOf(sequence),
	}
}

// find returns what is known of an event that may have been sent.
func (r *recentEvents) find(key keyHash) (sentEvent, bool) {
	for _, g := range r.sent {
		if s, ok := g[key]; ok {
			return s, true
		}
	}
	return sentEvent{}, false
}

// isDropped reports whether SQS answered an entry with the sequence number of another event that had its ID: it remembers IDs
// for five minutes at least.
func (r *recentEvents) isDropped(e *entry, sequence string) bool {
	s, known := r.find(e.keyHash)
	return known && s.content != e.content && s.sequence != 0 && s.sequence == r.hashOf(sequence)
}

// forget drops what is older than the generations.
func (r *recentEvents) forget(now time.Time) {
	at := now.Sub(r.start)
	for n := 0; at-r.begun >= generation && n < generations; n++ {
		r.begun += generation
		copy(r.sent[1:], r.sent[:])
		r.sent[0] = nil
	}
	if r.sent[0] == nil {
		r.sent[0] = make(map[keyHash]sentEvent)
	}
	if at-r.begun >= generation { // nothing happened for long
		r.begun = at
	}
}

// contentOf returns a hash of all that a consumer sees of an event but its ID.
func (r *recentEvents) contentOf(e *Event) uint64 {
	var h maphash.Hash
	h.SetSeed(r.seed)
	for _, s := range []string{e.Group, e.Type, e.Body} {
		writeString(&h, s)
	}
	sum := h.Sum64()
	for name, a := range e.Attributes { // in any order
		h.Reset()
		writeString(&h, name)
		writeAttribute(&h, a)
		sum += h.Sum64()
	}
	return sum
}

func writeAttribute(h *maphash.Hash, a sqsonce.Attribute) {
	writeString(h, a.Type)
	writeString(h, a.String)
	_, _ = h.Write(a.Binary) // never fails
}

// writeString also writes the length: two strings do not become those of another pair.
func writeString(h *maphash.Hash, s string) {
	maphash.WriteComparable(h, len(s))
	_, _ = h.WriteString(s) // never fails
}

// hashOf returns a hash of a sequence number that is not 0, or 0 for none.
func (r *recentEvents) hashOf(sequence string) uint32 {
	if sequence == "" {
		return 0
	}
	return max(1, uint32(maphash.String(r.seed, sequence)))
}
