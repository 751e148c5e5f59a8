package fifo

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var errWindowOver = errors.New("fifo: deduplication window is over")

// send makes one attempt for the entries of a batch, which are in flight, and settles them.
func (p *Publisher) send(l *lane, batch []*entry) {
	batch, late := p.begin(batch)
	var answers []answer
	if len(batch) > 0 {
		answers = p.attempt(l.ctx, batch)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests--
	for _, e := range late {
		p.fail(e, e.ending(errWindowOver))
	}
	throttled := false
	for i, e := range batch {
		throttled = throttled || answers[i].proof == provesThrottle
		p.settle(e, answers[i])
	}
	if throttled {
		p.pause.throttled(time.Now())
	}
	p.dispatch()
}

// begin starts the windows of entries at their first attempt and sorts out those whose window is over. It runs right
// before the request, since anything may have passed since the entries were taken: the process may have been frozen.
func (p *Publisher) begin(batch []*entry) (inTime, late []*entry) {
	now := p.clocks()
	for _, e := range batch {
		if e.attempts == 0 {
			e.first = now
		} else if now.since(e.first) > p.window {
			late = append(late, e)
			continue
		}
		e.attempts++
		inTime = append(inTime, e)
	}
	return inTime, late
}

// settle acts on what an attempt proved. The caller holds the lock.
func (p *Publisher) settle(e *entry, a answer) {
	e.lastErr = a.err
	if a.proof == provesRefused && e.unknown {
		// An earlier attempt may be in the queue all the same, or still on its way there. Ending here would let the group's
		// next event overtake it; another attempt may yet be answered with success.
		a.proof = provesNotSent
	}
	switch a.proof {
	case provesSent:
		p.pause.n = 0
		p.groups.remove(e)
		p.answer(e, p.receipt(e, a), nil)
		return
	case provesRefused:
		p.fail(e, e.ending(nil))
		return
	case provesNothing:
		e.unknown = true
	}

	if e.lane.ctx.Err() != nil {
		p.abandon(e)
		return
	}
	left := p.window - lastChance - p.clocks().since(e.first)
	if left <= 0 {
		p.fail(e, e.ending(errWindowOver))
		return
	}
	p.opts.Logger.Debug("fifo: attempt failed", "event", e.pending.event, "group", e.pending.group, "attempt", e.attempts,
		"unknown", a.proof == provesNothing, "error", a.err)
	var wait time.Duration // throttled: the pause of the whole queue is enough
	if a.proof != provesThrottle {
		wait = min(delay(e.attempts), left)
	}
	p.groups.retry(e, wait, &p.mu, p.dispatch)
}

// fail ends an entry that may not be left out, and the group's later ones with it: they would be delivered before it if
// it was published again. The caller holds the lock.
func (p *Publisher) fail(e *entry, err error) {
	followers := p.groups.halt(e)
	p.answer(e, Receipt{}, err)
	for _, f := range followers {
		if f.lane.ctx.Err() != nil {
			p.answer(f, Receipt{}, f.ending(context.Cause(f.lane.ctx))) // it was about to be abandoned itself
			continue
		}
		p.answer(f, Receipt{}, halted(e.pending.event, err))
	}
}

// halted holds the earlier event's error as text only: the later one's outcome is not unknown.
func halted(earlier string, err error) error {
	return fmt.Errorf("%w: event %.128q: %v", ErrGroupHalted, earlier, err)
}

// takeBack removes an entry whose caller has left, unless it is in a request or may have been enqueued by one. Later ones
// of its group move up: leaving it out was its caller's choice. The caller holds the lock.
func (p *Publisher) takeBack(e *entry, why error) bool {
	if e.inFlight || e.unknown {
		return false
	}
	p.groups.remove(e)
	p.answer(e, Receipt{}, e.ending(why))
	return true
}

// answer resolves an entry that is in no group any longer. The caller holds the lock.
func (p *Publisher) answer(e *entry, r Receipt, err error) {
	e.pending.receipt = r
	if err != nil {
		e.pending.err = e.pending.fail(err)
	}
	delete(p.entries, e)
	p.guard.settle(e, err == nil || e.unknown, time.Now())
	p.room.give(e.size)
	close(e.pending.done)
}
