package sqsworker

import (
	"fmt"
	"sync/atomic"

	"github.com/sqsonce/sqsonce"
)

// control is what may be changed while the worker runs. The loop reads it; changed wakes the loop where it has to act.
type control struct {
	paused      atomic.Bool
	concurrency atomic.Int64
	changed     chan struct{} // of capacity 1: a change while one is not yet read needs no other
}

func (c *control) wake() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// Pause stops the receives, until [Worker.Resume]. It may be called at any time, from any goroutine, also before Run; it
// does not wait.
//
// A receive under way is not cancelled and ends within Options.WaitTime; SQS could lose track of what it brings until the
// visibility timeout ends. All that the worker has received is handled as ever, with retries, also what waits for a slot:
// given back, it would have spent a receive for nothing. A paused worker is ready: see [Worker.Health].
func (w *Worker) Pause() {
	if w.control.paused.CompareAndSwap(false, true) {
		w.log.Info("sqsworker: paused: no receive is started")
	}
}

// Resume ends what [Worker.Pause] began. It may be called at any time, from any goroutine.
func (w *Worker) Resume() {
	if w.control.paused.CompareAndSwap(true, false) {
		w.log.Info("sqsworker: resumed")
		w.control.wake()
	}
}

// SetConcurrency changes Options.Concurrency. It may be called at any time, from any goroutine, also before Run. With fewer
// slots, the handlers that run beyond them end by themselves, and none is started meanwhile. Where MaxInFlight and MaxReceivers
// were not set they are those of the new Concurrency; where they were, they stay. It returns a [*sqsonce.OptionError] if
// concurrency is less than 1 or more than 120,000, and changes nothing.
//
// Each connection of the client's HTTP client serves one call at a time: see [HTTPClient].
func (w *Worker) SetConcurrency(concurrency int) error {
	if concurrency < 1 || concurrency > maxConcurrency {
		return &sqsonce.OptionError{
			Package: "sqsworker", Field: "concurrency", Problem: fmt.Sprintf("is %d, must be 1 to %d", concurrency, maxConcurrency),
		}
	}
	w.control.concurrency.Store(int64(concurrency))
	w.control.wake()
	return nil
}

// Options returns the options in force: zeros are replaced by their defaults, and Concurrency is the one of SetConcurrency, with
// the defaults that depend on it. MaxAttempts and DeadLetterQueue stay zero where the queue decides. It may be called at any time, from
// any goroutine.
func (w *Worker) Options() Options {
	o := w.given
	o.Concurrency = int(w.control.concurrency.Load())
	o.setDefaults()
	return o
}

// Intake is whether a worker receives. The texts are stable: metrics and alarms may hold them.
type Intake string

const (
	IntakeOpen   Intake = "open"   // a receive is under way, or soon will be
	IntakeFull   Intake = "full"   // none is: the worker has what its handlers will take up, or MaxInFlight or MaxBytes are used up
	IntakePaused Intake = "paused" // none is started, see [Worker.Pause]
)

// intake returns "" while Run does not receive at all: before its first look at the queue, in the stop, and after it.
func (w *Worker) intake() Intake {
	switch {
	case w.state.Load() != stateRunning:
		return ""
	case w.control.paused.Load():
		return IntakePaused
	case w.full.Load():
		return IntakeFull
	}
	return IntakeOpen
}

// adoptConcurrency makes what SetConcurrency asked for the loop's own.
func (l *loop) adoptConcurrency() {
	before := l.opts.Concurrency
	now := l.Options()
	if now.Concurrency == before {
		return
	}
	l.opts = now
	l.capacity.limit.messages = now.MaxInFlight
	l.deletes.maxCalls = max(minDeletes, now.MaxReceivers)
	l.log.Info("sqsworker: concurrency changed", "before", before, "concurrency", now.Concurrency, "in_flight", now.MaxInFlight)
}
