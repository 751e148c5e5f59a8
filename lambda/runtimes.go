package lambda

import (
	"slices"
	"sync"
	"time"
)

// runTimes are the latest run times of the handlers in this process, whatever they returned. A run that was cut off at the
// margin doesn't count, because it tells how long the handler was given, not how long it takes.
type runTimes struct {
	mu      sync.Mutex
	latest  [100]time.Duration
	longest time.Duration // of latest
	n       int           // recorded since the process started
}

func (r *runTimes) add(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := &r.latest[r.n%len(r.latest)]
	old := *at
	*at = d
	if r.longest = max(r.longest, d); old == r.longest {
		r.longest = slices.Max(r.latest[:])
	}
	r.n++
}

// known reports whether enough of them are recorded to expect others to take as long.
func (r *runTimes) known() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n >= 8
}

// fit reports whether the 95th percentile of the run times is at most left. It is true while none is known.
func (r *runTimes) fit(left time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.longest <= left {
		return true
	}
	longer, known := r.longer(left)
	return longer*20 <= known
}

// noneFits reports whether the 5th percentile of the run times is more than left.
func (r *runTimes) noneFits(left time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	longer, known := r.longer(left)
	return (known-longer)*20 <= known
}

func (r *runTimes) longer(than time.Duration) (longer, known int) {
	known = min(r.n, len(r.latest))
	for _, d := range r.latest[:known] {
		if d > than {
			longer++
		}
	}
	return longer, known
}

// mayStart reports whether a message can end before the margin, as far as the run times say. One message of each invocation
// may start whatever they say: if all were refused, no run would ever be shorter. So may one in its last receive, or in
// the last part of its retention, which would go to the dead-letter queue without a run.
func (v *invocation) mayStart(record int) bool {
	if !v.times.limited() || v.anyStarted.CompareAndSwap(false, true) {
		return true
	}
	return v.runTimes.fit(time.Until(v.times.at(handlersStop))) || (v.isLastReceive(record) || v.isLastTime(record)) && v.ctx.Err() == nil
}
