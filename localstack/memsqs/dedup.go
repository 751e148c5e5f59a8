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
