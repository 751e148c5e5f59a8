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
	name   string
	locks  bool // in place of leases: they keep no owners apart
	faulty bool // the server may look misconfigured

	mu        sync.Mutex
	runs      []*run
	done      int64 // when the first delivery returned nil; 0: none did
	completed int64 // when a store had first recorded it, or a delivery returned nil; 0: neither
	wrong     []string
}

// run is one run of the handler. Times are those of notes.
type run struct {
	delivery  int64
	fence     int64
	started   int64
	late      bool  // its lease was over at the start
	until     int64 // the end of its last lease
	ended     int64 // 0: its process died before
	succeeded bool  // so did its delivery
}

func (e *event) wrongf(format string, args ...any) {
	e.wrong = append(e.wrong, fmt.Sprintf(format, args...))
}

// note notes what a host reports. The notes of one delivery come in their order, those of several in any.
func (e *event) note(n note) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch n.What {
	case started:
		// A late run: the machine was slow, or the process was stopped before the handler's first statement. It is cancelled,
		// and the fence decides.
		e.runs = append(e.runs, &run{delivery: n.Delivery, fence: n.Fence, started: n.At, late: n.Until <= n.At, until: n.Until})
		return
	case crashed, misconfigured:
		if n.What == crashed || !e.faulty {
			e.wrongf("%s: %s", n.What, n.Error)
		}
	case completed:
		e.completed = earliest(e.completed, n.At)
	case succeeded:
		e.done, e.completed = earliest(e.done, n.At), earliest(e.completed, n.At)
	}
	i := len(e.runs) - 1
	for i >= 0 && e.runs[i].delivery != n.Delivery { // an inbox may run the handler several times: the last one
		i--
	}
	if i < 0 { // the delivery did not run
		if n.What == accused {
			e.wrongf("%s, unrun: %s", n.What, n.Error)
		}
		return
	}
	r := e.runs[i]
	r.until = max(r.until, n.Until)
	switch n.What {
	case goesOn:
		e.wrongf("run %d goes on %s after the end of its lease with a context that is not cancelled", i, time.Duration(n.At-n.Until))
	case ended:
		r.ended = n.At
	case succeeded:
		r.succeeded = true
	}
}

// earliest is the earlier time of two; 0 is none.
func earliest(a, b int64) int64 {
	if a == 0 {
		return b
	}
	return min(a, b)
}

func (e *event) isDone() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.done != 0
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
		if r.late {
			continue
		}
		if e.completed != 0 && e.completed < r.started {
			e.wrongf("run %d started after the event was done", i)
		}
		if e.locks { // a row's lock decides, and the effects are counted
			continue
		}
		for j, other := range e.runs[:i] {
			if other.fence >= r.fence {
				e.wrongf("run %d has fence %d, run %d before it %d", i, r.fence, j, other.fence)
			}
			// Also where that lease was granted after the start: the renewal should have been refused.
			if other.until > r.started && (other.ended == 0 || other.ended > r.started) {
				e.wrongf("run %d started %s before the end of run %d's lease", i, time.Duration(other.until-r.started), j)
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
