package sqsworker

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/sqsonce/sqsonce"
)

// control is the state that may be changed while the worker runs. The loop reads it. changed wakes the loop if it has to act.
type control struct {
	paused      atomic.Bool
	holds       atomic.Int64
	concurrency atomic.Int64  // in force: the least of given and limits
	changed     chan struct{} // of capacity 1: a change while one is not yet read needs no other

	mu     sync.Mutex
	given  int // of Options or SetConcurrency
	limits map[*int]struct{}
}

// setConcurrency changes given or limits, and what is in force.
func (c *control) setConcurrency(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
	n := c.given
	for limit := range c.limits {
		n = min(n, *limit)
	}
	c.concurrency.Store(int64(n))
	c.wake()
}

// closed reports whether the worker is to start no receive.
func (c *control) closed() bool { return c.paused.Load() || c.holds.Load() > 0 }

func (c *control) wake() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// Pause stops the receives, until [Worker.Resume]. You may call it at any time, from any goroutine, also before Run. It does
// not wait.
//
// A receive under way ends by itself, within Options.WaitTime. SQS could hide the messages of a cancelled receive until the
// visibility timeout ends. The worker handles all messages that it has received as usual, with retries, also those that wait
// for a slot. If it gave them back, they would have spent a receive without a run. A paused worker is ready: see
// [Worker.Health].
func (w *Worker) Pause() {
	if w.control.paused.CompareAndSwap(false, true) {
		w.log.Info("sqsworker: paused: the worker does not receive")
	}
}

// Resume starts the receives again after [Worker.Pause]. You may call it at any time, from any goroutine.
func (w *Worker) Resume() {
	if w.control.paused.CompareAndSwap(true, false) {
		w.log.Info("sqsworker: resumed")
		w.control.wake()
	}
}

// holdReceives stops the receives as [Worker.Pause] does, until release is called.
func (w *Worker) holdReceives(why string) (release func()) {
	w.control.holds.Add(1)
	w.log.Info("sqsworker: held: the worker does not receive", "why", why)
	return sync.OnceFunc(func() {
		w.control.holds.Add(-1)
		w.log.Info("sqsworker: hold released", "why", why)
		w.control.wake()
	})
}

// SetConcurrency changes Options.Concurrency. You may call it at any time, from any goroutine, also before Run. With fewer
// slots, the handlers that run beyond them end by themselves, and the worker doesn't start handlers meanwhile. If you did not
// set MaxInFlight and MaxReceivers, they follow the new Concurrency. If you set them, they stay. If concurrency is less than
// 1 or more than 120,000, SetConcurrency returns a [*sqsonce.OptionError] and doesn't change anything.
//
// Each connection of the client's HTTP client serves one call at a time: see [HTTPClient].
func (w *Worker) SetConcurrency(concurrency int) error {
	if concurrency < 1 || concurrency > maxConcurrency {
		return &sqsonce.OptionError{
			Package: "sqsworker", Field: "concurrency", Problem: fmt.Sprintf("is %d, must be 1 to %d", concurrency, maxConcurrency),
		}
	}
	w.control.setConcurrency(func() { w.control.given = concurrency })
	return nil
}

// limitHandlers lets the worker run at most so many handlers at once, until release is called.
func (w *Worker) limitHandlers(concurrency int, why string) (release func()) {
	limit := new(max(1, concurrency))
	w.control.setConcurrency(func() { w.control.limits[limit] = struct{}{} })
	w.log.Info("sqsworker: concurrency limited", "most", *limit, "why", why)
	return sync.OnceFunc(func() {
		w.control.setConcurrency(func() { delete(w.control.limits, limit) })
		w.log.Info("sqsworker: limit of concurrency released", "most", *limit, "why", why)
	})
}

// Options returns the options in force. Zeros are replaced by their defaults. Concurrency is the one of SetConcurrency, or a
// lower one of package control, with the defaults that depend on it. MaxAttempts and DeadLetterQueue stay zero if the queue decides. You may call it at any
// time, from any goroutine.
func (w *Worker) Options() Options {
	o := w.given
	o.Concurrency = int(w.control.concurrency.Load())
	o.setDefaults()
	return o
}

// Intake is whether a worker receives. The texts are stable, so that metrics and alarms may use them.
type Intake string

const (
	IntakeOpen   Intake = "open"   // a receive is under way, or soon will be
	IntakeFull   Intake = "full"   // the worker has enough messages, by its handlers or its limits, or waits for the end of an outage or of suspects
	IntakePaused Intake = "paused" // the worker starts no receive, see [Worker.Pause] and package control
)

// intake returns "" while Run does not receive at all: before its first look at the queue, in the stop, and after it.
func (w *Worker) intake() Intake {
	switch {
	case w.state.Load() != stateRunning:
		return ""
	case w.control.closed():
		return IntakePaused
	case w.full.Load():
		return IntakeFull
	}
	return IntakeOpen
}

// adoptConcurrency makes what SetConcurrency and Limit asked for the loop's own.
func (l *loop) adoptConcurrency() {
	before := l.opts.Concurrency
	now := l.Options()
	if now.Concurrency == before {
		return
	}
	l.opts = now
	l.capacity.limit.messages = now.MaxInFlight
	l.line.limit(&l.opts, l.parked.minus(l.parkedAs[kindPostponed]))
	l.deletes.maxCalls = max(minDeletes, now.MaxReceivers)
	l.log.Info("sqsworker: concurrency changed", "before", before, "concurrency", now.Concurrency, "in_flight", now.MaxInFlight)
}
