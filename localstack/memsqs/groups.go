package memsqs

// groups is the shelf of a FIFO queue. A message may be handed out while it and every message before it in its group is
// visible: one that is in flight or delayed holds back all that follow it in the group, and nothing else.
type groups struct {
	byID  map[string]*group
	ready line[*group] // groups whose first message is visible, by that message's place in the queue
}

// group is a message group: its messages, oldest first, visible or not.
type group struct {
	id          string
	first, last *message
	order       uint64 // of the first message, while in ready
	readyAt     int
}

func newGroups() *groups {
	return &groups{byID: map[string]*group{}, ready: line[*group]{heap: heap[*group]{
		less:  func(a, b *group) bool { return a.order < b.order },
		place: func(g *group) *int { return &g.readyAt },
	}}}
}

func (s *groups) add(m, before *message) {
	g := s.byID[m.group]
	if g == nil {
		g = &group{id: m.group}
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

func (s *groups) remove(m *message) {
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

func (s *groups) changed(m *message) { s.refresh(m.in) }

// refresh puts the group in its place among the receivable ones, or takes it out.
func (s *groups) refresh(g *group) {
	if g.first == nil || g.first.hidden {
		s.ready.remove(g)
		return
	}
	if s.ready.has(g) && g.order == g.first.order {
		return
	}
	s.ready.remove(g)
	g.order = g.first.order
	s.ready.push(g)
}

// pick returns as many messages of one group as fit: AWS fills a receive from one group before it takes the next.
func (s *groups) pick(n int) []*message {
	if s.ready.len() == 0 {
		return nil
	}
	var out []*message
	for m := s.ready.top().first; m != nil && !m.hidden && len(out) < n; m = m.next {
		out = append(out, m)
	}
	return out
}
