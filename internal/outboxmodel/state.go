package outboxmodel

import (
	"math/bits"
	"slices"
)

// The sizes of State. More events or relays make a run too long before they make it larger than this.
const (
	maxEvents = 4
	maxRelays = 3
	maxVisits = 4 // relays times groups
)

// Set is a set of events, by their place in the outbox: the bit i is the event i + 1.
type Set uint8

func (s Set) has(e Set) bool { return s&e != 0 }

// lowest returns the set of the lowest event of s alone.
func (s Set) lowest() Set { return s & -s }

func (s Set) highest() Set {
	if s == 0 {
		return 0
	}
	return 1 << (bits.Len8(uint8(s)) - 1)
}

// upTo returns all events that are not above the highest of s.
func (s Set) upTo() Set {
	if s == 0 {
		return 0
	}
	return s.highest()<<1 - 1
}

// each calls f with each event of s, lowest first.
func (s Set) each(f func(e Set)) {
	for ; s != 0; s &= s - 1 {
		f(s.lowest())
	}
}

// index returns the bit of the one event of s.
func (s Set) index() int { return bits.TrailingZeros8(uint8(s)) }

// State is one state of an outbox, its queue, the network and the relays.
type State struct {
	// The outbox. A transaction begins (SQL: it has its seq), is decided (committed) or rolled back, and its event is visible
	// from a later step on. What is visible and not gone is in the outbox.
	begun, decided, rolled, visible, gone Set
	halted, skipped                       Set // the marks of parked events
	// earlier has, for each committed event, the events of its group that were committed before it.
	earlier [maxEvents]Set
	// left are the events that were once left out: skipped, or discarded. Nothing waits for their acceptance.
	left Set

	// The queue. SQS drops what it remembers; it forgets after five minutes, so at any time.
	accepted, remembered Set
	twice                Set // accepted again while it was remembered

	// The network. What was once sent may arrive at any later time, any number of times, also after its sender's death.
	wire      Set // sends
	confirmed Set // deletes: a relay that has the success may delete at any time, or never
	parkSent  Set // the writes that park

	visits [maxVisits]Visit // of relay r and group g: r * Run.Groups + g
}

// Phase is how far a visit is.
type Phase uint8

const (
	idle     Phase = iota
	tail           // N6: looks for the group's last event, from its end
	finding        // S1: the statement that returns how far to read
	reading        // the read whose events are sent
	probing        // DynamoDB, D2: the list is read, its first event's predecessor is not known to be confirmed
	ready          // the lowest event of the list may be sent
	waiting        // it is sent
	answered       // SQS's success is on its way to the relay
	refused        // SQS's refusal is
	parking        // the write that parks it is sent
)

// Visit is what one relay knows of one group.
type Visit struct {
	phase Phase
	todo  Set // not yet looked at by the read
	list  Set // read, and not yet confirmed; the lowest is in flight
	skip  Set // while it reads: those of list that bear the mark of Skip
	// own are the events up to the highest that this relay has confirmed since its start. Only in runs with OwnConfirmation.
	own Set
}

// there returns the events that are in the outbox, for who sees its newest state.
func (s *State) there() Set { return s.visible &^ s.gone }

// open returns the transactions that have begun and have not ended.
func (s *State) open() Set { return s.begun &^ s.decided &^ s.rolled }

// remove takes an event out of the outbox, with its mark.
func (s *State) remove(events Set) {
	s.gone |= events
	s.halted &^= events
	s.skipped &^= events
}

// hash returns a number that states have in common if they differ by the order of the relays alone: relays are alike. Two other
// states have it in common with a probability of 2^-64.
func (s *State) hash(relays, groups int) uint64 {
	store := s.begun.at(0) | s.decided.at(1) | s.rolled.at(2) | s.visible.at(3) | s.gone.at(4) | s.halted.at(5) |
		s.skipped.at(6) | s.left.at(7) | s.accepted.at(8) | s.remembered.at(9) | s.twice.at(10) | s.wire.at(11) |
		s.confirmed.at(12) | s.parkSent.at(13)
	var order uint64
	for i, e := range s.earlier {
		order |= e.at(i)
	}
	var sorted [maxRelays]uint64
	for r := range relays {
		for _, v := range s.visits[r*groups : (r+1)*groups] {
			sorted[r] = sorted[r]<<20 | uint64(v.phase) | v.todo.at(1) | v.list.at(2) | v.skip.at(3) | v.own.at(4)
		}
	}
	slices.Sort(sorted[:relays])
	h := mix(store + 1)
	h = mix(h ^ order)
	for _, v := range sorted[:relays] {
		h = mix(h ^ v)
	}
	return h
}

// at puts s, of at most four events, into the nth four bits.
func (s Set) at(n int) uint64 { return uint64(s) << (4 * n) }

// mix is the finalizer of splitmix64: one to one, each bit of the result depends on each of x.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
