package limit

import (
	"cmp"
	"container/heap"
	"container/list"
	"slices"
	"time"
)

// ticket is a message's place under one key.
type ticket struct {
	gate     *gate
	id       string // of the message where its host may hold it, else ""
	group    string
	receives int
	cost     int
	waited   bool          // it may have had its place in the line
	mayHold  bool          // its host can hold messages
	seq      uint64        // the order of receipt
	turn     chan struct{} // closed when the ticket is reserved; nil: nobody waits for that
	state    ticketState
	place    *list.Element // reserved: in gate.reserved
	until    time.Time     // reserved: it goes to the next ticket then
	times    time.Time     // the mean of its tokens' times
	good     time.Time     // when its tokens began to be good; zero: the bucket's
	slot     *slot         // of the counter
}

type ticketState uint8

const (
	waiting  ticketState = iota // in the line
	reserved                    // what it waited for is kept for it
	used                        // its handler runs
	gone
)

// line is the tickets of a key. The groups take turns: the next ticket is that of the group that has had least, by cost. It is fair
// queueing by virtual time, which is deficit round robin without its rounds.
type line struct {
	groups map[string]*group
	order  groupHeap
	had    int64 // of the group that was served last: a new group begins here
	n      int
	cost   int64 // of all tickets
}

// group is the waiting tickets of one message group, those with more receives first, then by receipt.
type group struct {
	name    string
	had     int64
	seq     uint64 // of the ticket it began with
	index   int    // in the heap
	tickets []*ticket
}

func (l *line) add(t *ticket) {
	g := l.groups[t.group]
	if g == nil {
		g = &group{name: t.group, had: l.had, seq: t.seq}
		if l.groups == nil {
			l.groups = make(map[string]*group)
		}
		l.groups[t.group] = g
		heap.Push(&l.order, g)
	}
	i, _ := g.search(t)
	g.tickets = slices.Insert(g.tickets, i, t)
	l.n++
	l.cost += int64(t.cost)
}

func (g *group) search(t *ticket) (int, bool) {
	return slices.BinarySearchFunc(g.tickets, t, func(a, b *ticket) int {
		return cmp.Or(-cmp.Compare(a.receives, b.receives), cmp.Compare(a.seq, b.seq))
	})
}

// first returns the ticket whose turn is next, or nil.
func (l *line) first() *ticket {
	if len(l.order) == 0 {
		return nil
	}
	return l.order[0].tickets[0]
}

// upTo returns the cost of the tickets whose turn comes before that of last, and its own. A ticket's turn comes by what its group has
// had then, as in groupHeap.
func (l *line) upTo(last *ticket, cost func(*ticket) int) (sum int) {
	in := l.groups[last.group]
	i, _ := in.search(last)
	end := in.had
	for _, t := range in.tickets[:i] {
		end += int64(t.cost)
	}
	for _, g := range l.order {
		had := g.had
		for _, t := range g.tickets {
			if had > end || had == end && g.seq > in.seq {
				break
			}
			sum += cost(t)
			had += int64(t.cost)
		}
	}
	return sum
}

// serve removes a ticket, whose group has then had its cost.
func (l *line) serve(t *ticket) {
	g := l.groups[t.group]
	l.had = g.had
	g.had += int64(t.cost)
	heap.Fix(&l.order, g.index)
	l.remove(t)
}

func (l *line) remove(t *ticket) {
	g := l.groups[t.group]
	i, _ := g.search(t)
	g.tickets = slices.Delete(g.tickets, i, i+1)
	l.n--
	l.cost -= int64(t.cost)
	if len(g.tickets) == 0 {
		heap.Remove(&l.order, g.index)
		delete(l.groups, g.name)
	}
}

// groupHeap implements [heap.Interface].
type groupHeap []*group

func (h groupHeap) Len() int { return len(h) }
func (h groupHeap) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].had, h[j].had), cmp.Compare(h[i].seq, h[j].seq)) < 0
}
func (h groupHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *groupHeap) Push(g any) {
	g.(*group).index = len(*h)
	*h = append(*h, g.(*group))
}
func (h *groupHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
