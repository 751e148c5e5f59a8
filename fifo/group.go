package fifo

import (
	"container/list"
	"sync"
	"time"
)

// group is the entries of one MessageGroupId, in their order. On a standard queue each entry has a group of its own. Only
// the head, its first entry, may be in flight.
//
// Two entries of a group in two requests would lose the order even without a failure, since requests overtake each other.
// Two entries in one request would lose it when SQS refuses the first and accepts the second.
//
// A group with entries is in one of three states: its head is ready to be sent, is in flight, or waits for the end of a
// backoff.
type group struct {
	id          string
	first, last *entry        // a list, linked by entry.ahead and entry.behind
	place       *list.Element // in the ready list of the head's lane
	backoff     *time.Timer   // set while the head waits for it
}

func (g *group) head() *entry { return g.first }

func (g *group) push(e *entry) {
	e.group, e.ahead = g, g.last
	if g.last == nil {
		g.first = e
	} else {
		g.last.behind = e
	}
	g.last = e
}

func (g *group) unlink(e *entry) {
	if e.ahead == nil {
		g.first = e.behind
	} else {
		e.ahead.behind = e.behind
	}
	if e.behind == nil {
		g.last = e.ahead
	} else {
		e.behind.ahead = e.ahead
	}
	e.ahead, e.behind = nil, nil
}

// groups has the groups that have entries. It belongs to the publisher's mutex.
type groups struct {
	ordered bool // false: a standard queue
	byID    map[string]*group
	ready   ready
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
	g.push(e)
	if g.head() == e {
		gs.makeReady(g)
	}
}

// makeReady makes a group, which must be in none of the states, ready. An empty group is forgotten.
func (gs *groups) makeReady(g *group) {
	if g.head() == nil {
		if gs.byID[g.id] == g {
			delete(gs.byID, g.id)
		}
		return
	}
	gs.ready.add(g)
}

// leaveState ends the group's state, whichever it is.
func (gs *groups) leaveState(g *group) {
	switch {
	case g.head().inFlight():
		g.head().request = nil
	case g.backoff != nil:
		g.backoff.Stop()
		g.backoff = nil
	default:
		gs.ready.remove(g)
	}
}

// remove removes an entry. Those behind it move up.
func (gs *groups) remove(e *entry) {
	g := e.group
	if e != g.head() {
		g.unlink(e)
		return
	}
	gs.leaveState(g)
	g.unlink(e)
	gs.makeReady(g)
}

// halt removes the head and all entries behind it, and returns those behind it.
func (gs *groups) halt(head *entry) (followers []*entry) {
	g := head.group
	gs.leaveState(g)
	for e := head.behind; e != nil; e = e.behind {
		followers = append(followers, e)
	}
	g.first, g.last = nil, nil
	gs.makeReady(g)
	return followers
}

// hand gives the head to another lane.
func (gs *groups) hand(head *entry, l *lane) {
	g := head.group
	isReady := !head.inFlight() && g.backoff == nil
	if isReady {
		gs.ready.remove(g)
	}
	head.leaveLane()
	head.joinLane(l)
	if isReady {
		gs.ready.add(g)
	}
}

// retry makes the head, which was in flight, ready again after d, and then calls f.
func (gs *groups) retry(head *entry, d time.Duration, mu sync.Locker, f func()) {
	g := head.group
	gs.leaveState(g)
	if d <= 0 {
		head.due = time.Now()
		gs.makeReady(g)
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
		gs.makeReady(g)
		f()
	})
	g.backoff = t
}
