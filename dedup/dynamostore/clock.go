package dynamostore

import (
	"math"
	"sync"
	"time"
)

const (
	// guard is what a taker leaves between the end of another's lease by its own clock and the takeover. It covers the
	// differences between the clocks of DynamoDB's front ends.
	guard = 2 * time.Second
	// dateResolution is that of the Date header: the server's clock is in [Date, Date + 1 s) when it writes it.
	dateResolution = time.Second
	// driftPart of the elapsed time is what a host's clock may be off where nothing disciplines it. Quartz is good to 1
	// in 10,000, which an idle day makes 8 s: more than the guard.
	driftPart = 1000
	// unbounded is for a lease of which it is not known how long it was asked for.
	unbounded = time.Duration(math.MaxInt64)
)

// clock estimates DynamoDB's time from the Date of its answers, in two ways that err to opposite sides.
//
// The taker's clock is never ahead, since one that is would take over a lease that lives. The holder's clock is never
// behind, since one that is would start a handler under a lease that is over. Neither rests on how a host's clock is
// set: only on how much of it has passed, by the wall or by the monotonic clock, whichever is the careful choice. The
// two differ where the wall clock was set, and where the machine was suspended or the process frozen: Linux's monotonic
// clock stands still in a suspend, and a thawed sandbox may find either one behind.
//
// Instants are milliseconds of the epoch, as the records hold them.
type clock struct {
	look func() moment

	mu     sync.Mutex
	lower  anchor // for the taker: a Date, and when its reply was in hand
	upper  anchor // for the holder: the last Date, and when its request went
	synced bool   // an answer has brought a Date
}

// moment is one look at the host's clock: as it gave it, and as the time passed since the clock's base by either way of
// counting.
type moment struct {
	host       time.Time
	wall, mono time.Duration
}

type anchor struct {
	date int64
	at   moment
}

func newClock(now func() time.Time) *clock {
	base := now()
	return &clock{look: func() moment {
		t := now()
		// Round(0) strips the monotonic reading. Where now gives none, both are the wall's.
		return moment{host: t, wall: t.Round(0).Sub(base.Round(0)), mono: t.Sub(base)}
	}}
}

// observe learns from an answer with the given Date to a request that went at sent.
func (c *clock) observe(sent moment, date time.Time) {
	c.learn(sent, c.look(), date.UnixMilli())
}

func (c *clock) learn(sent, received moment, date int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// The greatest of several lower bounds is the best one. A Date is cut to its second, so that the newest may say less
	// than what has passed since an older one.
	if !c.synced || date >= c.lower.taker(received) {
		c.lower = anchor{date: date, at: received}
	}
	// The last upper bound is kept, not the least: an old one is only as good as the host's count of what passed since.
	c.upper = anchor{date: date, at: sent}
	c.synced = true
}

// taker returns the instant that another's lease end is compared with, guard included, or 0 before the first answer:
// every comparison with it is then false, and the refusal brings the item together with a Date.
func (c *clock) taker(m moment) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.synced {
		return 0
	}
	return c.lower.taker(m) - guard.Milliseconds()
}

// holder returns an instant that DynamoDB's clock has not passed. Before the first answer it is the host's own: the
// first answer puts it right before anything is started.
func (c *clock) holder(m moment) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.synced {
		return m.host.UnixMilli()
	}
	return c.upper.holder(m)
}

// ahead reports whether the end of an own lease is surely still to come.
func (c *clock) ahead(until int64) bool { return c.left(until) > 0 }

// left is how much of an own lease is surely left.
func (c *clock) left(until int64) time.Duration { return millis(until - c.holder(c.look())) }

// early converts an instant to the host's clock, never late: for the end of an own lease. The result is at most most
// from now: an answer that has put the holder's clock back makes no lease longer than it was asked for.
func (c *clock) early(instant int64, most time.Duration) time.Time {
	end, _ := c.end(instant, most)
	return end
}

// end is early and left, of the same moment.
func (c *clock) end(until int64, most time.Duration) (time.Time, time.Duration) {
	m := c.look()
	left := millis(until - c.holder(m))
	return m.host.Add(min(left, most)), left
}

// late converts an instant to the host's clock, never early: for the end of another's lease, guard included.
func (c *clock) late(instant int64) time.Time {
	m := c.look()
	now := c.taker(m)
	if now == 0 {
		now = m.host.Add(-guard).UnixMilli()
	}
	// One more millisecond: a lease is over when its end is less than the clock.
	return m.host.Add(millis(instant - now + 1))
}

func (a anchor) taker(m moment) int64 {
	passed := max(0, min(m.wall-a.at.wall, m.mono-a.at.mono))
	return a.date + (passed - passed/driftPart).Milliseconds()
}

func (a anchor) holder(m moment) int64 {
	passed := max(0, m.wall-a.at.wall, m.mono-a.at.mono)
	// Rounded up, since the record's instants are whole milliseconds.
	return a.date + (dateResolution + passed + passed/driftPart + time.Millisecond - 1).Milliseconds()
}

func millis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
