package attack

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

// event is what happened to an event, as its hosts report it.
type event struct {
	name  string
	locks bool // in place of leases

	mu    sync.Mutex
	runs  []*run
	done  int64 // when the first delivery returned nil; 0: none did
	wrong []string
}

// run is one run of the handler. Times are those of notes.
type run struct {
	delivery  int64
	fence     int64
	started   int64
	leases    []leaseEnd
	ended     int64 // 0: its process died before
	succeeded bool  // so did its delivery
}

// leaseEnd is the end of a lease, as its host knew it at that time.
type leaseEnd struct{ at, until int64 }

func (e *event) wrongf(format string, args ...any) {
	e.wrong = append(e.wrong, fmt.Sprintf(format, args...))
}

// note notes what a host reports. The notes of one delivery come in their order, those of several in any.
func (e *event) note(n note) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch n.What {
	case started:
		e.runs = append(e.runs, &run{delivery: n.Delivery, fence: n.Fence, started: n.At, leases: []leaseEnd{{n.At, n.Until}}})
		return
	case crashed, misconfigured:
		e.wrongf("%s: %s", n.What, n.Error)
	case succeeded:
		if e.done == 0 || n.At < e.done {
			e.done = n.At
		}
	}
	i := len(e.runs) - 1
	for i >= 0 && e.runs[i].delivery != n.Delivery { // an inbox may run the handler several times: the last one
		i--
	}
	if i < 0 {
		return // the delivery did not run
	}
	switch r := e.runs[i]; n.What {
	case renewed:
		r.leases = append(r.leases, leaseEnd{n.At, n.Until})
	case goesOn:
		e.wrongf("run %d goes on %s after the end of its lease with a context that is not cancelled", i, time.Duration(n.At-n.Until))
	case ended:
		r.ended = n.At
	case succeeded:
		r.succeeded = true
	}
}

func (e *event) isDone() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.done != 0
}

// late reports that the run started when its lease was over: the machine was slow, or the process was stopped before the
// handler's first statement. Such a run is cancelled, and the fence decides.
func (r *run) late() bool { return r.leases[0].until <= r.started }

// lease returns the end of the run's lease as its host knew it at a time. A run that has ended has none.
func (r *run) lease(at int64) (until int64) {
	if r.ended != 0 && r.ended <= at {
		return at
	}
	for _, l := range r.leases {
		if l.at <= at {
			until = l.until
		}
	}
	return until
}

// check compares the runs, when all hosts have ended.
func (e *event) check(t *testing.T) {
	t.Helper()
	for _, wrong := range e.violations() {
		t.Errorf("%s: %s", e.name, wrong)
	}
}

func (e *event) violations() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	slices.SortStableFunc(e.runs, func(a, b *run) int { return cmp.Compare(a.started, b.started) })
	for i, r := range e.runs {
		if r.late() {
			continue
		}
		if e.done != 0 && e.done < r.started {
			e.wrongf("run %d started after the event was done", i)
		}
		if e.locks { // a row's lock decides, and the effects are counted
			continue
		}
		for j, other := range e.runs[:i] {
			if other.fence >= r.fence {
				e.wrongf("run %d has fence %d, run %d before it %d", i, r.fence, j, other.fence)
			}
			if until := other.lease(r.started); until > r.started {
				e.wrongf("run %d started %s before the end of run %d's lease", i, time.Duration(until-r.started), j)
			}
			if other.succeeded {
				e.wrongf("run %d succeeded although run %d had taken the event over", j, i)
			}
		}
	}
	if e.done == 0 {
		e.wrongf("lost: no delivery of %d runs was a success", len(e.runs))
	}
	if len(e.runs) == 0 {
		e.wrongf("done without a run")
	}
	return e.wrong
}
