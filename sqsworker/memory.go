package sqsworker

// memory holds the IDs of the last messages that are done. SQS may deliver such a message again, because its delete was
// not confirmed or because a replica missed the receive or the delete; it is then deleted without running. A message
// that is sent again, or redriven from a dead-letter queue, has a new ID.
type memory struct {
	ids  map[string]bool // true: the delete is not confirmed
	ring []string        // in the order they came; "": free
	next int
}

// memorySize bounds the memory: 10,000 IDs are about 1 MB. The record of package dedup covers what is forgotten, and
// other processes.
const memorySize = 10_000

func (m *memory) has(id string) bool { _, ok := m.ids[id]; return ok }

func (m *memory) undeleted(id string) bool { return m.ids[id] }

func (m *memory) add(id string, undeleted bool) {
	if m.has(id) {
		m.ids[id] = undeleted
		return
	}
	if m.ids == nil {
		m.ids, m.ring = make(map[string]bool), make([]string, memorySize)
	}
	delete(m.ids, m.ring[m.next])
	m.ids[id], m.ring[m.next] = undeleted, id
	m.next = (m.next + 1) % len(m.ring)
}

// remember keeps a message that is done and cannot be deleted with the handle we have.
func (l *loop) remember(d *delivery) {
	if !l.finished.undeleted(d.m.ID) {
		l.finished.add(d.m.ID, true)
		l.counters.undeleted.Add(1)
	}
}

// deletedForGood keeps a message whose delete is confirmed, against copies of it.
func (l *loop) deletedForGood(d *delivery) {
	if l.finished.undeleted(d.m.ID) {
		l.counters.undeleted.Add(-1)
	}
	l.finished.add(d.m.ID, false)
}
