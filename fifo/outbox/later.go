package outbox

import (
	"context"
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
)

// mover is a store that adds events to the outbox when they are due: see [Store].
type mover interface {
	Move(ctx context.Context) (moved int, overdue time.Duration, err error)
}

const (
	// moveTime is how long a sweep begins to move due events, before it looks for groups, and moveLimit how long that may take.
	moveTime  = 2 * time.Second
	moveLimit = 6 * time.Second
)

// later is what a relay knows of the events that are not in the outbox yet.
type later struct {
	looked   time.Time     // of the last successful Move, or of the first look
	overdue  time.Duration // what that Move returned
	failures int           // of Move, in a row
	again    time.Time     // Run does not call it before
}

// moveDue has the store add the events that are due to the outbox. It returns for how long the first one that is left has been
// due. While Move fails nobody knows, so that grows with the time since it last succeeded.
func (q *queue) moveDue() (overdue time.Duration, err error) {
	r := q.j.r
	if _, ok := r.store.Store.(mover); !ok {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(q.j.ctx, moveLimit)
	defer cancel()
	for end := time.Now().Add(moveTime); q.mayMove(end); {
		var m moved
		if m, err = r.store.move(ctx); err != nil {
			break
		}
		r.mu.Lock()
		r.stats.Moved += int64(m.events)
		r.later = later{looked: time.Now(), overdue: m.overdue}
		r.mu.Unlock()
		if m.events == 0 {
			return m.overdue, nil
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	l := &r.later
	if l.looked.IsZero() {
		l.looked = time.Now()
	}
	if err != nil {
		l.failures++
		l.again = time.Now().Add(host.Double(2*r.opts.Poll, longestPause, l.failures))
	}
	return l.overdue + max(time.Since(l.looked), 0), err
}

func (q *queue) mayMove(end time.Time) bool {
	r, now := q.j.r, time.Now()
	r.mu.Lock()
	again := r.later.again
	r.mu.Unlock()
	return q.j.problem() == nil && now.Before(end) && (q.mode != always || !now.Before(again))
}
