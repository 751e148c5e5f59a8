package fifo

import (
	"context"
	"slices"
	"time"
)

// maxEntries is the most messages of a request.
const maxEntries = 10

// lane gathers entries into requests that live and die together: one lane for Publish and Enqueue, and one for each call
// of PublishAll, whose requests must not outlive it. Groups are shared by all lanes. A lane belongs to the publisher's
// mutex.
type lane struct {
	ctx    context.Context // of its requests; its end gives all its entries up
	linger time.Duration
	hurry  bool     // no linger
	ready  []*group // whose heads may be sent and are of this lane, oldest readiness first
}

// due returns when the lane has a request to send, or false without anything to send.
func (l *lane) due(now time.Time, hurry bool) (time.Time, bool) {
	if len(l.ready) == 0 {
		return time.Time{}, false
	}
	if hurry || l.hurry || len(l.ready) >= maxEntries || l.fits() < len(l.ready) {
		return now, true
	}
	first := l.ready[0].head().due
	for _, g := range l.ready[1:] {
		if due := g.head().due; due.Before(first) {
			first = due
		}
	}
	return first, true
}

// fits returns how many of the ready groups' heads fit into one request.
func (l *lane) fits() int {
	total := int64(0)
	for i, g := range l.ready {
		total += g.head().size
		if i == maxEntries || i > 0 && total > maxMessageBytes-batchMargin {
			return i
		}
	}
	return len(l.ready)
}

// take returns the entries of one request and marks them in flight. Each is of another group.
func (l *lane) take() []*entry {
	n := l.fits()
	batch := make([]*entry, n)
	for i, g := range l.ready[:n] {
		batch[i] = g.head()
		batch[i].inFlight = true
	}
	l.ready = slices.Delete(l.ready, 0, n)
	return batch
}

// unready takes a group out of the ready list.
func (l *lane) unready(g *group) {
	if i := slices.Index(l.ready, g); i >= 0 {
		l.ready = slices.Delete(l.ready, i, i+1)
	}
}
