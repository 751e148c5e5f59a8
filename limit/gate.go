package limit

import (
	"container/list"
	"slices"
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
)

const (
	// keep is how long a token or slot stays reserved for the message whose turn it is.
	keep = time.Second
	// warnAfter and warnAgain are when a key with waiting messages is logged.
	warnAfter, warnAgain = time.Minute, 10 * time.Minute
	// mostRest is the longest time in which nothing is reserved for messages that do not come in their turn, where a tenth of the
	// rate is less than a token in it.
	mostRest = 5 * time.Second
)

// gate is one key of a rule. All of it is guarded by Limiter.mu.
type gate struct {
	rule     *rule
	key      string
	plan     plan
	planSeq  uint64 // see use.seq
	line     line
	reserved list.List     // of *ticket, the first to lapse first
	running  int           // reserved ones too
	mean     time.Duration // of the handlers
	bucket   bucket
	paused   time.Time
	places   places
	counted  counted
	slots    slots
	outage   outage // the key's own
	follows  bool   // the last message's host can hold the next ones
	timer    timer
	recent   *list.Element // in rule.recent

	// late is how many messages in a row have not come in their turn: their host has no free slot. Until restUntil the tokens of a
	// fleet go to those that are here, and else to other processes.
	late      int
	restUntil time.Time

	next        time.Time // when the first waiting message has its turn; zero: none waits, or that is not known
	since, said time.Time // when messages began to wait, when that was logged last
}

func (g *gate) inUse() bool {
	return g.line.n > 0 || g.running > 0 || g.counted.asking || g.slots.asking || len(g.slots.owned) > 0 || g.places.asking
}

func (g *gate) name() string { return g.rule.Name + "#" + escape(g.key) }

// cost is that of a ticket under the plan of now.
func (g *gate) cost(t *ticket) int {
	if g.plan.step == 0 {
		return t.cost
	}
	return min(t.cost, g.plan.burst)
}

// advance gives what is free to the tickets whose turn it is.
func (g *gate) advance(now time.Time) {
	g.outage.lapse(now)
	g.rule.outage.lapse(now)
	for e := g.reserved.Front(); e != nil; e = g.reserved.Front() {
		t := e.Value.(*ticket)
		if t.until.After(now) {
			break
		}
		if g.rule.l.held[t.id] == t {
			delete(g.rule.l.held, t.id)
		}
		if g.late++; g.late > 1 {
			g.restUntil = now.Add(host.Double(keep, max(mostRest, 10*g.plan.step), g.late-1))
		}
		g.giveBack(t, now)
	}
	if g.running > 0 {
		g.bucket.forget(now.Add(-keep))
	} else {
		g.bucket.recent = nil // no ticket is left that could give its starts back
	}
	var wake time.Time
	served := false
	for t := g.line.first(); t != nil && !g.rule.l.closed; t = g.line.first() {
		if g.restUntil.After(now) {
			wake = g.restUntil
			break
		}
		at, known := g.at(now, t)
		if !known || at.After(now) {
			wake = at
			break
		}
		g.reserve(t, now)
		served = true
	}
	if served {
		g.askAhead(now)
	}
	for _, s := range slices.Clone(g.slots.owned) {
		if s.busy == 0 && g.line.n == 0 {
			g.tend(s, now)
		}
	}
	g.sayWaiting(now)
	g.next = wake
	if e := g.reserved.Front(); e != nil {
		wake = sooner(wake, e.Value.(*ticket).until)
	}
	g.timer.set(g.rule.l, wake, now, g.advance)
	g.rule.shelve(g, now)
}

// tryNow serves a message that is here although others have their turn before it, while those do not come.
func (g *gate) tryNow(t *ticket, now time.Time) {
	if t.state == waiting && g.restUntil.After(now) {
		if at, known := g.at(now, t); known && !at.After(now) {
			g.reserve(t, now)
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// sooner returns the earlier of two times, of which a zero one counts as never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// at returns when the first ticket may be served; not known: when something else happens.
func (g *gate) at(now time.Time, t *ticket) (at time.Time, known bool) {
	if g.paused.After(now) {
		return g.paused, true
	}
	if g.plan.slots > 0 {
		if at, known = g.slotAt(now); !known || at.After(now) {
			return at, known
		}
	}
	if g.plan.step > 0 {
		if at, known = g.tokensAt(now, t); !known || at.After(now) {
			return at, known
		}
	}
	if g.plan.slots > 0 && !g.hasSlot(now) {
		g.askSlot(now)
		return time.Time{}, false
	}
	return now, true
}

// tokensAt is at for the tokens of a ticket.
func (g *gate) tokensAt(now time.Time, t *ticket) (at time.Time, known bool) {
	if g.rule.Counter != nil {
		return g.countedAt(now, t)
	}
	if !t.mayHold && !t.waited && g.places.end.Sub(now) > lineRule {
		return g.places.end, true // those who have had their place in the line go first
	}
	return g.bucket.at(g.plan, g.cost(t)), true
}

// reserve gives a ticket what it needs.
func (g *gate) reserve(t *ticket, now time.Time) {
	g.line.serve(t)
	g.follows = t.mayHold
	t.state, t.until = reserved, now.Add(keep)
	g.takeTokens(t, now)
	g.takeSlot(t, now)
	g.running++
	if t.turn != nil {
		g.keepFor(t)
	}
}

// keepFor keeps a reservation until its message comes, and tells its host. A message that is here uses it at once.
func (g *gate) keepFor(t *ticket) {
	after := g.reserved.Back()
	for after != nil && after.Value.(*ticket).until.After(t.until) {
		after = after.Prev()
	}
	if after == nil {
		t.place = g.reserved.PushFront(t)
	} else {
		t.place = g.reserved.InsertAfter(t, after)
	}
	close(t.turn)
}

func (g *gate) unkeep(t *ticket) {
	if t.place != nil {
		g.reserved.Remove(t.place)
		t.place = nil
	}
}

func (g *gate) takeTokens(t *ticket, now time.Time) {
	switch {
	case g.plan.step == 0:
	case g.rule.Counter != nil:
		g.takeCounted(t, now)
	default:
		g.bucket.take(now, g.plan, t, g.cost(t))
	}
}

func (g *gate) takeSlot(t *ticket, now time.Time) {
	if g.plan.slots == 0 || g.rule.Counter == nil {
		return
	}
	if t.slot = g.slotFor(now); t.slot != nil {
		t.slot.busy++
		g.tend(t.slot, now)
	}
}

// use has a reserved ticket's message run.
func (g *gate) use(t *ticket) {
	g.unkeep(t)
	t.state = used
	if t.turn != nil {
		g.late, g.restUntil = 0, time.Time{}
	}
	g.rule.counts.started++
}

// leave ends a ticket. Its tokens go back where no handler has used them.
func (g *gate) leave(t *ticket, now time.Time, back bool) {
	switch t.state {
	case gone:
		return
	case waiting:
		g.line.remove(t)
	case reserved, used:
		g.unkeep(t)
		g.running--
		if back && g.plan.step > 0 {
			g.putBack(t, now)
		}
		if s := t.slot; s != nil {
			s.busy--
			s.idle = now
		}
	}
	t.state = gone
}

// giveBack is leave for a ticket whose handler has not run, without advance.
func (g *gate) giveBack(t *ticket, now time.Time) {
	g.leave(t, now, true)
	if t.slot != nil {
		g.tend(t.slot, now)
	}
}

func (g *gate) putBack(t *ticket, now time.Time) {
	if g.rule.Counter != nil {
		g.putCountedBack(t, now)
		return
	}
	if t.state == reserved || t.until.After(now) {
		g.bucket.putBack(g.plan, t)
	}
}

// ended notes how long a handler ran.
func (g *gate) ended(took time.Duration) {
	if g.mean == 0 {
		g.mean = took
	}
	g.mean += (took - g.mean) / 8
}

func (g *gate) sayWaiting(now time.Time) {
	switch {
	case g.line.n == 0:
		g.since = time.Time{}
	case g.since.IsZero():
		g.since = now
	case now.Sub(g.since) >= warnAfter && now.Sub(g.said) >= warnAgain:
		g.said = now
		g.rule.l.o.Logger.Info("limit: messages of a key have waited for a minute", "rule", g.rule.Name, "key", g.key, "waiting", g.line.n)
	}
}

// timer calls a function of a gate under the Limiter's lock.
type timer struct {
	t  *time.Timer
	at time.Time
}

// set replaces the call by one at that time; zero: none.
func (t *timer) set(l *Limiter, at, now time.Time, f func(time.Time)) {
	if at.IsZero() || l.closed {
		t.stop()
		return
	}
	if t.t != nil && t.at.Equal(at) {
		return
	}
	t.stop()
	t.at = at
	var own *time.Timer
	own = time.AfterFunc(at.Sub(now), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if t.t == own && !l.closed { // else it was replaced while it waited for the lock
			t.t = nil
			f(time.Now())
		}
	})
	t.t = own
}

func (t *timer) stop() {
	if t.t != nil {
		t.t.Stop()
		t.t = nil
	}
}
