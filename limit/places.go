package limit

import (
	"context"
	"time"
)

const (
	// lineRule is how long the line is where messages that have not had their place in it get no token.
	lineRule = time.Second
	// mostDelay is the longest delay that is asked for: SQS hides a message for 12 h at most.
	mostDelay = 12 * time.Hour
)

// places is the line of the messages of a key that are not held: each is given back until its place.
type places struct {
	end    time.Time // of this process's own line
	next   *placed   // those who ask while a call is under way
	asking bool
}

// placed is the messages that get their places in one call.
type placed struct {
	n      int
	stride time.Duration
	done   chan struct{}
	d      time.Duration
	err    error
}

// stride is the distance of two places: 5% more than that of two starts, so that messages do not come too early. A host that holds those
// needs 1%: where all messages run from their places, the key has that much less than its rate.
func (g *gate) stride(holds bool) time.Duration {
	step := g.plan.step
	if g.keeps() {
		step = g.counted.share
	}
	if g.plan.slots > 0 {
		step = max(step, g.mean/time.Duration(g.plan.slots))
	}
	if holds {
		return step + step/100
	}
	return step + step/20
}

// ownPlace returns the delay until the next place of the process's own line.
func (g *gate) ownPlace(now time.Time, cost int, stride time.Duration) time.Duration {
	floor := now
	if g.plan.step > 0 && g.rule.Counter == nil {
		floor = g.bucket.at(g.plan, min(cost, g.plan.burst))
	}
	at := g.places.end
	for _, t := range []time.Time{now, floor, g.paused} {
		if t.After(at) {
			at = t
		}
	}
	g.places.end = at.Add(time.Duration(cost) * stride)
	return at.Sub(now)
}

// place returns the delay until a message's place in the line of a key. It is called without the lock.
func (l *Limiter) place(ctx context.Context, g *gate, t *ticket) time.Duration {
	l.mu.Lock()
	now := time.Now()
	cost, stride := min(t.cost, max(1, g.plan.burst)), g.stride(t.mayHold)
	switch down := g.out().down(); {
	case down && l.o.OnCounterDown == OnCounterDownStop: // a wait costs a receive
		defer l.mu.Unlock()
		return time.Minute << (2 * min(max(t.receives-1, 0), 2))
	case down || g.rule.Counter == nil || l.closed || stride == 0:
		defer l.mu.Unlock()
		return g.ownPlace(now, cost, stride)
	}
	if g.places.next == nil {
		g.places.next = &placed{stride: stride, done: make(chan struct{})}
	}
	mine := g.places.next
	before := mine.n
	mine.n += cost
	if !g.places.asking {
		g.askPlaces(now)
	}
	l.mu.Unlock()
	select {
	case <-mine.done:
		if mine.err == nil {
			return mine.d + time.Duration(before)*mine.stride
		}
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return g.ownPlace(time.Now(), cost, stride)
}

// askPlaces asks for the places of all who wait for one, in one call.
func (g *gate) askPlaces(now time.Time) {
	p := g.places.next
	g.places.next, g.places.asking = nil, true
	name := g.name()
	g.call(now, func(ctx context.Context) (err error) {
		p.d, err = g.rule.Counter.Line(ctx, name, p.n, p.stride)
		return err
	}, g.rule.asksTokens, func(now time.Time, err error) {
		p.err = err
		close(p.done)
		if g.places.asking = g.places.next != nil; g.places.asking {
			g.askPlaces(now)
		}
	})
}
