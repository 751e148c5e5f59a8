package outbox

import (
	"errors"
	"time"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/fifokit"
)

const (
	// ahead is how many events of a group the publisher has at once. It has one of them in flight, and begins with the next one
	// in the moment of the answer, together with those of the other groups in the request.
	ahead = 10
	// dedupWindow is how long after a send SQS certainly drops a copy.
	dedupWindow = 285 * time.Second
)

// sent is the result of a page.
type sent struct {
	confirmed  []Entry
	failed     Entry
	err        error // why failed was not confirmed
	stale, cut bool  // the rest was not sent: it is too old, or the call ends
}

// result is a place in the row of events that the publisher has.
type result struct {
	pending *fifo.PublishResult
	err     error // it was not accepted
}

// send sends events of a group. After one that is not confirmed no further one is given to the publisher, which itself sends none
// that it already has: they were to come after it.
func (j *job) send(l *lane, g *group, page []Entry, read instant) (s sent) {
	r := j.r
	var row []result // of page[done:next]
	open, next := true, 0
	for done := 0; ; done++ {
		for open && next < len(page) && next-done < ahead {
			s.stale, s.cut = r.clocks().since(read) > r.opts.MaxAge, j.stop.Err() != nil
			if open = !s.stale && !s.cut; !open {
				break
			}
			j.countCopy(g, page[next])
			p, err := l.Enqueue(l.ctx, page[next].Event)
			row = append(row, result{p, err})
			next++
			open = err == nil
		}
		if done == next {
			break
		}
		e, res := page[done], row[0]
		row = row[1:]
		if res.err == nil {
			_, res.err = res.pending.Get(l.read)
		}
		r.note(g, e, read, res.err)
		switch {
		case res.err != nil && s.err == nil:
			open, s.failed, s.err = false, e, res.err
		case res.err == nil && (s.err == nil || !fifokit.IsFIFO(r.publisher)): // on a standard queue no event waits for another one
			s.confirmed = append(s.confirmed, e)
		}
		if len(row) > 0 && !s.stale && r.clocks().since(read) > r.opts.MaxAge {
			// The process was frozen. What the visits of the lane gave to the publisher is as old.
			open, s.stale = false, true
			l.cancel(errStale)
		}
	}
	if s.stale {
		r.count(func(s *Stats) { s.Stale++ })
	}
	return s
}

// countCopy counts an event that SQS may have in its queue, and no longer recognises.
func (j *job) countCopy(g *group, e Entry) {
	if u := &g.unanswered; u.id == e.ID && j.r.clocks().since(u.first) > dedupWindow {
		j.r.count(func(s *Stats) { s.Copies++ })
	}
}

// note keeps what a result says. read is when the event was read, a little before it was sent.
func (r *Relay) note(g *group, e Entry, read instant, err error) {
	u := &g.unanswered
	switch {
	case err == nil:
		r.count(func(s *Stats) { s.Published++ })
		g.known.Confirmed = max(g.known.Confirmed, e.Seq)
		if u.id == e.ID {
			u.id = ""
		}
	case isUnknown(err):
		r.count(func(s *Stats) { s.Unknown++ })
		if u.id != e.ID {
			u.id, u.first = e.ID, read
		}
	}
}

// isUnknown reports whether the event may be in the queue. So it is also where the publisher had no result in time.
func isUnknown(err error) bool {
	_, result := errors.AsType[*fifo.PublishError](err)
	return !result || errors.Is(err, fifo.ErrUnknownOutcome)
}

// sendTrouble returns whom a failure meets that does not refuse the event.
func sendTrouble(l *lane, err error) trouble {
	switch {
	case errors.Is(err, fifo.ErrClosed):
		return final
	case errors.Is(err, fifo.ErrGroupHalted): // by an event of another user of the publisher
		return passes
	case l.ctx.Err() != nil, isUnknown(err):
		return common
	default: // SQS refused the request, or there was no way to it
		return refuses
	}
}
