package fifo

import (
	"slices"
	"sync"
	"time"
)

// group is the entries of one MessageGroupId, in their order. On a standard queue each entry has a group of its own. Only
// the head, its first entry, may be in flight.
//
// Two entries of a group in two requests would lose the order even without a failure, since requests overtake each other.
// Two entries in one request would lose it when SQS refuses the first and accepts the second.
//
// A group with entries is in one of three states: it is in the ready list of its head's lane, its head is in flight, or
// its head waits for the end of a backoff.
type group struct {
	id      string
	entries []*entry
	backoff *time.Timer // set while the head waits for it
}

func (g *group) head() *entry { return g.entries[0] }

// groups has the groups that have entries. It belongs to the publisher's mutex.
type groups struct {
	ordered bool // false: a standard queue
	byID    map[string]*group
}

func newGroups(ordered bool) groups {
	return groups{ordered: ordered, byID: make(map[string]*group)}
}

// add appends an entry to its group.
func (gs *groups) add(e *entry, id string) {
	g := gs.byID[id]
	if g == nil || !gs.ordered {
		g = &group{id: id}
		if gs.ordered {
			gs.byID[id] = g
		}
	}
	e.group = g
	g.entries = append(g.entries, e)
	if len(g.entries) == 1 {
		gs.ready(g)
	}
}

// ready puts a group, which must be in none of the states, into the ready list of its head's lane. An empty group is
// forgotten.
func (gs *groups) ready(g *group) {
	if len(g.entries) == 0 {
		if gs.byID[g.id] == g {
			delete(gs.byID, g.id)
		}
		return
	}
	l := g.head().lane
	l.ready = append(l.ready, g)
}

// leaveState ends the group's state, whichever it is.
func (gs *groups) leaveState(g *group) {
	switch {
	case g.head().inFlight:
		g.head().inFlight = false
	case g.backoff != nil:
		g.backoff.Stop()
		g.backoff = nil
	default:
		g.head().lane.removeReady(g)
	}
}

// remove removes an entry. Those behind it move up.
func (gs *groups) remove(e *entry) {
	g := e.group
	if e != g.head() {
		g.entries = slices.DeleteFunc(g.entries, func(other *entry) bool { return other == e })
		return
	}
	gs.leaveState(g)
	g.entries = slices.Delete(g.entries, 0, 1)
	gs.ready(g)
}

// halt removes the head and all entries behind it, and returns those behind it.
func (gs *groups) halt(head *entry) []*entry {
	g := head.group
	gs.leaveState(g)
	followers := slices.Clone(g.entries[1:])
	g.entries = nil
	gs.ready(g)
	return followers
}

// retry makes the head, which was in flight, ready again after d, and then calls f.
func (gs *groups) retry(head *entry, d time.Duration, mu sync.Locker, f func()) {
	g := head.group
	gs.leaveState(g)
	if d <= 0 {
		head.due = time.Now()
		gs.ready(g)
		return
	}
	var t *time.Timer
	t = time.AfterFunc(d, func() {
		mu.Lock()
		defer mu.Unlock()
		// While this function waited for the lock, the head may have been removed, and the next one may wait for a backoff.
		if g.backoff != t {
			return
		}
		g.backoff = nil
		head.due = time.Now()
		gs.ready(g)
		f()
	})
	g.backoff = t
}
