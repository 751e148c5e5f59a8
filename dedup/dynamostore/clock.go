package dynamostore

import (
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// takeoverMargin is the time that a taker leaves between the end of another owner's lease, by the taker's clock, and the
	// takeover. It covers the differences between the clocks of DynamoDB's servers.
	takeoverMargin = 2 * time.Second
	// dateResolution is that of the Date header: the server's clock is in [Date, Date + 1 s) when it writes it.
	dateResolution = time.Second
	// One part in driftPart of the elapsed time is the most that a host's clock, which nothing corrects, may be wrong. A
	// quartz is wrong by 1 in 10,000, which is 8 s on an idle day: more than the takeover margin.
	driftPart = 1000
	// unbounded is the length of a lease if it is not known how long it was asked for.
	unbounded = time.Duration(math.MaxInt64)
)

// clock estimates DynamoDB's time from the Date of its answers, in two ways that are wrong in opposite directions.
//
// The taker's clock is never ahead of DynamoDB's, because it would take over a live lease. The holder's clock is never
// behind, because it would start a handler under a lease that has ended. Neither depends on how a host's clock is set. They
// depend on the time that passes by the wall clock or by the monotonic clock, whichever is the safe choice. The two clocks
// differ if the wall clock was set, and if the machine was suspended or the process frozen. Linux's monotonic clock stands
// still in a suspend, and in a thawed sandbox either one may be behind.
//
// Instants are milliseconds of the epoch, as in the records.
type clock struct {
	look func() moment

	sends atomic.Uint64 // requests that were sent

	mu     sync.Mutex
	newest uint64 // the request whose answer has taught the clock
	lower  anchor // for the taker: that answer's Date, and when it was received
	upper  anchor // for the holder: that Date, and when its request was sent
	synced bool   // an answer has brought a Date
	fenced anchor // a fence, and when it was taken
	// The bounds of the server's time by all answers, for tokens: see narrow.
	from, to anchor
}

// sending is the start of a request: when, and after how many others.
type sending struct {
	moment
	n uint64
}

// moment is one reading of the host's clock: its time, and the time since the clock's base by the wall and by the
// monotonic clock.
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
		// Round(0) removes the monotonic reading. Where now has none, both are the wall clock's.
		return moment{host: t, wall: t.Round(0).Sub(base.Round(0)), mono: t.Sub(base)}
	}}
}

// send notes that a request is sent.
func (c *clock) send() sending { return sending{c.look(), c.sends.Add(1)} }

// requestID is the header that every answer of DynamoDB has. The error page of a proxy or a load balancer, which has a Date of
// its own, does not have it.
const requestID = "X-Amzn-Requestid"

// read learns from an answer's header. Without a Date the clock goes on from the last one.
func (c *clock) read(sent sending, h http.Header) {
	date, err := http.ParseTime(h.Get("Date"))
	if err == nil && h.Get(requestID) != "" {
		c.learn(sent, c.look(), date)
	}
}

// learn learns from the Date of the answer to a request.
//
// The answer to the newest request counts, whatever earlier ones have said: the greatest Date may be a wrong one, the
// server's clock may have stepped back, and an old answer that arrives late is the worst measure of the three.
func (c *clock) learn(sent sending, received moment, date time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if sent.n < c.newest {
		return
	}
	c.lower = anchor{date: date.UnixMilli(), at: received}
	c.upper = anchor{date: date.UnixMilli(), at: sent.moment}
	c.narrow(received)
	c.newest, c.synced = sent.n, true
}

// narrow has the newest answer narrow the bounds of the earlier ones. Where they contradict each other the newest one
// counts.
func (c *clock) narrow(m moment) {
	from, to := c.lower, c.upper
	if c.synced && c.from.taker(m) > from.taker(m) {
		from = c.from
	}
	if c.synced && c.to.holder(m) < to.holder(m) {
		to = c.to
	}
	if from.taker(m) > to.holder(m) {
		from, to = c.lower, c.upper
	}
	c.from, c.to = from, to
}

// latest returns the latest time that the server's clock may have, in microseconds of the epoch, and how much earlier it
// may be. Both mean nothing before the first answer.
func (c *clock) latest() (micros int64, width time.Duration) {
	m := c.look()
	c.mu.Lock()
	defer c.mu.Unlock()
	to := c.to.holder(m)
	return 1000 * to, millis(to - c.from.taker(m))
}

// earliest returns the earliest time that the server's clock may have, in microseconds of the epoch.
func (c *clock) earliest() int64 {
	m := c.look()
	c.mu.Lock()
	defer c.mu.Unlock()
	return 1000 * c.from.taker(m)
}

// known reports whether an answer has brought the server's time.
func (c *clock) known() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.synced
}

// taker returns the instant that the end of another owner's lease is compared with, which includes the takeover margin.
// Before the first answer it is 0: every comparison with it is false, and the refusal brings the item and a Date.
func (c *clock) taker(m moment) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.synced {
		return 0
	}
	return c.lower.taker(m) - takeoverMargin.Milliseconds()
}

// holder returns an instant that DynamoDB's clock has not passed. Before the first answer it is the host's own time: the
// first answer corrects it before a handler is started.
func (c *clock) holder(m moment) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.synced {
		return m.host.UnixMilli()
	}
	return c.upper.holder(m)
}

// fence is the holder's clock without its steps back, so that hosts read from the fences of a process which event started last. Each answer
// sets the clock back by a Date's resolution at most, and the fence is ahead of it by no more than that.
func (c *clock) fence(m moment) int64 {
	now := c.holder(m)
	c.mu.Lock()
	defer c.mu.Unlock()
	goesOn := c.fenced.date + (m.mono - c.fenced.at.mono).Milliseconds()
	f := min(max(now, goesOn), now+dateResolution.Milliseconds())
	if f != goesOn && c.synced {
		c.fenced = anchor{f, m}
	}
	return f
}

// ahead reports whether the end of this host's lease is certainly in the future.
func (c *clock) ahead(until int64) bool { return c.left(until) > 0 }

// left is the time that is certainly left of this host's lease.
func (c *clock) left(until int64) time.Duration { return millis(until - c.holder(c.look())) }

// early converts the end of this host's lease to the host's clock, and is never late. The result is at most most from now:
// an answer that sets the holder's clock back does not make a lease longer than it was asked for.
func (c *clock) early(instant int64, most time.Duration) time.Time {
	end, _ := c.end(instant, most)
	return end
}

// end returns early and left, of the same moment.
func (c *clock) end(until int64, most time.Duration) (time.Time, time.Duration) {
	m := c.look()
	left := millis(until - c.holder(m))
	return m.host.Add(min(left, most)), left
}

// late converts the end of another owner's lease to the host's clock, takeover margin included, and is never early.
func (c *clock) late(instant int64) time.Time {
	m := c.look()
	now := c.taker(m)
	if now == 0 {
		now = m.host.Add(-takeoverMargin).UnixMilli()
	}
	// One more millisecond: a lease has ended when its end is less than the clock.
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
