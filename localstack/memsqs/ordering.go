package memsqs

// shelf decides which visible messages may be handed out, and in which order: standard or fifo.
type shelf interface {
	// add puts m in the queue, at its end; before, if not nil, is the message it goes in front of.
	add(m, before *message)
	// remove takes m out of the queue.
	remove(m *message)
	// changed is called after m was hidden or shown.
	changed(m *message)
	// pick returns the first messages to hand out, at most n. It may return fewer while more remain, but returns none only
	// if there are none. It changes nothing.
	pick(n int) []*message
}

// standard is the shelf of a standard queue: all visible messages, oldest first, or nearly so.
type standard struct {
	server *Server
	ready  heap[*message]
}

func newStandard(s *Server) *standard {
	return &standard{server: s, ready: heap[*message]{
		less:  func(a, b *message) bool { return byTime(int64(a.order), int64(b.order), a.serial, b.serial) },
		place: func(m *message) *int { return &m.readyAt },
	}}
}

func (t *standard) add(m, before *message) {
	if before != nil {
		m.order = before.order
	}
	if n := t.server.opts.Reorder; n > 0 {
		m.order += t.server.rng.Uint64N(uint64(n) + 1)
	}
}

func (t *standard) remove(m *message) { t.ready.remove(m) }

func (t *standard) changed(m *message) {
	switch {
	case m.hidden:
		t.ready.remove(m)
	case !t.ready.has(m):
		t.ready.push(m)
	}
}

// pick returns one message: the caller asks again.
func (t *standard) pick(n int) []*message {
	if n < 1 || t.ready.len() == 0 {
		return nil
	}
	return []*message{t.ready.top()}
}

// groups is the shelf of a FIFO queue. A message may be handed out while it and every message before it in its group is
// visible: one that is in flight or delayed holds back all that follow it in the group, and nothing else.
type groups struct {
	byID  map[string]*group
	ready heap[*group] // groups whose first message is visible, by that message's place in the queue
}

// group is a message group: its messages, oldest first, visible or not.
type group struct {
	id          string
	first, last *message
	order       uint64 // of the first message, while in ready
	readyAt     int
}

func newGroups() *groups {
	return &groups{byID: map[string]*group{}, ready: heap[*group]{
		less:  func(a, b *group) bool { return a.order < b.order },
		place: func(g *group) *int { return &g.readyAt },
	}}
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
