package memsqs

import (
	"cmp"
	"time"
)

// ordering decides which visible messages a receive may return, and in which order.
type ordering interface {
	// add adds m at the end of the queue or, if before is not nil, in front of before.
	add(m, before *message)
	remove(m *message, now time.Time)
	// changed is called after m was hidden or shown, with the time of that.
	changed(m *message, now time.Time)
	// next returns the first receivable messages, at most n. It may return fewer than there are, but returns none only if
	// there are none. It changes no message.
	next(n int, now time.Time) []*message
}

// lessBy orders two items by their keys a and b, and items with equal keys by their serial numbers.
func lessBy[K cmp.Ordered](a, b K, serialA, serialB uint64) bool {
	return cmp.Or(cmp.Compare(a, b), cmp.Compare(serialA, serialB)) < 0
}

// fifoOrder is the ordering of a FIFO queue. A message is receivable while it and every message before it in its message group is
// visible. A message in flight or delayed blocks the messages behind it in its group, and does not block other groups.
type fifoOrder struct {
	byID   map[string]*messageGroup
	ready  indexedHeap[*messageGroup] // groups whose first message is visible, by their places
	serial func() uint64
}

// messageGroup is the list of a group's messages, oldest first, visible or not.
type messageGroup struct {
	id          string
	first, last *message
	head        *message // the first message, while in ready
	place       uint64   // the order of head, or if it is visible again, a serial of that time: behind the groups that wait
	readyIndex  int
}

func newFIFOOrder(s *Server) *fifoOrder {
	return &fifoOrder{byID: map[string]*messageGroup{}, serial: s.nextSerial, ready: indexedHeap[*messageGroup]{
		less:     func(a, b *messageGroup) bool { return a.place < b.place },
		position: func(g *messageGroup) *int { return &g.readyIndex },
	}}
}

func (s *fifoOrder) add(m, before *message) {
	g := s.byID[m.group]
	if g == nil {
		g = &messageGroup{id: m.group}
		s.byID[m.group] = g
	}
	m.in = g
	if before != nil {
		m.order = before.order
		m.prev, m.next = before.prev, before
	} else {
		m.prev = g.last
	}
	if m.prev != nil {
		m.prev.next = m
	} else {
		g.first = m
	}
	if m.next != nil {
		m.next.prev = m
	} else {
		g.last = m
	}
}

func (s *fifoOrder) remove(m *message, _ time.Time) {
	g := m.in
	if m.prev != nil {
		m.prev.next = m.next
	} else {
		g.first = m.next
	}
	if m.next != nil {
		m.next.prev = m.prev
	} else {
		g.last = m.prev
	}
	m.prev, m.next, m.in = nil, nil, nil
	if g.first == nil {
		delete(s.byID, g.id)
	}
	s.refresh(g)
}

func (s *fifoOrder) changed(m *message, _ time.Time) { s.refresh(m.in) }

// refresh adds the group to ready, moves it there, or removes it, depending on its first message.
func (s *fifoOrder) refresh(g *messageGroup) {
	if g.first == nil || g.first.hidden {
		s.ready.remove(g)
		return
	}
	if s.ready.has(g) && g.head == g.first {
		return
	}
	s.ready.remove(g)
	g.head, g.place = g.first, g.first.order
	if g.head.again {
		g.place = s.serial()
	}
	s.ready.push(g)
}

// next returns up to n messages of one group: AWS fills a receive from one group before it uses the next.
func (s *fifoOrder) next(n int, _ time.Time) []*message {
	if s.ready.Len() == 0 {
		return nil
	}
	var out []*message
	for m := s.ready.top().first; m != nil && !m.hidden && len(out) < n; m = m.next {
		out = append(out, m)
	}
	return out
}
