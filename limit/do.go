package limit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/counting"
	"github.com/sqsonce/sqsonce/internal/settle"
)

const (
	// patience is how long a message waits in its host's slot for an answer of a Counter, where the host can hold it. Elsewhere
	// it waits for the call's end.
	patience = 250 * time.Millisecond
	// leastDelay is the shortest delay that is asked for.
	leastDelay = time.Second
)

// ErrMaxWait is the error of a message that has waited for Options.MaxWait.
var ErrMaxWait = errors.New("limit: message has waited for its turn for longer than Options.MaxWait")

// Handler returns a handler that runs h within the limits. Put it outside of dedup, whose record then isn't touched while a
// message waits, and inside of middleware that changes messages, such as [sqsonce.OpenEnvelope].
//
// The returned handler's error is h's, or one of these:
//
//   - a [sqsonce.Postpone]: the message must wait, and h was not called. A worker holds the message until its turn. With a
//     function, or your own receive loop, the error's delay is the message's place in its key's line.
//   - [ErrMaxWait] in a [sqsonce.Reject]: the message has waited for longer than Options.MaxWait, and h was not called.
//   - a [*sqsonce.OptionError]: PlanOf returned a plan that can't be used.
//
// A delivery whose handler does not run because the event is done or in progress elsewhere, or because the store is down, gives
// its starts back, if it ends within a second.
func Handler(l *Limiter, h sqsonce.Handler) sqsonce.Handler {
	if h == nil || l == nil {
		return nil
	}
	return func(ctx context.Context, m *sqsonce.Message) error {
		return l.Do(ctx, m, func(ctx context.Context) error { return h(ctx, m) })
	}
}

// Do runs f within the limits for m: [Handler] describes its errors. Use it inside of a handler, for a part of its work or for a
// sqlstore.Processor.
//
// Do doesn't wait for the message's turn. It waits for answers of Counters, and where the host can't hold the message for a start that they
// allow a little later: at most 1 s for each rule, and 2 s for the message's place in the line. The end of ctx ends this wait too. The error is then a Postpone like that of any message that must wait.
func (l *Limiter) Do(ctx context.Context, m *sqsonce.Message, f func(context.Context) error) (err error) {
	uses, err := l.uses(ctx, m)
	if err != nil {
		return fmt.Errorf("limit: message %s: %w", m.ID, err)
	}
	took, err := l.enter(ctx, m, uses)
	if err != nil {
		settle.Ran(ctx, false)
		return err
	}
	began := time.Now()
	calls, skips := settle.Told(ctx)
	defer func() { // also after a panic
		ran, skipped := settle.Told(ctx)
		back := ran == calls && (skipped > skips || sqsonce.OutcomeOf(err).Kind == sqsonce.OutcomeInProgress)
		l.leave(took, back, began)
	}()
	return f(ctx)
}

// enter returns the tickets with which a message may run, or the error that postpones it.
func (l *Limiter) enter(ctx context.Context, m *sqsonce.Message, uses []use) ([]*ticket, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.closed {
		return nil, sqsonce.Postpone(leastDelay, errClosed)
	}
	p := &pass{l: l, ctx: ctx, m: m, mayHold: settle.Holding(ctx) && m.ID != "", uses: uses}
	if had := l.held[m.ID]; had != nil {
		delete(l.held, m.ID)
		p.keep(had, now)
	}
	return p.run(now)
}

// pass is the way of one delivery through its rules.
type pass struct {
	l       *Limiter
	ctx     context.Context
	m       *sqsonce.Message
	mayHold bool
	debt    bool // the message has to run now
	uses    []use
	had     *ticket // from an earlier delivery by the same host
	took    []*ticket
}

// keep goes on with a ticket that the message has, unless its key has changed. Its turn may have passed.
func (p *pass) keep(had *ticket, now time.Time) {
	for _, u := range p.uses {
		if u.rule == had.gate.rule && u.key == had.gate.key {
			u.gate(now).advance(now)
			p.had = had
			return
		}
	}
	p.drop(had, now)
}

// run takes what each rule needs, in their order. Nothing is kept while something else is waited for.
func (p *pass) run(now time.Time) ([]*ticket, error) {
	if t := p.had; t != nil && t.state == waiting && !p.owes(now) {
		return nil, p.postpone(t)
	}
	for _, u := range p.uses {
		// Only now: a rule that isn't reached remembers no key for the message.
		g, t := u.gate(now), p.had
		if t == nil || t.gate != g || t.state == gone {
			t = p.ticket(g, u.cost)
			g.line.add(t)
			g.advance(now)
			g.tryNow(t, now)
			now = p.await(t)
		}
		if !t.mayHold && !t.inTime(now) { // its host may ask SQS now: it would keep turns from those that are here
			p.drop(t, now)
		}
		owes := !t.inTime(now) && p.owes(now)
		now = time.Now()
		switch {
		case t.inTime(now): // perhaps since the host was asked
			g.use(t)
		case owes:
			p.drop(t, now)
			g.owe(t, now)
		default:
			return nil, p.postpone(t)
		}
		p.took = append(p.took, t)
		if t == p.had {
			p.had = nil
		}
	}
	for _, t := range p.took {
		if !p.debt && !t.until.After(now) && t.gate.plan.step > 0 { // its tokens have lapsed while it waited for the next rules
			return nil, p.postpone(t)
		}
	}
	return p.took, nil
}

// inTime reports whether the ticket is reserved, and its tokens have not lapsed: its host may have taken long to answer.
func (t *ticket) inTime(now time.Time) bool {
	return t.state == reserved && (t.until.After(now) || t.gate.plan.step == 0)
}

// left is how long the message may wait.
func (p *pass) left(now time.Time) time.Duration {
	if most := p.l.o.MaxWait; most > 0 && !p.m.SentAt.IsZero() {
		return p.m.SentAt.Add(most).Sub(now)
	}
	return math.MaxInt64
}

// owes reports whether the message has to run now, whatever the limits say. The host is asked without the lock.
func (p *pass) owes(now time.Time) bool {
	if !p.debt && p.left(now) > 0 {
		p.l.mu.Unlock()
		p.debt = settle.InDebt(p.ctx)
		p.l.mu.Lock()
	}
	return p.debt
}

func (p *pass) ticket(g *gate, cost int) *ticket {
	p.l.receipt++
	return &ticket{
		gate: g, group: p.m.Group, receives: p.m.ReceiveCount, cost: cost, seq: p.l.receipt,
		waited:  p.m.ReceiveCount > 1 || settle.WaitsUncounted(p.ctx),
		mayHold: p.mayHold,
	}
}

// await waits for a Counter's answer that may serve the ticket, and for its token's time, without the lock.
func (p *pass) await(t *ticket) (now time.Time) {
	g, wait := t.gate, callTimeout
	if t.mayHold {
		wait = patience
	}
	began := time.Now()
	var late <-chan time.Time
	for now = began; t.state == waiting && !g.out().down() && now.Sub(began) < wait; now = time.Now() {
		due := g.due(t, now, began.Add(wait))
		if due == nil && !g.asksCounter() {
			break
		}
		if late == nil {
			late = time.After(wait)
		}
		answer := g.answers()
		p.l.mu.Unlock()
		select {
		case <-answer:
		case <-due:
		case <-late:
		case <-p.ctx.Done():
		}
		p.l.mu.Lock()
		if now = time.Now(); due != nil {
			g.advance(now)
		}
		g.tryNow(t, now)
		if p.ctx.Err() != nil {
			break
		}
	}
	return now
}

// due is the time of the tokens that the process has for the ticket and those before it, if its host can't hold it: they are a part of a
// second ahead where the clock of DynamoDB isn't known better. nil: there are too few, or they are later than end.
func (g *gate) due(t *ticket, now, end time.Time) <-chan time.Time {
	if t.mayHold || g.counted.stock.n == 0 {
		return nil
	}
	at, ok := g.counted.stock.at(g.line.upTo(t, g.cost))
	if !ok || !at.After(now) || at.After(end) {
		return nil
	}
	return time.After(at.Sub(now))
}

// postpone returns the error of a message whose ticket waits, and gives back what was taken.
func (p *pass) postpone(t *ticket) error {
	l, g := p.l, t.gate
	now := time.Now()
	p.giveBack(t, now)
	left := p.left(now)
	if left <= 0 {
		if !g.counted.asking && !g.out().down() {
			p.drop(t, now)
			return sqsonce.Reject(fmt.Errorf("%w: %s is at its limit", ErrMaxWait, g.name()))
		}
		left = mostDelay // without the Counter it isn't known whether the key is at its limit
	}
	g.rule.counts.postponed++
	reason := fmt.Errorf("limit: %s is at its limit", g.name())
	stands := func() bool { return l.stands(g) }
	if t.mayHold {
		l.mu.Unlock()
		// Under one key each group has a line of its own in the host: one with many messages leaves room for the others.
		held, _ := settle.Room(p.ctx, g.name()+"#"+t.group)
		l.mu.Lock()
		now = time.Now()
		if held && t.state <= reserved && !l.closed {
			if t.turn == nil {
				t.turn = make(chan struct{})
			}
			if old := l.held[p.m.ID]; old != nil { // another receive of the message
				p.drop(old, now)
			}
			t.id = p.m.ID
			if l.held[t.id] = t; t.state == reserved && t.place == nil { // its turn came meanwhile
				g.keepFor(t)
				g.advance(now)
			}
			return settle.WithTurn(sqsonce.Postpone(min(g.estimate(now), max(left, leastDelay)), reason), settle.Turn{Ready: t.turn, Left: func() { l.left(t) }, Stands: stands})
		}
	}
	p.drop(t, now)
	l.mu.Unlock()
	delay := l.place(p.ctx, g, t)
	l.mu.Lock()
	return settle.WithTurn(sqsonce.Postpone(max(min(delay, mostDelay, left), leastDelay), reason), settle.Turn{Stands: stands})
}

// giveBack gives back all but t.
func (p *pass) giveBack(t *ticket, now time.Time) {
	if p.had != t && p.had != nil {
		p.drop(p.had, now)
	}
	for _, other := range p.took {
		p.drop(other, now)
	}
	p.took, p.had = nil, nil
}

// drop ends a ticket whose message does not run.
func (p *pass) drop(t *ticket, now time.Time) { t.gate.drop(t, now) }

func (g *gate) drop(t *ticket, now time.Time) {
	g.giveBack(t, now)
	g.advance(now)
}

// left is called by a host that holds the message no more.
func (l *Limiter) left(t *ticket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[t.id] == t {
		delete(l.held, t.id)
		t.gate.drop(t, time.Now())
	}
}

// leave ends a delivery that has entered. Its tokens go back where no handler was called.
func (l *Limiter) leave(took []*ticket, back bool, began time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for _, t := range took {
		g := t.gate
		if !back {
			g.ended(now.Sub(began))
		}
		g.leave(t, now, back)
		if t.slot != nil { // first: a slot that is released has advance ask for another one
			g.tend(t.slot, now)
		}
		g.advance(now)
	}
}

// owe has a message run that can't wait. What it takes is owed.
func (g *gate) owe(t *ticket, now time.Time) {
	t.state = used
	g.running++
	g.rule.counts.started++
	g.rule.counts.owed++
	switch cost := g.cost(t); {
	case g.plan.step == 0:
	case g.rule.Counter == nil:
		g.bucket.take(now, g.plan, t, cost)
		t.until = now.Add(keep)
	default:
		take := counting.Take{Key: g.name(), N: cost, Step: g.plan.step, Burst: g.plan.burst, Ahead: debtAhead, Waited: true}
		g.call(now, func(ctx context.Context) error {
			_, err := g.rule.Counter.Take(ctx, take)
			return err
		}, g.rule.asksTokens, func(time.Time, error) {})
	}
	g.takeSlot(t, now)
}

// estimate is about when the last message of the line has its turn.
func (g *gate) estimate(now time.Time) time.Duration {
	step := g.plan.step
	if g.rule.Counter != nil && step > 0 && g.counted.recent(g.plan, g.known(now)) >= 1 {
		step = g.step(now)
	}
	if g.plan.slots > 0 {
		step = max(step, g.mean/time.Duration(g.plan.slots))
	}
	d := time.Duration(min(float64(g.line.cost)*float64(step), float64(mostDelay)))
	if g.rule.Counter == nil && g.plan.step > 0 {
		d += max(0, g.bucket.at(g.plan, 1).Sub(now)-g.plan.step)
	}
	return min(max(d, g.paused.Sub(now), leastDelay), mostDelay)
}
