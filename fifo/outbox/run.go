package outbox

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// stopTime is how long the requests of Run may take after the end of its context.
const stopTime = 5 * time.Second

// Run sweeps every Options.Poll, and visits the groups that Ring names at once, until ctx ends. It then lets its requests end,
// which takes 10 s at most, and returns nil.
//
// While every visit fails, Run pauses, at first for two polls, then for twice as long after each round, up to 30 s. The first
// success ends the pause. The reason is a line at ERROR once a minute. While due events can't be added to the outbox, Run goes on
// to publish those that are in it, and hears Ring. An error ends Run if it would do harm to go on, because
// the store refuses for good to delete an event that SQS has confirmed ([ErrDenied]), or the publisher is closed
// ([fifo.ErrClosed]).
func (r *Relay) Run(ctx context.Context) error {
	work, end := outlive(ctx, stopTime)
	defer end()
	j := r.newJob(ctx, work)
	defer j.end()
	if err := j.begin(); err != nil {
		return err
	}
	r.setBegan(time.Now())
	defer r.setBegan(time.Time{})
	q := newQueue(j, always)
	for ctx.Err() == nil && q.fatalError() == nil {
		q.turn(ctx)
	}
	q.wait()
	return q.fatalError()
}

// setBegan notes that Run has begun, or with zero that it has ended: what a sweep saw before says nothing of the time after it.
func (r *Relay) setBegan(at time.Time) {
	r.count(func(s *Stats) { s.Began, s.Swept = at, time.Time{} })
}

// turn sweeps once, and waits for the next time.
func (q *queue) turn(ctx context.Context) {
	r := q.j.r
	q.pushRung()
	for _, name := range r.owingGroups() {
		q.push(Group{Name: name})
	}
	var overdue time.Duration
	var moveErr error
	q.hearWhile(func() { overdue, moveErr = q.moveDue() })
	if moveErr != nil && ctx.Err() == nil {
		r.logMove(ctx, moveErr)
	}
	b, err := q.sweep(max(r.opts.Settle, 0))
	q.mu.Lock()
	b.Overdue = overdue
	seen := *b
	q.mu.Unlock()
	if err == nil {
		r.keepBacklog(seen)
	}
	if (seen.Groups > 0 || seen.Overdue > 0) && r.due(func(e *episodes) *time.Time { return &e.swept }) {
		r.logSwept(ctx, seen)
	}
	if err != nil && !errors.Is(err, errPaused) && ctx.Err() == nil && q.fatalError() == nil { // the store does not answer
		q.failed("", err)
	}
	q.rest()
}

// hearWhile visits the groups that are rung until f has returned.
func (q *queue) hearWhile(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	for {
		select {
		case <-q.j.r.ring:
			q.pushRung()
		case <-done:
			return
		}
	}
}

// rest waits until the next sweep: a poll, or as long as the pause lasts.
func (q *queue) rest() {
	poll := q.j.r.opts.Poll
	next := time.Now().Add(poll - poll/10 + rand.N(poll/5+1))
	for {
		q.mu.Lock()
		at, fatal := next, q.fatal
		if q.rounds.paused() {
			at = q.rounds.until
		}
		lost := q.rounds.lost > 0 && q.visiting > 0 && !q.rounds.paused() // what is under way says whether to go on
		q.mu.Unlock()
		d := time.Until(at)
		if lost {
			d = restTime
		}
		if d <= 0 || fatal != nil || q.j.stop.Err() != nil {
			return
		}
		t := time.NewTimer(d)
		q.await(t.C)
		t.Stop()
	}
}

func (q *queue) fatalError() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.fatal
}

// Ring tells Run of groups with work. It never blocks. Ring keeps 10,000 names while Run doesn't look at them, and the next
// sweep finds the groups that it forgets.
func (r *Relay) Ring(groups ...string) {
	r.mu.Lock()
	for _, name := range groups {
		if name != "" && len(r.rung) < mostRemembered {
			r.rung[name] = struct{}{}
		}
	}
	r.mu.Unlock()
	select {
	case r.ring <- struct{}{}:
	default:
	}
}

// pushRung puts the groups that were rung into the queue. In a pause they wait: a producer that goes on would end every pause.
func (q *queue) pushRung() {
	q.mu.Lock()
	paused := q.rounds.paused()
	q.mu.Unlock()
	if paused {
		return
	}
	r := q.j.r
	r.mu.Lock()
	rung := r.rung
	r.rung = make(map[string]struct{})
	r.mu.Unlock()
	for name := range rung {
		q.push(Group{Name: name})
	}
}
