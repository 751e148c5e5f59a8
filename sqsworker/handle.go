package sqsworker

import (
	"context"
	"runtime/debug"

	"github.com/sqsonce/sqsonce"
)

// makeReady queues a delivery for a handler. One that is done already is deleted without running.
func (l *loop) makeReady(d *delivery) {
	l.set(d, waiting)
	if l.finished.has(d.m.ID) {
		l.delete(d)
		return
	}
	l.ready = append(l.ready, d)
}

// startReady starts handlers while slots are free. A message whose lease cannot be proven live is not started: another
// worker may have it.
func (l *loop) startReady() {
	for len(l.ready) > 0 && l.slots > 0 {
		d := l.ready[0]
		l.ready[0] = nil
		l.ready = l.ready[1:]
		if d.state != waiting {
			continue // lost or given back since
		}
		if !d.lease.live(l.now()) {
			l.lose(d, "visibility timeout passed before the start", nil)
			continue
		}
		l.start(d)
	}
}

func (l *loop) start(d *delivery) {
	l.slots--
	d.runs++
	l.set(d, running)
	base := l.handlerCtx
	if d.offered = l.offersHold(d); d.offered {
		base = l.holdingCtx
	}
	ctx, cancel := context.WithCancelCause(base)
	d.cancel = cancel
	l.counters.running.add(&d.handler)
	count := d.lease.count
	var timeout *alarm
	if l.opts.HandlerTimeout > 0 {
		timeout = l.later(l.opts.HandlerTimeout, func() { l.watch(d) })
	}
	l.handlers.do(func() {
		l.invoke(ctx, cancel, d, count, func(v verdict) {
			cancel(nil)
			l.counters.running.remove(&d.handler)
			l.mail.put(func() {
				l.schedule.cancel(timeout)
				l.returned(d, v)
			})
		})
	})
}

// invoke calls the handler and hands its verdict to then. However the handler fails, it fails its message and nothing
// else: a panic in a bare goroutine would end the process and strand everything in flight.
func (w *Worker) invoke(ctx context.Context, cancel context.CancelCauseFunc, d *delivery, count int, then func(verdict)) {
	if w.opts.HandlerTimeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, w.opts.HandlerTimeout)
		defer stop()
	}
	ctx, settle := sqsonce.WithSettlement(ctx, cancel)
	var err error
	returned := false
	// All that follows is deferred: runtime.Goexit ends this goroutine without coming back from the handler.
	defer func() {
		if value := recover(); !returned {
			err = &sqsonce.PanicError{Value: value, Stack: debug.Stack()}
		}
		then(w.judge(err, count, settle))
	}()
	if d.damaged {
		err = errChecksum
	} else {
		err = w.handler(ctx, d.m)
	}
	returned = true
}

// watch gives back the slot of a handler that does not return after its context has ended.
func (l *loop) watch(d *delivery) {
	run := d.runs // the head of a group may have returned by then, and be at its next run
	l.later(max(0, l.opts.StopGrace), func() {
		if d.state == running && d.runs == run {
			l.markStuck(d)
		}
	})
}

func (l *loop) markStuck(d *delivery) {
	if d.stuck {
		return
	}
	d.stuck = true
	l.slots++
	l.counters.stuck.Add(1)
	l.log.Error("sqsworker: handler does not return after its context has ended", keyMessage, d.m.ID, keyGroup, d.m.Group)
}

// returned takes over when a handler has ended.
func (l *loop) returned(d *delivery, v verdict) {
	if d.stuck {
		d.stuck = false // the head of a group may run again
		l.counters.stuck.Add(-1)
	} else {
		l.slots++
	}
	if l.stopping.begun {
		l.counters.drained.Add(1)
	}
	l.count(d, v)
	if d.lease.lost || d.state == gone {
		l.returnedLate(d, v)
		return
	}
	l.set(d, settling)
	switch v.kind {
	case outcomeDone:
		l.delete(d)
	case outcomeLeaseLost:
		l.lose(d, "another delivery took the event over", v.err)
	case outcomeInProgress:
		l.inProgress(d, v)
	case outcomeReject:
		l.reject(d, v)
	default:
		l.failed(d, v)
	}
}

// returnedLate is for a handler whose lease was lost while it ran, or that outlived the stop. Its message is not ours to
// touch.
func (l *loop) returnedLate(d *delivery, v verdict) {
	if v.kind == outcomeDone {
		l.remember(d)
	}
	if v.kind == outcomeReject {
		l.settle(v)
	}
	if l.orphans[d.m.ID] == d {
		delete(l.orphans, d.m.ID)
	}
	next := d.next
	l.leave(d)
	if next != nil && next.state == waiting {
		l.makeReady(next)
	}
}
