package memsqs

// standard is the shelf of a standard queue: all visible messages, oldest first, or nearly so.
type standard struct {
	server *Server
	ready  line[*message]
}

func newStandard(s *Server) *standard {
	return &standard{server: s, ready: line[*message]{heap: heap[*message]{
		less:  func(a, b *message) bool { return byTime(int64(a.order), int64(b.order), a.serial, b.serial) },
		place: func(m *message) *int { return &m.readyAt },
	}}}
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
