package outboxmodel

import (
	"strconv"
	"strings"
)

// Step is one step of a run, for its trace.
type Step struct {
	Kind  Kind
	Relay uint8 // from 0
	Event Set   // one, but for what a statement returned
}

// Kind is what a step does.
type Kind uint8

const (
	begins Kind = iota
	commits
	rollsBack
	applies
	putsAgain
	deletes
	deletesUpTo
	passes
	expires
	unparks
	unparksSkipped
	discards
	forgets
	arrivesLate
	parksLate
	crashes
	givesUp
	getsRecord
	readsEvent
	readsNone
	readsList
	findsEvent
	findsNone
	findsList
	probesGone
	probesThere
	probeCancelled
	sends
	arrives
	refuses
	confirms
	learnsRefusal
	parks
	parksNot
)

// kinds has the words of each kind, and whether an undisturbed relay and a database that works make such steps.
var kinds = [...]struct {
	text string // {e}: the event, {r}: the relay
	fair bool
}{
	begins:         {"event {e} is inserted, not committed", false},
	commits:        {"event {e} is committed", false},
	rollsBack:      {"event {e} is rolled back", false},
	applies:        {"event {e} is visible", true},
	putsAgain:      {"a late copy of its transaction puts event {e} again", false},
	deletes:        {"a delete of event {e} arrives", true},
	deletesUpTo:    {"a delete up to event {e} arrives", true},
	passes:         {"the cursor moves to event {e}", true},
	expires:        {"the TTL deletes event {e}", false},
	unparks:        {"an operator unparks event {e}", true},
	unparksSkipped: {"an operator unparks the skipped event {e}", false},
	discards:       {"an operator discards event {e}", false},
	forgets:        {"SQS forgets event {e}", false},
	arrivesLate:    {"a late copy of event {e} arrives", false},
	parksLate:      {"a late write parks event {e}", false},
	crashes:        {"relay {r} crashes", false},
	givesUp:        {"relay {r} gives up its visit", false},
	getsRecord:     {"relay {r} gets the stream record of event {e}", true},
	readsEvent:     {"relay {r} reads event {e}", true},
	readsNone:      {"relay {r} reads no event {e}", true},
	readsList:      {"relay {r} reads events: {e}", true},
	findsEvent:     {"relay {r} finds event {e}", true},
	findsNone:      {"relay {r} finds no event {e}", true},
	findsList:      {"relay {r} finds events: {e}", true},
	probesGone:     {"relay {r} probes event {e}: absent", true},
	probesThere:    {"relay {r} probes event {e}: there", true},
	probeCancelled: {"relay {r} probes event {e}: a transaction is in progress", true},
	sends:          {"relay {r} sends event {e}", true},
	arrives:        {"event {e} of relay {r} arrives", true},
	refuses:        {"SQS refuses event {e} of relay {r}", false},
	confirms:       {"relay {r} has the success for event {e}", true},
	learnsRefusal:  {"relay {r} has the refusal of event {e}", false},
	parks:          {"relay {r} parks event {e}", false},
	parksNot:       {"relay {r} does not park event {e}: it is gone, or parked", false},
}

func (s Step) String() string {
	var events []string
	s.Event.each(func(e Set) { events = append(events, strconv.Itoa(e.index()+1)) })
	if events == nil {
		events = []string{"none"}
	}
	return strings.NewReplacer("{e}", strings.Join(events, ", "), "{r}", strconv.Itoa(int(s.Relay)+1)).Replace(kinds[s.Kind].text)
}

// next calls emit with each step that is possible in s, and the state after it.
func (r *Run) next(s State, emit func(Step, State)) {
	m := stepper{r, emit}
	m.transactions(s)
	m.outbox(s)
	m.operator(s)
	for relay := range r.Relays {
		for g := range r.groups() {
			m.visit(s, relay, g)
		}
		m.crash(s, relay)
	}
	m.network(s)
}

type stepper struct {
	*Run
	to func(Step, State)
}

func (r *Run) groups() int { return max(r.Groups, 1) }

// group returns the events of a group. Groups take turns, so that serials of SQL go over all of them.
func (r *Run) group(g int) (events Set) {
	for i := g; i < r.Events; i += r.groups() {
		events |= 1 << i
	}
	return events
}

// before returns the event of the seq before e's in its group; empty: e is the group's first.
func (r *Run) before(e Set) Set { return e >> r.groups() }

// transactions are the steps of the writers and of the database.
func (m stepper) transactions(s State) {
	(s.decided &^ s.visible).each(func(e Set) {
		t := s
		t.visible |= e
		m.to(Step{Kind: applies, Event: e}, t)
	})
	if m.SQL {
		m.sqlTransactions(s)
		return
	}
	for g := range m.groups() {
		group := m.group(g)
		e := (group &^ s.decided).lowest()
		if e == 0 || m.SeqsRestart && s.decided&group&^s.gone != 0 {
			continue
		}
		m.to(Step{Kind: commits, Event: e}, m.commit(s, e, m.AtOnce))
	}
	if m.PutsAgain {
		(s.decided & s.gone).each(func(e Set) {
			t := s
			t.gone &^= e
			m.to(Step{Kind: putsAgain, Event: e}, t)
		})
	}
}

func (m stepper) sqlTransactions(s State) {
	s.open().each(func(e Set) {
		m.to(Step{Kind: commits, Event: e}, m.commit(s, e, !m.EarlyUnlock))
		t := s
		t.rolled |= e
		m.to(Step{Kind: rollsBack, Event: e}, t)
	})
	// The next serial, of all groups.
	e := s.begun + 1
	if e.index() >= m.Events || !m.NoLock && s.open().has(m.group(e.index()%m.groups())) {
		return
	}
	t := s
	t.begun |= e
	m.to(Step{Kind: begins, Event: e}, t)
}

func (m stepper) commit(s State, e Set, visible bool) State {
	if !m.Unordered {
		s.earlier[e.index()] = s.decided & m.group(e.index()%m.groups())
	}
	s.decided |= e
	if visible {
		s.visible |= e
	}
	return s
}

// outbox are the deletes, wanted or not. A relay that has a success may delete now, later, or never.
func (m stepper) outbox(s State) {
	may := s.confirmed
	if m.DeleteFirst {
		may |= s.wire
	}
	may.each(func(e Set) {
		t, k := s, deletes
		switch {
		case m.Cursor:
			k = passes
			t.remove(e.upTo()) // also those that are committed later
		case m.RangeDelete:
			k = deletesUpTo
			t.remove(s.there() & e.upTo())
		case m.SeqsRestart:
			t.remove(s.there() & m.group(0)) // each of them has seq 1
		default:
			t.remove(s.there() & e)
		}
		if t.gone != s.gone {
			m.to(Step{Kind: k, Event: e}, t)
		}
	})
	if m.TTL {
		s.there().each(func(e Set) {
			t := s
			t.remove(e)
			m.to(Step{Kind: expires, Event: e}, t)
		})
	}
}

func (m stepper) operator(s State) {
	(s.halted | s.skipped).each(func(e Set) {
		t := s
		t.halted &^= e
		t.skipped &^= e
		k := unparks
		if s.skipped.has(e) {
			k = unparksSkipped
		}
		m.to(Step{Kind: k, Event: e}, t)
		if !m.NoDiscard {
			t.left |= e
			t.remove(e)
			m.to(Step{Kind: discards, Event: e}, t)
		}
	})
}

// network is what arrives without anybody waiting for it, and what SQS forgets.
func (m stepper) network(s State) {
	s.wire.each(func(e Set) {
		if dropped, t := m.arrive(s, e); !dropped {
			m.to(Step{Kind: arrivesLate, Event: e}, t)
		}
	})
	s.parkSent.each(func(e Set) {
		m.park(s, e, func(t State, _ bool) { m.to(Step{Kind: parksLate, Event: e}, t) })
	})
	if !m.Remembers {
		s.remembered.each(func(e Set) {
			t := s
			t.remembered &^= e
			m.to(Step{Kind: forgets, Event: e}, t)
		})
	}
}

// arrive is an event that comes to the queue and is not refused.
func (m stepper) arrive(s State, e Set) (dropped bool, t State) {
	if s.remembered.has(e) {
		if !m.FreshDedupIDs {
			return true, s
		}
		s.twice |= e
	}
	s.accepted |= e
	s.remembered |= e
	return false, s
}

// park is the conditional write of R3. It calls done with each state that it may lead to, and whether the event is left out in it; if
// the condition refuses the write, park returns false.
func (m stepper) park(s State, e Set, done func(t State, skipped bool)) bool {
	if !m.BlindPark && (!s.there().has(e) || (s.halted | s.skipped).has(e)) {
		return false
	}
	s.gone &^= e
	if m.OnRefusal != Skip {
		t := s
		t.halted |= e
		done(t, false)
	}
	if m.OnRefusal != Halt {
		t := s
		t.skipped |= e
		t.left |= e
		done(t, true)
	}
	return true
}

// crash ends all visits of a relay at once, and what it knew. A relay of one group has that in giving up.
func (m stepper) crash(s State, relay int) {
	if m.groups() == 1 && !m.OwnConfirmation {
		return
	}
	t := s
	clear(t.visits[relay*m.groups() : (relay+1)*m.groups()])
	if t != s {
		m.to(Step{Kind: crashes, Relay: uint8(relay)}, t)
	}
}
