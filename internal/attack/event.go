package attack

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// event is what happened to an event.
type event struct {
	name  string
	locks bool // in place of leases

	mu    sync.Mutex
	runs  []*run
	done  bool // a delivery returned nil
	wrong []string
}

// run is one run of the handler.
type run struct {
	ctx   context.Context
	fence int64
	ended bool
}

func (e *event) wrongf(format string, args ...any) {
	e.wrong = append(e.wrong, fmt.Sprintf(format, args...))
}

// start notes a run. Another run may be going on only where its lease is over, by what its own host knows: all hosts have
// the same clock here.
func (e *event) start(ctx context.Context) *run {
	now := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	r := &run{ctx: ctx}
	l, _ := dedup.LeaseFrom(ctx)
	r.fence = l.Fence
	if e.done {
		e.wrongf("run %d started after the event was done", len(e.runs))
	}
	// Where a row's lock decides, the effects are counted at the end. With a lease that is over (the machine was slow) the run
	// is cancelled, and the fence decides.
	if e.locks || !l.Until.After(now) {
		e.runs = append(e.runs, r)
		return r
	}
	for i, other := range e.runs {
		if other.fence >= r.fence {
			e.wrongf("run %d has fence %d, run %d before it %d", len(e.runs), r.fence, i, other.fence)
		}
		if l, _ := dedup.LeaseFrom(other.ctx); !other.ended && other.ctx.Err() == nil && l.Until.After(now) {
			e.wrongf("run %d started %s before the end of run %d's lease", len(e.runs), l.Until.Sub(now), i)
		}
	}
	e.runs = append(e.runs, r)
	return r
}

func (e *event) end(r *run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r.ended = true
}

// delivered notes a delivery's outcome.
func (e *event) delivered(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case err == nil:
		e.done = true
	case errors.Is(err, dedup.ErrCrashed):
		e.wrongf("a crash: %v", err)
	case errors.Is(err, sqsonce.ErrMisconfigured):
		e.wrongf("misconfigured: %v", err)
	}
}

func (e *event) isDone() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.done
}

func (e *event) check(t *testing.T) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, wrong := range e.wrong {
		t.Errorf("%s: %s", e.name, wrong)
	}
	if !e.done {
		t.Errorf("%s: lost: no delivery of %d runs was a success", e.name, len(e.runs))
	}
	if len(e.runs) == 0 {
		t.Errorf("%s: done without a run", e.name)
	}
}
