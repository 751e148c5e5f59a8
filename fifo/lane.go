package fifo

import (
	"cmp"
	"container/list"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
)

// lane is the entries of one caller. Publish and Enqueue share one lane. Each [Lane] and each call of PublishAll has its own,
// because its entries get their results when its context ends. A request takes entries of all lanes. A lane belongs to the
// publisher's mutex.
type lane struct {
	ctx       context.Context // of the caller; when it ends, no entry of the lane is sent again
	base      context.Context // of the publisher: the same
	linger    time.Duration
	flush     bool                        // no linger
	opened    bool                        // by openUserLane: see gather and failed
	closed    bool                        // no entry comes any more
	entries   map[*entry]struct{}         // without a result
	unread    map[*PublishResult]struct{} // failed, not those of the shared lane: what is unread there is in failures
	answering []*PublishResult            // have a result, and its hooks may run; not those of the shared lane
	ready     list.List                   // of *group, whose heads are of this lane: the longest ready first
	place     *list.Element               // in ready.lanes, while a group is ready
}

func newLane(ctx, base context.Context, linger time.Duration) *lane {
	return &lane{ctx: ctx, base: base, linger: linger, entries: make(map[*entry]struct{})}
}

// why returns the cause of the lane's end, or nil.
func (l *lane) why() error {
	if err := context.Cause(l.base); err != nil {
		return err
	}
	return foreign(context.Cause(l.ctx))
}

func (l *lane) hasEnded() bool { return l.why() != nil }

// unfinished returns the lane's entries without a result, in the order they were accepted.
func (l *lane) unfinished() []*entry {
	return slices.SortedFunc(maps.Keys(l.entries), func(a, b *entry) int { return cmp.Compare(a.serial, b.serial) })
}

// forgetLane forgets a lane that is closed and has no entry. The caller holds the lock.
func (p *Publisher) forgetLane(l *lane) {
	if l.closed && len(l.entries) == 0 {
		delete(p.lanes, l)
	}
}

// ready is the groups whose heads may be sent. The lanes take turns: a call of PublishAll does not wait for all that
// Enqueue has accepted. It belongs to the publisher's mutex.
type ready struct {
	lanes list.List // of *lane that have ready groups
	n     int       // groups
}

func (r *ready) add(g *group) {
	l := g.head().lane
	g.place = l.ready.PushBack(g)
	if l.place == nil {
		l.place = r.lanes.PushBack(l)
	}
	r.n++
}

func (r *ready) remove(g *group) {
	l := g.head().lane
	l.ready.Remove(g.place)
	g.place = nil
	r.n--
	if l.ready.Len() == 0 {
		r.lanes.Remove(l.place)
		l.place = nil
	}
}

// due returns when there is a request to send, or false if there is nothing to send.
func (r *ready) due(now time.Time, flush bool) (time.Time, bool) {
	if r.n == 0 {
		return time.Time{}, false
	}
	if flush || r.n >= host.MaxBatch {
		return now, true
	}
	var first time.Time
	size := int64(0)
	for turn := r.lanes.Front(); turn != nil; turn = turn.Next() {
		l := turn.Value.(*lane)
		if l.flush {
			return now, true
		}
		for g := l.ready.Front(); g != nil; g = g.Next() {
			head := g.Value.(*group).head()
			if size += head.messageSize(); first.IsZero() || head.due.Before(first) {
				first = head.due
			}
		}
	}
	if size > maxMessageBytes-batchMargin { // nothing else fits
		return now, true
	}
	return first, true
}

// take returns the entries of the next request, each of another group. Their groups are in flight.
func (gs *groups) take() (batch []*entry) {
	r := &gs.ready
	size := int64(0)
	for r.n > 0 && len(batch) < host.MaxBatch {
		l := r.lanes.Front().Value.(*lane)
		g := l.ready.Front().Value.(*group)
		head := g.head()
		if size += head.messageSize(); len(batch) > 0 && size > maxMessageBytes-batchMargin {
			break
		}
		if l.hasEnded() {
			gs.enter(g, groupLeft)
		} else {
			gs.enter(g, groupInFlight)
			batch = append(batch, head)
		}
		if l.place != nil {
			r.lanes.MoveToBack(l.place)
		}
	}
	return batch
}
