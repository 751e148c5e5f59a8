package sqsworker

import (
	"fmt"
	"sync/atomic"

	"github.com/sqsonce/sqsonce"
)

// control is the state that may be changed while the worker runs. The loop reads it. changed wakes the loop if it has to act.
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
	w.control.concurrency.Store(int64(concurrency))
	w.control.wake()
	return nil
}

// Options returns the options in force. Zeros are replaced by their defaults. Concurrency is the one of SetConcurrency, with
// the defaults that depend on it. MaxAttempts and DeadLetterQueue stay zero if the queue decides. You may call it at any
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
	IntakePaused Intake = "paused" // the worker starts no receive, see [Worker.Pause]
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
