package outbox

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce/internal/fifokit"
)

// job is one call of Drain, Sweep or Run: its contexts, and the state that its visits share.
type job struct {
	r       *Relay
	stop    context.Context // when it ends, no visit begins and nothing more is sent
	ctx     context.Context // of requests
	late    context.Context // of deletes and marks: what SQS has said is written down also after the end of ctx
	endLate func()
	last    time.Time // no visit begins after it; zero: no such time
	lanes   lanes
	deletes deletes
}

const (
	// lastVisit is how long before the deadline of a call the last visit begins, and lastPart the part of the call's time, where
	// that is less: a function with a timeout of 6 s would never begin one.
	lastVisit = 10 * time.Second
	lastPart  = 3
	// lateTime is how long after the end of a call's context its last deletes may take.
	lateTime = 2 * time.Second
)

func (r *Relay) newJob(stop, ctx context.Context) *job {
	j := &job{r: r, stop: stop, ctx: ctx}
	j.late, j.endLate = outlive(ctx, lateTime)
	life := min(r.opts.LeaseDuration*5/6, r.opts.MaxAge)
	if deadline, ok := ctx.Deadline(); ok {
		j.last = deadline.Add(-min(lastVisit, time.Until(deadline)/lastPart))
	}
	j.lanes = lanes{j: j, life: life}
	j.deletes = deletes{j: j}
	return j
}

func (j *job) end() {
	j.endLate()
	j.r.lines.Flush(logFlush)
}

// begin settles what a refused delete has left: while deletes are refused nothing is sent.
func (j *job) begin() error {
	r := j.r
	r.mu.Lock()
	denied := r.denied != nil
	var es []Entry
	for g := range r.owing {
		if denied && g.ended == nil && len(es) < mostDeletes {
			es = append(es, g.owed...)
		}
	}
	r.mu.Unlock()
	if len(es) > 0 {
		left, err := r.store.delete(j.late, es)
		r.settle(es, left, err)
	}
	return r.deniedError()
}

func (r *Relay) deniedError() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.denied
}

// problem returns why no visit may begin, or nil.
func (j *job) problem() error {
	if err := context.Cause(j.stop); err != nil {
		return err
	}
	if !j.last.IsZero() && !time.Now().Before(j.last) {
		return errNoTime
	}
	return j.r.deniedError()
}

var errNoTime = errors.New("outbox: too little time is left before the context's deadline")

// lane is a publisher's lane, in which several visits share requests. It ends before the leases of their claims do, and before
// the events that they read are older than MaxAge.
type lane struct {
	fifokit.Lane
	ctx      context.Context // of the requests
	read     context.Context // ends a little later: results are read until then
	cancel   context.CancelCauseFunc
	closeAll func()
	opened   time.Time
	visits   int
}

// lanes are the open lanes of a job. A lane takes visits for half of its life, so that each has at least the other half.
type lanes struct {
	j    *job
	life time.Duration

	mu      sync.Mutex
	current *lane
	all     int // visits
}

var errVisitOver = errors.New("outbox: the visit took its whole time")

// resultTime is how long after the end of a lane its last results come: the publisher waits 100 ms for a request that it cancels.
const resultTime = 200 * time.Millisecond

// enter returns a lane for a visit that begins, and what to call at its end.
func (ls *lanes) enter() (*lane, func()) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.current
	if l == nil || l.ctx.Err() != nil || time.Since(l.opened) > ls.life/2 {
		l = ls.open()
		ls.current = l
	}
	l.visits++
	ls.all++
	return l, func() { ls.leave(l) }
}

func (ls *lanes) open() *lane {
	ctx, cancel := context.WithCancelCause(ls.j.ctx)
	life := ls.life
	if deadline, ok := ls.j.ctx.Deadline(); ok { // the deletes need some of the time
		life = min(life, time.Until(deadline)*9/10)
	}
	timed, stop := context.WithTimeoutCause(ctx, life, errVisitOver)
	l := &lane{ctx: timed, cancel: cancel, opened: time.Now()}
	var closeLane func()
	l.Lane, closeLane = fifokit.OpenLane(ls.j.r.publisher, timed)
	read, endRead := outlive(timed, resultTime)
	l.read = read
	l.closeAll = func() {
		closeLane()
		endRead()
		stop()
		cancel(nil)
	}
	return l
}

func (ls *lanes) leave(l *lane) {
	ls.mu.Lock()
	l.visits--
	ls.all--
	last := l.visits == 0
	if last && ls.current == l {
		ls.current = nil
	}
	ls.mu.Unlock()
	if last {
		l.closeAll()
	}
}

// others reports whether the job has more than one visit.
func (ls *lanes) others() bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.all > 1
}
