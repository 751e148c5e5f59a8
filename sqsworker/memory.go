package sqsworker

import "crypto/sha256"

// memory holds the IDs of the last messages that are done. SQS may deliver such a message again, because its delete was
// not confirmed or because a replica missed the receive or the delete; it is then deleted without running. A message
// that is sent again, or redriven from a dead-letter queue, has a new ID.
type memory struct {
	ids  map[memoryKey]bool // true: the delete is not confirmed
	ring []memoryKey        // in the order they came; zero: free
	next int
}

// memoryKey is a message ID. One of SQS's is a UUID, kept as its 16 bytes, of any other kind the digest is: the ID itself
// is part of a larger piece of the receive's answer, which it would keep too.
type memoryKey [16]byte

// memorySize bounds the memory: 10,000 IDs are about 1 MB. The record of package dedup covers what is forgotten, and
// other processes.
const memorySize = 10_000

func keyOf(id string) memoryKey {
	if uuid, ok := parseUUID(id); ok {
		return uuid
	}
	sum := sha256.Sum256([]byte(id))
	return memoryKey(sum[:])
}

// parseUUID takes the one way to write a UUID that SQS has, so that no two IDs have the same key.
func parseUUID(s string) (uuid [16]byte, ok bool) {
	if len(s) != 36 {
		return uuid, false
	}
	digits := 0
	for i := range len(s) {
		c := s[i]
		switch {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return uuid, false
			}
			continue
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		default:
			return uuid, false
		}
		uuid[digits/2] = uuid[digits/2]<<4 | c
		digits++
	}
	return uuid, uuid != [16]byte{} // the zero key is nobody's
}

func (m *memory) has(id string) bool { _, ok := m.ids[keyOf(id)]; return ok }

func (m *memory) undeleted(id string) bool { return m.ids[keyOf(id)] }

// add returns what undeleted said before.
func (m *memory) add(id string, undeleted bool) (before bool) {
	key := keyOf(id)
	if before, known := m.ids[key]; known {
		m.ids[key] = undeleted
		return before
	}
	if m.ids == nil {
		m.ids, m.ring = make(map[memoryKey]bool), make([]memoryKey, memorySize)
	}
	delete(m.ids, m.ring[m.next])
	m.ids[key], m.ring[m.next] = undeleted, key
	m.next = (m.next + 1) % len(m.ring)
	return false
}

// remember keeps a message that is done and cannot be deleted with the handle we have.
func (l *loop) remember(d *delivery) {
	if !l.finished.add(d.m.ID, true) {
		l.counters.undeleted.Add(1)
	}
}

// deletedForGood keeps a message whose delete is confirmed, against copies of it.
func (l *loop) deletedForGood(d *delivery) {
	if l.finished.add(d.m.ID, false) {
		l.counters.undeleted.Add(-1)
	}
}
