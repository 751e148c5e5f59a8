package esm

import (
	"slices"
	"sync"
	"sync/atomic"
)

// counter numbers receives.
type counter struct{ n atomic.Int64 }

func (c *counter) next() int64 { return c.n.Add(1) }

func (c *counter) last() int64 { return c.n.Load() }

// groups ensures that a FIFO group is in one invocation at a time and that its messages stay in order.
//
// SQS delivers no message of a group that has messages in flight, which is usually enough. It is not enough if the
// visibility timeout ends while the function runs (the function set it to 0), or if one receive returns more than one
// event can contain. Then two batches contain messages of one group, and the second batch waits for the first. If the
// first fails, the second must not be invoked, or m2 would overtake m1:
//
//	one receive returns m1 and m2, too large for one event
//	[m1] is invoked and fails; m1 becomes visible after 30 s
//	[m2] is next: if it is invoked now, it completes before m1
//
// So a message that was received before the mapping knew of a failure in its group is not invoked. It returns when its
// visibility timeout ends, like the failed message. Messages received later are in order: SQS delivers the failed message
// first.
type groups struct {
	receives *counter

	mu     sync.Mutex
	last   map[string]*turn
	failed map[string]int64 // number of the last receive before the group's failure was known
}

// turn is the turn of a batch in a group.
type turn struct {
	before *turn // the turn to wait for; nil if none
	done   chan struct{}
}

func newGroups(receives *counter) *groups {
	return &groups{receives: receives, last: map[string]*turn{}, failed: map[string]int64{}}
}

// enter adds a batch to the groups of its records. Batches must enter in the order in which they were received.
func (g *groups) enter(records []record) map[string]*turn {
	g.mu.Lock()
	defer g.mu.Unlock()
	turns := map[string]*turn{}
	for _, r := range records {
		if turns[r.group] == nil {
			t := &turn{before: g.last[r.group], done: make(chan struct{})}
			turns[r.group], g.last[r.group] = t, t
		}
	}
	return turns
}

// wait waits until no earlier batch has messages of the same groups, and returns the records that may be invoked. There is
// no deadlock: a batch waits only for batches that entered before it.
func (g *groups) wait(turns map[string]*turn, records []record) (ready []record) {
	for _, t := range turns {
		if t.before != nil {
			<-t.before.done
			t.before = nil // to free the memory of all turns before this one
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range records {
		if r.receive > g.failed[r.group] {
			ready = append(ready, r)
		}
	}
	return ready
}

// leave ends the turns of a batch. notDeleted are the records of the batch that were not deleted.
func (g *groups) leave(turns map[string]*turn, notDeleted []record) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, t := range turns {
		if slices.ContainsFunc(notDeleted, func(r record) bool { return r.group == name }) {
			g.failed[name] = g.receives.last()
		} else {
			delete(g.failed, name) // all older batches have left before this one
		}
		if g.last[name] == t {
			delete(g.last, name)
		}
		close(t.done)
	}
}
