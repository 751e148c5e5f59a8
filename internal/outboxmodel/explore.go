package outboxmodel

import "slices"

// Result is what Explore has found.
type Result struct {
	States   int // different ones
	Depth    int // steps to the farthest of them
	Complete bool
	Kinds    uint64 // a bit for each Kind of step that was made
	Fault    Fault
	Trace    []Step // the shortest to the fault, if kept
}

// Explore searches all states of a run, the nearest first, until it finds a fault or there are more than limit. The trace is
// kept only if keep is set: it takes more memory.
func (r *Run) Explore(limit int, keep bool) Result {
	e := explorer{Run: r, keep: keep, level: []State{{}}}
	e.seen.add(e.level[0].hash(r.Relays, r.groups()))
	e.nodes = []node{{}}
	for len(e.level) > 0 && e.Fault == None {
		e.deeper = nil
		for i, s := range e.level {
			r.next(s, func(step Step, t State) { e.visit(int32(e.first+i), s, step, t) })
			if e.Fault != None || e.seen.len > limit {
				e.States = e.seen.len
				return e.Result
			}
		}
		e.first += len(e.level)
		e.level = e.deeper
		if len(e.level) > 0 {
			e.Depth++
		}
	}
	e.States, e.Complete = e.seen.len, true
	return e.Result
}

type explorer struct {
	*Run
	Result
	seen          hashes
	level, deeper []State
	first         int // the number of the first state of level
	keep          bool
	nodes         []node // by the number of the state
}

type node struct {
	from int32
	step Step
}

func (e *explorer) visit(from int32, s State, step Step, t State) {
	if e.Fault != None {
		return
	}
	e.Kinds |= 1 << step.Kind
	fault := e.judge(&s, &t)
	h := t.hash(e.Relays, e.groups())
	if fault == None {
		if !e.seen.add(h) {
			return
		}
		e.deeper = append(e.deeper, t)
		if e.keep {
			e.nodes = append(e.nodes, node{from, step})
		}
		if (e.seen.len > tried && h%16 != 0) || e.drains(t) {
			return
		}
		fault = Stuck
	}
	e.Fault = fault
	if !e.keep {
		return
	}
	e.Trace = []Step{step}
	for n := from; n != 0; n = e.nodes[n].from {
		e.Trace = append(e.Trace, e.nodes[n].step)
	}
	slices.Reverse(e.Trace)
}

// judge says what is wrong with the step from s to t.
func (r *Run) judge(s, t *State) Fault {
	accepted := t.accepted &^ s.accepted
	switch {
	case accepted&^t.decided != 0:
		return Invented
	case accepted != 0 && t.earlier[accepted.index()]&^s.accepted&^t.left != 0:
		return Reordered
	case t.twice != 0:
		return Doubled
	case t.decided&t.gone&^t.accepted&^t.left != 0:
		return Lost
	case s.gone&^t.gone != 0:
		return Resurrected
	}
	return None
}

// tried is how many states of a run are all tried by drains. Of the others it is one in 16.
const tried = 100_000

// drains reports whether the outbox is emptied from s on if nothing disturbs it any more: transactions that are decided become
// visible, the relays begin anew, deletes arrive, an operator unparks what halts. Skipped events stay. It is the check that something
// still happens; what must not happen is judge's.
func (r *Run) drains(s State) bool {
	clear(s.visits[:])
	for g := range r.groups() {
		for range 200 {
			if s.decided&r.group(g)&^s.gone&^s.skipped == 0 {
				break
			}
			fair := false
			m := stepper{r, func(step Step, t State) {
				if !fair && kinds[step.Kind].fair {
					fair, s = true, t
				}
			}}
			at := s
			m.transactions(at)
			m.outbox(at)
			m.operator(at)
			m.visit(at, 0, g)
			if !fair {
				return false
			}
		}
		if s.decided&r.group(g)&^s.gone&^s.skipped != 0 {
			return false
		}
	}
	return true
}

// hashes is a set of hashes of states: a table with open addressing, which is never more than three quarters full.
type hashes struct {
	table []uint64
	len   int
}

// add reports whether h is new.
func (s *hashes) add(h uint64) bool {
	if h == 0 {
		h = 1 // 0 is a free place
	}
	if 4*s.len >= 3*len(s.table) {
		s.grow()
	}
	if !s.insert(h) {
		return false
	}
	s.len++
	return true
}

func (s *hashes) insert(h uint64) bool {
	mask := uint64(len(s.table) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		switch s.table[i] {
		case 0:
			s.table[i] = h
			return true
		case h:
			return false
		}
	}
}

func (s *hashes) grow() {
	old := s.table
	s.table = make([]uint64, max(1<<16, 2*len(old)))
	for _, h := range old {
		if h != 0 {
			s.insert(h)
		}
	}
}
