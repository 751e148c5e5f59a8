package limit

import (
	"context"
	"github.com/sqsonce/sqsonce/internal/counting"
	"math"
	"math/rand/v2"
	"time"
)

const (
	// fresh is how long a token is good for a ticket that is not at work yet: of keep, the rest is for the message to come.
	fresh = keep * 3 / 4
	// ahead is how far in the future a process takes tokens before it needs them, reach how far the one that its first ticket
	// waits for. portion is the time whose tokens it takes at once.
	ahead, reach, portion = 1500 * time.Millisecond, time.Minute, 250 * time.Millisecond
	// shareTime is the least time over which a process knows its own rate, and shareSteps the least number of the key's steps in it.
	// One of shareLeast steps is the least that a key has, and one of partLeast of the process's part: see leastShare.
	shareTime, shareSteps, shareLeast, partLeast = 30 * time.Second, 30, 50, 10
	debtAhead                                    = 24 * time.Hour
)

// counted is what a Counter has given to this process of a key's rate.
type counted struct {
	stock   stock
	portion int
	granted int // by the last answer
	lapsed  int // since then
	asking  bool
	askAt   [2]time.Time  // not before, for messages that have had their place in the line in [1], for others in [0]
	answer  chan struct{} // closed with the next answer of the Counter for the key; nil: nobody waits
	had     float64       // tokens, by then, decaying
	hadAt   time.Time     // on the clock of gate.known
	last    float64       // how many of them came last
	good    time.Time     // of the token that a message has used last
	away    time.Time     // the beginning of the outage that share and next are for
	share   time.Duration // between two starts
	next    time.Time     // the regular time of the next one
	shared  time.Time     // when a message has last started at its share; zero: none has since the last token

	sharedAt time.Time // when an outage was last seen
}

// asksCounter reports whether an answer of the Counter may serve a ticket.
func (g *gate) asksCounter() bool { return g.counted.asking || g.slots.asking }

// answers returns a channel that is closed with the next answer.
func (g *gate) answers() <-chan struct{} {
	if g.counted.answer == nil {
		g.counted.answer = make(chan struct{})
	}
	return g.counted.answer
}

func (g *gate) answered() {
	if g.counted.answer != nil {
		close(g.counted.answer)
		g.counted.answer = nil
	}
}

// countedAt is tokensAt with a Counter.
func (g *gate) countedAt(now time.Time, t *ticket) (at time.Time, known bool) {
	c, cost := &g.counted, g.cost(t)
	g.lapse(now, cost)
	if at, ok := c.stock.at(cost); ok {
		if at.After(now) && !t.mayHold && g.lacks(t) > 0 { // those behind it can't wait for its turn
			g.ask(now, t)
		}
		return at, true
	}
	again, known := g.ask(now, t)
	switch {
	case !g.keepsShare(now):
		return again, known
	case c.next.After(now):
		return sooner(c.next, again), true
	}
	return now, true
}

// takeCounted takes what countedAt has found.
func (g *gate) takeCounted(t *ticket, now time.Time) {
	c, cost := &g.counted, g.cost(t)
	good, ok := c.stock.at(cost)
	if !ok {
		// Starts that it had no message for come later, as far as the plan's burst goes.
		c.next = later(c.next, now.Add(-g.plan.tolerance())).Add(time.Duration(cost) * c.share)
		c.shared = now
		return
	}
	t.times, t.good, t.until = c.stock.drop(cost), good, good.Add(keep)
	c.good = good
	g.count(t.times, now, cost)
	if r := g.rule; r.busiest == nil || g.part(now) >= r.busiest.part(now) {
		r.busiest = g
	}
}

func (g *gate) putCountedBack(t *ticket, now time.Time) {
	if t.good.Add(fresh).After(now) { // else they lapse, and so does the share of an outage
		g.count(t.times, now, -g.cost(t))
		g.counted.stock.putBack(t.times, t.good, g.cost(t))
	}
}

// lapse drops the tokens that are good no more. The process has had them: others could not use them.
func (g *gate) lapse(now time.Time, cost int) {
	times, n := g.counted.stock.lapse(now.Add(-fresh), cost)
	if n > 0 {
		g.count(times, now, n)
		g.counted.lapsed += n
	}
}

// tolerance is how long before its regular time a start may be.
func (p plan) tolerance() time.Duration { return time.Duration(p.burst-1) * p.step }

// shareTime is the time over which the processes know their own rates.
func (p plan) shareTime() time.Duration { return max(shareTime, shareSteps*p.step) }

// decay is what counts of a token so long after its time.
func (p plan) decay(d time.Duration) float64 {
	return math.Exp(-float64(max(d, 0)) / float64(p.shareTime()))
}

// most is what all processes together have had of a key lately, on average: their tokens have times a step apart, also those of a burst.
func (p plan) most() float64 { return float64(p.shareTime()) / float64(p.step) }

// recent returns the tokens that this process has had lately: those of the last shareTime, decaying. now is a time of gate.known. The last
// ones count half, and nothing decays before the next ones are due: so processes that have their tokens in turn have the rate together,
// whenever each of them asks.
func (c *counted) recent(p plan, now time.Time) float64 {
	had := max(0, c.had-c.last/2)
	return had * p.decay(now.Sub(c.hadAt)-p.steps(had/p.most()))
}

// known is now, on a clock that stands still while the Counter is down: nothing is learnt of the key then.
func (g *gate) known(now time.Time) time.Time {
	return now.Add(-g.rule.outage.lasted(now) - g.outage.lasted(now))
}

// count counts tokens with such times that are used or lapse, or go back.
func (g *gate) count(times, now time.Time, tokens int) {
	c, known := &g.counted, g.known(now)
	more := float64(tokens) * g.plan.decay(now.Sub(times))
	c.had, c.last, c.hadAt = max(0, c.had*g.plan.decay(known.Sub(c.hadAt))+more), max(0, more), known
}

// part is which part of the key's rate this process had: 1/P of P processes that share a key at its limit.
func (g *gate) part(now time.Time) float64 {
	return g.counted.recent(g.plan, g.known(now)) / g.plan.most()
}

// step is how far apart this process's own starts were. The processes have no more than the rate together.
func (g *gate) step(now time.Time) time.Duration { return g.plan.steps(g.part(now)) }

// leastShare is the part of a limit that a key has about which the process knows nothing. The largest part of a key says how many
// processes there are at most, if they have the same part of the messages: one process alone may give a key more.
func (r *rule) leastShare(now time.Time) float64 {
	least := 1. / shareLeast
	if r.busiest != nil {
		least = max(least, r.busiest.part(now)/partLeast)
	}
	return least
}

// steps is how far apart the starts of a part of the rate are.
func (p plan) steps(part float64) time.Duration {
	return time.Duration(float64(p.step) / min(max(part, 1./shareLeast), 1))
}

// change keeps the process's part of the rate when the plan changes, also in an outage. now is a time of gate.known.
func (c *counted) change(now time.Time, from, to plan) {
	had := 0.
	if from.step > 0 && to.step > 0 {
		had = c.recent(from, now) * to.most() / from.most()
	}
	c.had, c.last, c.hadAt = had, 0, now
	c.askAt, c.away, c.sharedAt = [2]time.Time{}, time.Time{}, time.Time{}
}

// keepsShare reports whether the process goes on at its share because the Counter is down.
func (g *gate) keepsShare(now time.Time) bool {
	c, o := &g.counted, g.out()
	if !g.keeps() {
		return false
	}
	if c.away != o.since {
		c.away = o.since
		start := now // the process had its tokens since the last outage
		// Between two outages that follow each other processes have no more than a burst of tokens, which says little.
		if now.Sub(c.sharedAt) >= g.plan.shareTime() {
			c.share = g.plan.steps(max(g.part(now), g.rule.leastShare(now)))
			// A process that knows nothing of the key begins anywhere in its time: all of them together begin at the limit.
			c.next, start = time.Time{}, now.Add(rand.N(c.share))
		}
		if due := c.good.Add(time.Duration(c.last * float64(c.share))); due.After(now) {
			start = due // the processes go on in turn
		}
		c.next = later(c.next, start)
	}
	c.sharedAt = now
	return true
}

// ask asks the Counter for the tokens of the first ticket. It returns when it may be asked; not known: it is asked.
func (g *gate) ask(now time.Time, t *ticket) (again time.Time, known bool) {
	c := &g.counted
	if c.asking {
		return time.Time{}, false
	}
	cost, waited := g.cost(t), t.hasWaited()
	if at := g.out().notBefore(c.askAt[index(waited)]); at.After(now) {
		return at, true
	}
	take, each := counting.Take{N: g.nextPortion(), Waited: waited}, 1
	if t.mayHold {
		take.Ahead, take.Reach = ahead, reach
	} else { // the tokens of those who are here now: the process may be frozen when they have gone
		take.N = min(g.lacks(t), math.MaxInt32)
	}
	if cost > 1 && take.N < 2*cost { // all or none: processes with parts of what they need would start together
		take.N, take.Ahead, each = 1, 0, cost
	}
	g.take(now, take, each)
	return time.Time{}, false
}

// lacks is how many tokens more those tickets of the line need that the Counter treats as it does t.
func (g *gate) lacks(t *ticket) int {
	n := -g.counted.stock.n
	for _, group := range g.line.groups {
		for _, other := range group.tickets {
			if g.cost(other) == g.cost(t) && other.hasWaited() == t.hasWaited() {
				n += g.cost(t)
			}
		}
	}
	return n
}

// hasWaited reports whether the ticket's message was postponed before, or is held.
func (t *ticket) hasWaited() bool { return t.waited || t.turn != nil }

func index(waited bool) int {
	if waited {
		return 1
	}
	return 0
}

// askAhead asks before tokens are needed where the key's messages follow each other.
func (g *gate) askAhead(now time.Time) {
	c := &g.counted
	if g.rule.Counter == nil || g.plan.step == 0 || c.asking || !g.follows || c.stock.n > c.portion/2 ||
		g.step(now) > ahead || g.out().notBefore(now).After(now) {
		return
	}
	g.take(now, counting.Take{N: g.nextPortion(), Ahead: ahead}, 1)
}

// nextPortion doubles the portion where the last one was used up, and halves it where half of it has lapsed.
func (g *gate) nextPortion() int {
	c := &g.counted
	switch {
	case c.granted == 0:
	case 2*c.lapsed >= c.granted:
		c.portion /= 2
	case c.lapsed == 0:
		c.portion *= 2
	}
	c.granted, c.lapsed = 0, 0
	c.portion = max(1, min(c.portion, int(portion/g.plan.step)))
	return c.portion
}

// take asks the Counter on a goroutine of its own. What it takes at once is each tokens, which are good at the time of the last one.
func (g *gate) take(now time.Time, t counting.Take, each int) {
	c := &g.counted
	c.asking = true
	t.Key, t.Step, t.Burst = g.name(), time.Duration(each)*g.plan.step, g.plan.burst/each
	rested := now.Sub(c.shared) >= g.plan.tolerance()
	if !rested { // the key has had no rest in the outage, so it has no burst after it: its first token is 1 ns ahead
		t.NotBefore, t.Ahead = 1, max(t.Ahead, 1)
	}
	var grant counting.Grant
	g.call(now, func(ctx context.Context) (err error) {
		grant, err = g.rule.Counter.Take(ctx, t)
		return err
	}, g.rule.asksTokens, func(then time.Time, err error) {
		c.asking = false
		if err == nil {
			c.shared = time.Time{}
		}
		switch {
		case err != nil:
		case grant.N > 0:
			first, good := then.Add(grant.From), now
			if each > 1 { // one token of so many steps: its parts are good together
				step := grant.Step / time.Duration(each)
				first, good = first.Add(-grant.Step+step), later(first, now)
				grant.N, grant.Step = each, step
			}
			c.granted = grant.N
			c.stock.add(span{first: first, step: grant.Step, n: grant.N, asked: good})
		default:
			c.askAt[index(t.Waited)] = then.Add(min(max(grant.After, leastAfter), mostAfter))
		}
	})
}

// leastAfter and mostAfter bound when a Counter without a token is asked again: an operator may delete its item.
const leastAfter, mostAfter = 20 * time.Millisecond, time.Minute
