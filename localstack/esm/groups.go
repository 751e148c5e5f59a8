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

// groups keeps a FIFO group in one invocation at a time, and its messages in order.
//
// SQS itself gives out nothing of a group that has messages in flight, which is enough most of the time. It is not where
// visibility ends while the function runs (the function made it 0), nor where one receive brought more than fits into
// one event: then two batches hold messages of one group, and the second waits for the first. If the first failed, the
// second must not run either, or m2 would overtake m1:
//
//	one receive brings m1 and m2, too large for one event
//	[m1] is invoked and fails; m1 comes back in 30 s
//	[m2] is next: invoked now, it would be done before m1
//
// So what was received before a failure of its group was known is left to its visibility timeout, as the failed message
// is. What is received later is in order: SQS delivers the failed message first.
type groups struct {
	receives *counter

	mu     sync.Mutex
	last   map[string]*turn
	failed map[string]int64 // the last receive before the group's failure was known
}

// turn is a batch's turn in a group.
type turn struct {
	before *turn // the batch to wait for; nil if none
	done   chan struct{}
}

func newGroups(receives *counter) *groups {
	return &groups{receives: receives, last: map[string]*turn{}, failed: map[string]int64{}}
}

// enter queues a batch in the groups of its records. Batches must enter in the order in which they were received.
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

// wait returns the records that may be invoked, once no other batch has a message of their groups in an invocation. Waits
// do not form a circle: a batch waits only for batches that entered before it.
func (g *groups) wait(turns map[string]*turn, records []record) (ready []record) {
	for _, t := range turns {
		if t.before != nil {
			<-t.before.done
			t.before = nil // or turns would keep all turns before them in memory
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

// leave ends a batch's turns. left are the records of the batch that were not deleted.
func (g *groups) leave(turns map[string]*turn, left []record) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, t := range turns {
		if slices.ContainsFunc(left, func(r record) bool { return r.group == name }) {
			g.failed[name] = g.receives.last()
		} else {
			delete(g.failed, name) // nothing older can be left: it would have entered before this batch
		}
		if g.last[name] == t {
			delete(g.last, name)
		}
		close(t.done)
	}
}
