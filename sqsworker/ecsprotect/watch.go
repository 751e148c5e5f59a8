package ecsprotect

import (
	"context"
	"time"

	"github.com/sqsonce/sqsonce/internal/workerkit"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// phase is where a task is between a deployment's wish and its handlers.
//
//	phase      | a long handler runs       | none does         | protected for Most | no handler runs | open for Open
//	idle       | protected, when ECS says so
//	protected  |                           | off: idle         | hold: draining     |                 |
//	draining   |                           |                   |                    | off: open       |
//	open       |                           |                   |                    |                 | release: idle
type phase uint8

const (
	idle phase = iota
	protected
	draining
	open
)

// watch is the goroutine's own state.
type watch struct {
	*Guard
	phase   phase
	since   time.Time // of the phase
	from    time.Time // since when the task has been protected, as far as is known without a break
	until   time.Time // the end of the protection that ECS has confirmed
	doubt   bool      // a call to switch that off has failed: it may have had its effect
	atMost  time.Time // the end of one whose confirmation may have been lost
	renewAt time.Time
	asked   bool      // on or off: the last call
	retryAt time.Time // after a call that failed, the next one that asks for the same
	backoff time.Duration
	holds   map[*sqsworker.Worker]func()
}

func (w *watch) run(ctx context.Context) {
	ticks := time.NewTicker(look)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			w.release()
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), look) // once: Run waits for it
			w.retryAt = time.Time{}
			w.protect(ctx, false)
			cancel()
			w.publish(func(s *Status) { s.Drains = false })
			return
		case <-ticks.C:
			w.look(ctx)
		}
	}
}

// isProtected reports whether the task is protected for sure, mayBe whether it could be.
func (w *watch) isProtected() bool { return !w.doubt && time.Now().Before(w.until) }

func (w *watch) mayBe() bool { return time.Now().Before(w.atMost) }

func (w *watch) look(ctx context.Context) {
	workers := w.attached()
	age := oldest(workers)
	long := age >= w.after(workers)
	switch w.phase {
	case idle:
		if !long {
			w.protect(ctx, false) // where an earlier call to switch it off has failed
		} else if w.protect(ctx, true) {
			w.enter(protected)
			w.o.Logger.Info("ecsprotect: a handler runs for long: the task is protected", "until", w.until, "running", age.Round(time.Second))
		}
	case protected:
		switch {
		case !long:
			w.protect(ctx, false)
			w.enter(idle)
			w.o.Logger.Info("ecsprotect: no handler runs for long any more: the protection ends")
		case !w.protect(ctx, true):
			w.enter(idle) // it has lapsed: ECS could have stopped the task
		case w.o.Most > 0 && time.Since(w.from) >= w.o.Most:
			w.enter(draining)
			w.o.Logger.Info("ecsprotect: protected for long: the workers take no messages until the task was open to ECS", "most", w.o.Most)
		}
	case draining:
		if age > 0 {
			w.protect(ctx, true)
		} else if w.protect(ctx, false); !w.mayBe() {
			w.enter(open)
		}
	case open:
		if time.Since(w.since) >= w.o.Open {
			w.enter(idle)
			w.o.Logger.Info("ecsprotect: ECS has not stopped the task: the workers go on")
		}
	}
	if w.phase == draining || w.phase == open {
		for _, worker := range workers { // also those that began meanwhile
			if w.holds[worker] == nil {
				w.holds[worker] = workerkit.Hold(worker, "ecsprotect: the task is drained for ECS")
			}
		}
	} else {
		w.release()
	}
}

func (w *watch) enter(p phase) {
	w.phase, w.since = p, time.Now()
	w.publish(func(s *Status) { s.Drains = p == draining || p == open })
}

func (w *watch) release() {
	for worker, release := range w.holds {
		release()
		delete(w.holds, worker)
	}
}

// protect makes the task protected or not, with a call where that needs one, and reports whether the task is protected.
func (w *watch) protect(ctx context.Context, on bool) bool {
	now := time.Now()
	needed := w.mayBe()
	if on {
		needed = !w.isProtected() || !now.Before(w.renewAt)
	}
	if on != w.asked {
		w.backoff, w.retryAt = 0, time.Time{}
	}
	if !needed || now.Before(w.retryAt) {
		return w.isProtected()
	}
	w.asked = on
	err := w.put(ctx, on)
	if on { // whatever the answer
		w.atMost = time.Now().Add(w.o.Expiry)
	}
	switch {
	case err != nil:
		w.backoff = min(max(2*w.backoff, firstBackoff), longBackoff)
		w.retryAt = time.Now().Add(w.backoff)
		w.doubt = w.doubt || !on
		w.o.Logger.Warn("ecsprotect: protection not changed", "on", on, "protected_until", w.until, "again_in", w.backoff, "error", err)
	case on:
		if !now.Before(w.until) {
			w.from = now
		}
		w.doubt = false
		w.until, w.renewAt = now.Add(w.o.Expiry), now.Add(w.o.Expiry/3) // counted from before the call: ECS counts from later
		w.backoff, w.retryAt = 0, time.Time{}
	default:
		w.doubt, w.until, w.atMost, w.backoff, w.retryAt = false, time.Time{}, time.Time{}, 0, time.Time{}
	}
	w.publish(func(s *Status) {
		if s.Until, s.Err = w.until, err; w.doubt {
			s.Until = time.Time{}
		}
	})
	return w.isProtected()
}

// publish changes what [Guard.Status] returns.
func (w *watch) publish(change func(*Status)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.status)
}
