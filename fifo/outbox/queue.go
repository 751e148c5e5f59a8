package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
)

// mode is how a call goes on after a visit that failed.
type mode int

const (
	untilGone mode = iota // Drain: it tries again what passes
	once                  // Sweep: the next sweep does
	always                // Run: the same, after a pause if nothing succeeds
)

// queue is the groups that a job has to visit. One turn publishes one page of a group. If the group has more it goes to the
// back, so a group with a million events delays the others by a page at a time. Goroutines visit them, at most Options.Groups,
// and end when the queue is empty.
type queue struct {
	j       *job
	mode    mode
	changed chan struct{} // has an element after a change that a wait may be for

	mu       sync.Mutex
	tasks    []*task          // to be visited
	known    map[string]*task // those, the ones that are being visited, and those that wait to be tried again
	active   int              // goroutines
	visiting int              // of them
	fresh    int              // tasks that a sweep has found, and of which the visit has not begun
	errs     map[string]error // of groups that are not published
	fatal    error            // nothing more is sent
	rounds   rounds
	seen     *Backlog // of the sweep that is under way; nil: there is none
}

type task struct {
	found Group
	fresh bool  // see queue.fresh
	swept bool  // found by a sweep, and not rung
	again bool  // rung since its visit began
	tries int   // visits in a row that have failed
	err   error // of the last one
}

func newQueue(j *job, m mode) *queue {
	return &queue{
		j: j, mode: m, changed: make(chan struct{}, 1), known: make(map[string]*task), errs: make(map[string]error),
		rounds: rounds{groups: j.r.opts.Groups, poll: j.r.opts.Poll},
	}
}

// push adds a group that was named: what it has may have been committed after the last look at it.
func (q *queue) push(g Group) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t := q.known[g.Name]; t != nil {
		t.again, t.swept = true, false
		return
	}
	q.add(&task{found: g})
}

// pushFound adds a group that a sweep has found.
func (q *queue) pushFound(g Group) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.known[g.Name] == nil {
		q.fresh++
		q.add(&task{found: g, fresh: true, swept: true})
	}
}

// add adds a task. The caller holds the lock.
func (q *queue) add(t *task) {
	q.known[t.found.Name] = t
	q.tasks = append(q.tasks, t)
	q.start()
}

// start starts a goroutine if there is work for one. The caller holds the lock.
func (q *queue) start() {
	if len(q.tasks) > 0 && q.active < q.rounds.width() {
		q.active++
		go q.work()
	}
}

func (q *queue) work() {
	for {
		q.mu.Lock()
		if len(q.tasks) == 0 {
			q.active--
			q.mu.Unlock()
			q.notify()
			return
		}
		t := q.tasks[0]
		q.tasks = q.tasks[1:]
		q.start() // after a success more may run
		fresh := t.fresh
		if fresh {
			t.fresh = false
			q.fresh--
		}
		t.again = false
		err := q.problem()
		if err == nil {
			q.visiting++
		}
		q.mu.Unlock()
		q.notify()
		if err != nil {
			q.finish(t, because(err, t.err))
			continue
		}
		q.visit(t, fresh)
		q.mu.Lock()
		q.visiting--
		q.mu.Unlock()
	}
}

// problem returns why the queue visits nothing more, or nil. The caller holds the lock.
func (q *queue) problem() error {
	if q.fatal != nil {
		return q.fatal
	}
	if q.mode == always && (q.rounds.paused() || q.rounds.lost > 0 && q.rounds.failures+q.visiting >= q.rounds.width()) {
		return errPaused
	}
	return q.j.problem()
}

var errPaused = errors.New("outbox: no visit has succeeded for a while")

// because returns why nothing more is visited, with what kept the last visit from it.
func because(end, last error) error {
	if last == nil || errors.Is(last, end) {
		return end
	}
	return fmt.Errorf("%w; before: %w", end, last)
}

// visit has one turn of a group.
func (q *queue) visit(t *task, fresh bool) {
	r := q.j.r
	g, busy := r.enter(t.found.Name)
	if busy != nil {
		if t.swept { // somebody is at it
			q.finish(t, nil)
			return
		}
		q.later(t, func() bool {
			select {
			case <-busy:
				return true
			case <-q.j.stop.Done():
				return false
			}
		}, nil)
		return
	}
	v := failed(passes, context.Cause(q.j.stop))
	select {
	case r.slots <- struct{}{}:
		v = q.j.visit(g, t.found)
		<-r.slots
	case <-q.j.stop.Done():
	}
	r.mu.Lock()
	saw := g.saw
	r.mu.Unlock()
	r.leave(g)
	if fresh {
		q.note(t.found, saw)
	}
	q.visited(t, v)
}

// visited decides what follows from a visit.
func (q *queue) visited(t *task, v visited) {
	t.err = nil
	if v.progress {
		q.mu.Lock()
		q.rounds.succeeded()
		t.tries = 0
		q.mu.Unlock()
	}
	retry := false
	switch v.trouble {
	case noTrouble:
		t.tries = 0
		if q.again(t, v.more) {
			return
		}
		v.err = nil
	case waits:
		if q.again(t, false) {
			return
		}
		if q.mode == always {
			q.j.r.logWaits(q.j.ctx, t.found.Name, v.err)
		}
	case passes:
		claimed := errors.Is(v.err, errClaimed)
		retry = q.mode == untilGone || t.tries < sweepTries && !(claimed && t.swept)
		if claimed && !retry { // another relay publishes it
			v.err = nil
		}
	case common, refuses:
		retry = q.mode == untilGone && v.trouble == common
		q.failed(t.found.Name, v.err)
	case final:
		q.mu.Lock()
		q.fatal = v.err
		q.mu.Unlock()
	}
	if !retry {
		q.finish(t, v.err)
		return
	}
	t.tries++
	t.err = v.err
	most := longestPause
	if v.trouble == passes {
		most = time.Second
	}
	delay := host.Jitter(firstDelay, most, t.tries)
	q.later(t, func() bool { return host.Wait(q.j.stop, delay) }, v.err)
}

// sweepTries is how often a sweep visits a group again that another transaction is at.
const sweepTries = 3

// again puts a task at the back of the queue, if there is more to do.
func (q *queue) again(t *task, more bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	more = more || t.again
	if more && (q.mode != always || len(q.tasks) < mostRemembered) { // else the next sweep finds it
		q.tasks = append(q.tasks, t)
		return true
	}
	return false
}

// later puts a task into the queue again when wait has returned true, and else finishes it with err.
func (q *queue) later(t *task, wait func() bool, err error) {
	q.mu.Lock()
	q.active++
	q.mu.Unlock()
	go func() {
		ok := wait()
		if !ok {
			q.finish(t, cmp.Or(err, context.Cause(q.j.stop)))
		}
		q.mu.Lock()
		q.active--
		if ok {
			q.add(t)
		}
		q.mu.Unlock()
		q.notify()
	}()
}

// finish removes a task. err says why its group has something left.
func (q *queue) finish(t *task, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	name := t.found.Name
	delete(q.known, name)
	halted := errors.Is(err, ErrHalted)
	switch {
	case q.mode == always, q.mode == once && halted: // the one is logged, the other in the Backlog
	case err != nil && (q.mode == untilGone || len(q.errs) < mostErrors):
		q.errs[name] = err
	case err != nil:
		q.errs[""] = errMore
	}
}

const mostErrors = 20

var errMore = errors.New("outbox: further groups have events left")

// failed notes a failure that meets other groups too.
func (q *queue) failed(group string, err error) {
	q.mu.Lock()
	q.rounds.failed()
	full := q.rounds.failures >= q.rounds.width()
	switch {
	case q.mode == once && full && q.fatal == nil:
		q.fatal = fmt.Errorf("outbox: no group could be published: %w", err)
	case q.mode == always && (full || q.active == 1 && len(q.tasks) == 0 && q.seen == nil):
		q.rounds.end()
	}
	q.mu.Unlock()
	if q.mode == always {
		q.j.r.logFailed(q.j.ctx, group, err)
	}
}

// err joins one [*GroupError] for each group that has something left.
func (q *queue) err() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	var names []string
	for name := range q.errs {
		names = append(names, name)
	}
	slices.Sort(names)
	var errs []error
	for _, name := range names {
		err := q.errs[name]
		if _, named := errors.AsType[*GroupError](err); !named && name != "" { // errMore is of none
			err = &GroupError{Group: name, Err: err}
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (q *queue) notify() {
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

// wait waits until all groups are published or finished.
func (q *queue) wait() {
	for {
		q.mu.Lock()
		active := q.active
		q.mu.Unlock()
		if active == 0 {
			return
		}
		<-q.changed
	}
}
