package memsqs

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// The rules of fair queues. AWS calls its numbers approximate.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues-detailed.html
const (
	noisyShare    = 0.1             // of the queue's messages in flight, or of its recent processing time: a tenant above it is noisy
	noisyInFlight = 30              // with fewer messages in flight, their share does not make a tenant noisy
	noisySends    = 5 * time.Minute // a tenant that has sent nothing for so long is not noisy
	recentSeconds = 60              // AWS does not say which time is recent. Here a second counts half as much 42 s later.
)

// standardOrder is the ordering of a standard queue: the oldest visible message first, except for Options.Reorder, and except
// for the messages of noisy tenants, which come after all others. A message group is a tenant, and a message without a group is a
// tenant of its own, which is never noisy. Of several noisy tenants the one with the fewest messages in flight comes first.
type standardOrder struct {
	server  *Server
	alone   indexedHeap[*message] // visible messages without a group, oldest first
	tenants map[string]*tenant    // by message group
	quiet   indexedHeap[*tenant]  // tenants with visible messages that are not in noisy, by their oldest
	noisy   []*tenant             // tenants with visible messages that the last next found noisy: at most 9 for each of the two shares
	load    load
}

// tenant is the messages of a message group in a standard queue.
type tenant struct {
	group   string
	all     int                   // how many messages it has, visible or not
	visible indexedHeap[*message] // oldest first
	oldest  *message              // of visible, while in quiet
	load    load
	sentAt  time.Time // the last send

	noisy      bool // is in noisy
	quietIndex int
}

func newStandardOrder(s *Server) *standardOrder {
	return &standardOrder{server: s, alone: messageHeap(), tenants: map[string]*tenant{}, quiet: indexedHeap[*tenant]{
		less:     func(a, b *tenant) bool { return older(a.oldest, b.oldest) },
		position: func(g *tenant) *int { return &g.quietIndex },
	}}
}

func messageHeap() indexedHeap[*message] {
	return indexedHeap[*message]{less: older, position: func(m *message) *int { return &m.readyIndex }}
}

func older(a, b *message) bool { return lessBy(a.order, b.order, a.serial, b.serial) }

func (t *standardOrder) add(m, before *message) {
	if before != nil {
		m.order = before.order
	}
	if n := t.server.opts.Reorder; n > 0 {
		m.order += t.server.rng.Uint64N(uint64(n) + 1)
	}
	if m.group == "" {
		return
	}
	m.of = t.tenants[m.group]
	if m.of == nil {
		m.of = &tenant{group: m.group, visible: messageHeap()}
		t.tenants[m.group] = m.of
	}
	m.of.all++
	if m.sentAt.After(m.of.sentAt) {
		m.of.sentAt = m.sentAt
	}
}

func (t *standardOrder) remove(m *message, now time.Time) {
	t.place(m, false, now)
	t.count(m, false, now)
	if g := m.of; g != nil {
		g.all--
		if g.all == 0 {
			delete(t.tenants, g.group)
		}
	}
}

func (t *standardOrder) changed(m *message, now time.Time) {
	t.count(m, m.inFlight(), now)
	t.place(m, !m.hidden, now)
}

// count adds m to the load, or ends its part in it.
func (t *standardOrder) count(m *message, inFlight bool, now time.Time) {
	if inFlight == m.counted {
		return
	}
	by := 1
	if m.counted {
		by = -1
	}
	m.counted = inFlight
	t.load.add(by, now)
	if m.of != nil {
		m.of.load.add(by, now)
	}
}

// place adds m to the visible messages, or removes it from them.
func (t *standardOrder) place(m *message, visible bool, now time.Time) {
	h := &t.alone
	if m.of != nil {
		h = &m.of.visible
	}
	if visible == h.has(m) {
		return
	}
	if visible {
		h.push(m)
	} else {
		h.remove(m)
	}
	if m.of != nil {
		t.placeTenant(m.of, now)
	}
}

// placeTenant moves g in quiet to the place of its oldest visible message. Once it has none it is no longer noisy, and its
// processing time begins anew: else the next message that it sends would find it noisy as before.
func (t *standardOrder) placeTenant(g *tenant, now time.Time) {
	if g.noisy && g.visible.Len() > 0 || t.quiet.has(g) && g.visible.Len() > 0 && g.visible.top() == g.oldest {
		return
	}
	t.quiet.remove(g)
	if g.visible.Len() > 0 {
		g.oldest = g.visible.top()
		t.quiet.push(g)
		return
	}
	g.load = load{inFlight: g.load.inFlight, at: now}
	if g.noisy {
		g.noisy = false
		t.noisy = slices.DeleteFunc(t.noisy, func(o *tenant) bool { return o == g })
	}
}

// next returns one message: the caller asks again, as the next one depends on the load.
func (t *standardOrder) next(n int, now time.Time) []*message {
	if n < 1 {
		return nil
	}
	t.judge(now)
	var m *message
	if t.quiet.Len() > 0 {
		m = t.quiet.top().oldest
	}
	if t.alone.Len() > 0 && (m == nil || older(t.alone.top(), m)) {
		m = t.alone.top()
	}
	if m == nil && len(t.noisy) > 0 {
		m = slices.MinFunc(t.noisy, func(a, b *tenant) int {
			return cmp.Or(cmp.Compare(a.load.inFlight, b.load.inFlight), cmp.Compare(a.visible.top().order, b.visible.top().order))
		}).visible.top()
	}
	if m == nil {
		return nil
	}
	return []*message{m}
}

// judge moves tenants between quiet and noisy until the first of quiet is not noisy. Those behind it do not matter now.
func (t *standardOrder) judge(now time.Time) {
	t.noisy = slices.DeleteFunc(t.noisy, func(g *tenant) bool {
		if t.isNoisy(g, now) {
			return false
		}
		g.noisy = false
		t.placeTenant(g, now)
		return true
	})
	for t.quiet.Len() > 0 && t.isNoisy(t.quiet.top(), now) {
		g := t.quiet.top()
		t.quiet.remove(g)
		g.noisy = true
		t.noisy = append(t.noisy, g)
	}
}

func (t *standardOrder) isNoisy(g *tenant, now time.Time) bool {
	switch {
	case !now.Before(g.sentAt.Add(noisySends)):
		return false
	case g.load.inFlight >= noisyInFlight && float64(g.load.inFlight) > noisyShare*float64(t.load.inFlight):
		return true
	}
	return g.load.recent(now) > noisyShare*t.load.recent(now)
}

// load is how many messages are in flight, and their recent processing time: the time that they and others before them were in
// flight.
type load struct {
	inFlight int
	seconds  float64 // the recent processing time at the time at
	at       time.Time
}

func (l *load) add(by int, now time.Time) {
	l.seconds = l.recent(now)
	if now.After(l.at) {
		l.at = now
	}
	l.inFlight += by
}

// recent returns the recent processing time in seconds: each counts the less, the longer ago it was.
func (l *load) recent(now time.Time) float64 {
	d := now.Sub(l.at).Seconds()
	if d <= 0 {
		return l.seconds
	}
	kept := math.Exp(-d / recentSeconds)
	return l.seconds*kept + float64(l.inFlight)*recentSeconds*(1-kept)
}
