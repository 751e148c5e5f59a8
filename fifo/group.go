package fifo

import (
	"container/list"
	"time"
)

// group is the entries of one MessageGroupId, in their order. On a standard queue each entry has a group of its own. Only the
// head, its first entry, may be in flight.
//
// Two entries of a group in two requests would lose the order even without a failure, since requests overtake each other. Two
// entries in one request would lose it when SQS refuses the first and accepts the second.
//
// The head's progress is the group's state. Only enter changes it.
type group struct {
	id          string
	first, last *entry // a list, linked by entry.ahead and entry.behind

	state   groupState
	place   *list.Element // groupReady: in the list of the head's lane
	request *request      // groupInFlight
	backoff *time.Timer   // groupWaiting
}

type groupState int

const (
	groupEmpty    groupState = iota // there is no head: the group is forgotten
	groupReady                      // the head is to be sent
	groupLeft                       // the head's lane has ended: cancelLane, which is about to have the lock, ends it or hands it on
	groupInFlight                   // the head is in a request
	groupWaiting                    // the head waits for the end of a backoff
)

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
		gs.enter(g, groupReady)
	}
}

// enter changes a group's state. It is called before its head changes, to groupEmpty, and after that.
func (gs *groups) enter(g *group, to groupState) {
	switch g.state {
	case groupReady:
		gs.ready.remove(g)
	case groupInFlight:
		g.request = nil
	case groupWaiting:
		g.backoff.Stop()
		g.backoff = nil
	case groupEmpty, groupLeft:
	}
	g.state = to
	if to == groupReady {
		gs.ready.add(g)
	}
}

// next makes a group ready after its head has left it, or forgets it.
func (gs *groups) next(g *group) {
	switch {
	case g.head() != nil:
		gs.enter(g, groupReady)
	case gs.byID[g.id] == g:
		delete(gs.byID, g.id)
	}
}

// remove removes an entry. Those behind it move up.
func (gs *groups) remove(e *entry) {
	g := e.group
	if e != g.head() {
		g.unlink(e)
		return
	}
	gs.enter(g, groupEmpty)
	g.unlink(e)
	gs.next(g)
}

// halt removes the head and all entries behind it, and returns those behind it.
func (gs *groups) halt(head *entry) (followers []*entry) {
	g := head.group
	gs.enter(g, groupEmpty)
	for e := head.behind; e != nil; e = e.behind {
		followers = append(followers, e)
	}
	g.first, g.last = nil, nil
	gs.next(g)
	return followers
}

// hand gives the head to another lane.
func (gs *groups) hand(head *entry, l *lane) {
	g := head.group
	ready := g.state == groupReady || g.state == groupLeft
	if ready {
		gs.enter(g, groupLeft) // the list is the lane's
	}
	head.leaveLane()
	head.joinLane(l)
	if ready {
		gs.enter(g, groupReady)
	}
}

// retry has the head, which was in flight, sent again after d.
func (gs *groups) retry(head *entry, d time.Duration, p *Publisher) {
	g := head.group
	if d <= 0 {
		head.due = time.Now()
		gs.enter(g, groupReady)
		return
	}
	gs.enter(g, groupWaiting)
	var t *time.Timer
	t = time.AfterFunc(d, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		// While this function waited for the lock, the head may have been removed, and the next one may wait for a backoff.
		if g.backoff != t {
			return
		}
		head.due = time.Now()
		gs.enter(g, groupReady)
		p.dispatch()
	})
	g.backoff = t
}
