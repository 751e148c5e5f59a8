package memsqs

import (
	"context"
	"slices"
	"time"
)

// poll is a ReceiveMessage that waits. A message that becomes receivable goes to the oldest poll of its queue, whether or
// not the client of that poll is still there: AWS cannot tell either, and the message stays hidden for its visibility
// timeout.
type poll struct {
	q    *queue
	r    *request
	got  []receivedMessage
	err  error
	done chan struct{} // closed when got or err is set
}

// wait makes a poll wait for messages. The caller holds the server's lock and calls await without it.
func (q *queue) wait(r *request) *poll {
	p := &poll{q: q, r: r, done: make(chan struct{})}
	q.polls = append(q.polls, p)
	q.disturb() // arms the timer
	return p
}

// await returns what a poll was given, or nothing at the end of its wait time or of the server.
func (s *Server) await(ctx context.Context, p *poll) ([]receivedMessage, error) {
	t := time.NewTimer(p.r.wait)
	defer t.Stop()
	select {
	case <-p.done:
	case <-t.C:
	case <-ctx.Done():
	}
	err := s.update(func(now time.Time) error {
		if i := slices.Index(p.q.polls, p); i >= 0 {
			// A message that appears in the very moment the wait ends may be taken: settle before leaving.
			p.q.settle(now)
		}
		if i := slices.Index(p.q.polls, p); i >= 0 {
			p.q.polls = slices.Delete(p.q.polls, i, i+1)
			p.q.disturb()
		}
		return p.err
	})
	return p.got, err
}

// settle gives receivable messages to the polls that wait, oldest poll first, and sets the timer for the next moment at
// which time alone can make a message receivable.
func (q *queue) settle(now time.Time) {
	q.advance(now)
	for len(q.polls) > 0 {
		p := q.polls[0]
		if q.gone {
			p.err = queueDoesNotExist()
		} else if p.got, p.err = q.receive(p.r, now); len(p.got) == 0 && p.err == nil {
			break
		}
		q.polls = q.polls[1:]
		close(p.done)
	}
	if q.timer != nil {
		q.timer.Stop()
		q.timer = nil
	}
	if len(q.polls) > 0 && q.hidden.len() > 0 {
		q.timer = time.AfterFunc(q.hidden.top().visibleAt.Sub(now), func() {
			// update finds nothing else to do, and never fails.
			_ = q.server.update(func(time.Time) error { q.disturb(); return nil })
		})
	}
}
