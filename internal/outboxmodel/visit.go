package outboxmodel

// visitor is one relay's visit of one group.
type visitor struct {
	stepper
	s         State
	v         Visit
	relay, at int
	group     Set
}

// visit are the steps that a relay can make for a group. What others do meanwhile comes between any two of them.
func (m stepper) visit(s State, relay, g int) {
	at := relay*m.groups() + g
	r := visitor{m, s, s.visits[at], relay, at, m.Run.group(g)}
	switch r.v.phase {
	case idle:
		r.begin()
	case tail:
		r.readTail()
	case finding, reading:
		r.read()
	case probing:
		r.probe()
	case ready:
		r.send()
	case waiting:
		r.arrives()
	case answered:
		r.confirm()
	case refused:
		r.refusal()
	case parking:
		r.parks()
	}
	if r.v.phase != idle {
		r.becomes(givesUp, 0, r.end())
	}
}

// becomes emits a step that changes nothing but this visit.
func (r *visitor) becomes(k Kind, e Set, v Visit) { r.emit(k, e, v, r.s) }

// emit emits a step to t, where this visit is v.
func (r *visitor) emit(k Kind, e Set, v Visit, t State) {
	t.visits[r.at] = v
	r.to(Step{Kind: k, Relay: uint8(r.relay), Event: e}, t)
}

// end returns the visit between two visits: a relay forgets what it has read, not what it has confirmed.
func (r *visitor) end() Visit { return Visit{own: r.v.own} }

// without returns the visit that goes on behind the event e.
func (r *visitor) without(e Set) Visit {
	v := r.v
	v.phase, v.list = ready, v.list&^e
	if v.list == 0 {
		return Visit{own: v.own}
	}
	return v
}

// begin makes the first step of a read. An idle relay may begin at any time, also before the first commit.
func (r *visitor) begin() {
	r.v.todo = r.group
	switch {
	case r.Payloads:
		// New ones, and again those of events that are gone.
		record := func(e Set) { r.becomes(getsRecord, e, Visit{phase: ready, list: e, own: r.v.own}) }
		(r.s.there() & r.group).each(record)
		(r.s.gone & r.group).each(record)
	case r.TailFirst:
		r.v.phase = tail
		r.readTail()
	case r.SQL && !r.OneRead:
		r.v.phase = finding
		r.read()
	default:
		r.v.phase = reading
		r.read()
	}
	r.v.phase = idle
}

// readTail looks for the group's last event, from the end.
func (r *visitor) readTail() {
	e := r.v.todo.highest()
	v := r.v
	if r.s.there().has(e) {
		v.phase, v.todo = reading, r.group&e.upTo()
		r.becomes(findsEvent, e, v)
		return
	}
	v.todo &^= e
	if v.todo == 0 {
		v = r.end()
	}
	r.becomes(findsNone, e, v)
}

func (r *visitor) read() {
	switch {
	case r.SQL && r.Snapshot:
		v := r.v
		v.list, v.todo = r.readable()&v.todo, 0
		k := readsList
		if v.phase == finding {
			k = findsList
		}
		r.becomes(k, v.list, r.hasRead(v))
	case r.SQL:
		// Whether the statement shows a row is decided for one transaction after the other, in no order.
		r.v.todo.each(func(e Set) { r.look(e, r.readable()) })
	case r.Stale:
		// Each item as it was at any time since it was put; also a deleted one.
		e := r.v.todo.lowest()
		if r.s.visible.has(e) {
			r.look(e, e)
		}
		r.look(e, 0)
	default:
		r.look(r.v.todo.lowest(), r.s.there())
	}
}

// readable are the rows that a statement of SQL would return now.
func (r *visitor) readable() Set {
	there := r.s.there()
	if r.Uncommitted {
		there |= r.s.open()
	}
	if r.SkipLocked {
		for i, v := range r.s.visits {
			if i != r.at {
				there &^= v.list
			}
		}
	}
	return there
}

// look is the step in which the read passes the event e.
func (r *visitor) look(e, there Set) {
	v := r.v
	v.todo &^= e
	k, none := readsEvent, readsNone
	if v.phase == finding {
		k, none = findsEvent, findsNone
	}
	switch {
	case !there.has(e):
		k = none
		if r.endsAtGap(v) {
			v.todo = 0
		}
	case r.s.halted.has(e):
		v.todo = 0
	default:
		v.list |= e
		v.skip |= e & r.s.skipped
	}
	if v.todo == 0 {
		v = r.hasRead(v)
	}
	r.becomes(k, e, v)
}

// endsAtGap reports whether a gap ends the list (D1). Skipped events stay when later ones are gone: behind them alone there is none.
func (r *visitor) endsAtGap(v Visit) bool {
	switch {
	case r.SQL, r.SendsGaps:
		return false
	case r.SkippedBegin:
		return v.list != 0
	}
	return v.list&^v.skip != 0
}

// hasRead returns the visit after its statement has returned v.list.
func (r *visitor) hasRead(v Visit) Visit {
	if v.list&^v.skip == 0 {
		return r.end()
	}
	if v.phase == finding {
		// S1: the rows to send come out of a statement that begins after this one.
		return Visit{phase: reading, todo: r.group & v.list.upTo(), own: v.own}
	}
	before := r.before((v.list &^ v.skip).lowest())
	settled := v.own | v.skip // the mark of a skipped event says that all before it is confirmed or left out
	v = Visit{phase: ready, list: v.list &^ v.skip, own: v.own}
	if r.WaitsAtGaps {
		if before&^r.s.confirmed != 0 {
			return r.end()
		}
		run := v.list.lowest()
		for v.list.has(run.highest() << r.groups()) {
			run |= run.highest() << r.groups()
		}
		v.list = run
	}
	if !r.SQL && r.Probe != NoProbe && !r.SeqsRestart && before&^settled != 0 {
		v.phase = probing
	}
	return v
}

// probe looks at the predecessor of the first event that was read (D2).
func (r *visitor) probe() {
	before := r.before(r.v.list.lowest())
	switch {
	case r.s.there().has(before):
		r.becomes(probesThere, before, r.end())
	case r.Probe == Transactional && (r.s.decided &^ r.s.visible).has(before):
		r.becomes(probeCancelled, before, r.end())
	default:
		r.becomes(probesGone, before, Visit{phase: ready, list: r.v.list, own: r.v.own})
	}
}

func (r *visitor) send() {
	e := r.v.list.lowest()
	v, t := r.v, r.s
	v.phase = waiting
	t.wire |= e
	if r.Pairs {
		t.wire |= (v.list &^ e).lowest()
	}
	r.emit(sends, e, v, t)
}

// arrives is the request that this relay waits for; copies of it arrive in network.
func (r *visitor) arrives() {
	e := r.v.list.lowest()
	v := r.v
	v.phase = answered
	dropped, t := r.arrive(r.s, e)
	r.emit(arrives, e, v, t)
	if !dropped && r.Refuses.has(e) {
		v.phase = refused
		r.becomes(refuses, e, v)
	}
	if r.UnknownIsSent {
		t := r.s
		t.confirmed |= e
		r.emit(givesUp, e, r.without(e), t)
	}
}

func (r *visitor) confirm() {
	e := r.v.list.lowest()
	v, t := r.without(e), r.s
	t.confirmed |= e
	if r.OwnConfirmation {
		v.own |= e.upTo() & r.group
	}
	r.emit(confirms, e, v, t)
}

func (r *visitor) refusal() {
	e := r.v.list.lowest()
	if r.PassesRefusals {
		r.becomes(learnsRefusal, e, r.without(e))
		return
	}
	v, t := r.v, r.s
	v.phase = parking
	t.parkSent |= e
	r.emit(learnsRefusal, e, v, t)
}

// parks is the answer to the write that parks: R4, and P5 if the condition refuses it.
func (r *visitor) parks() {
	e := r.v.list.lowest()
	written := r.park(r.s, e, func(t State, skipped bool) {
		if skipped {
			r.emit(parks, e, r.without(e), t)
		} else {
			r.emit(parks, e, r.end(), t)
		}
	})
	if !written {
		r.becomes(parksNot, e, r.end())
	}
}
