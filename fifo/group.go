package fifo

import (
	"slices"
	"sync"
	"time"
)

// group is the events of one MessageGroupId that are accepted and not yet answered, in their order. At most its head is
// in a request.
//
// Two of them in requests at once break the order even where nothing fails, since requests overtake each other, and two
// in one request break it when the first entry fails and the second does not.
//
// A group is in one of three states: its head is in a lane's ready list, in flight, or backing off.
type group struct {
	id      string
	entries []*entry
	backoff *time.Timer // set while the head backs off
}

func (g *group) head() *entry { return g.entries[0] }

// groups holds the groups that have entries. It belongs to the publisher's mutex.
type groups struct {
	ordered bool // false: a standard queue, where each entry is a group of its own
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

// ready puts the group into its head's lane, or forgets it where it is empty. The group must be in none of its states.
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

// detach takes a group out of its state.
func (gs *groups) detach(g *group) {
	switch {
	case g.head().inFlight:
		g.head().inFlight = false
	case g.backoff != nil:
		g.backoff.Stop()
		g.backoff = nil
	default:
		g.head().lane.unready(g)
	}
}

// remove takes out an entry. Those behind it move up.
func (gs *groups) remove(e *entry) {
	g := e.group
	if e != g.head() {
		g.entries = slices.DeleteFunc(g.entries, func(other *entry) bool { return other == e })
		return
	}
	gs.detach(g)
	g.entries = slices.Delete(g.entries, 0, 1)
	gs.ready(g)
}

// halt takes out the head and everything behind it, and returns what was behind.
func (gs *groups) halt(head *entry) []*entry {
	g := head.group
	gs.detach(g)
	followers := slices.Clone(g.entries[1:])
	g.entries = nil
	gs.ready(g)
	return followers
}

// retry has the head, which was in flight, ready again after d, and calls then.
func (gs *groups) retry(head *entry, d time.Duration, mu sync.Locker, then func()) {
	g := head.group
	gs.detach(g)
	if d <= 0 {
		head.due = time.Now()
		gs.ready(g)
		return
	}
	var t *time.Timer
	t = time.AfterFunc(d, func() {
		mu.Lock()
		defer mu.Unlock()
		// Between the timer and the lock the head may have been removed, and the next one may be backing off.
		if g.backoff != t {
			return
		}
		g.backoff = nil
		head.due = time.Now()
		gs.ready(g)
		then()
	})
	g.backoff = t
}
