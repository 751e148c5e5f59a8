package sqsworker

import (
	"context"

	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/settle"
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
	go l.invoke(ctx, d, count, func(r result) {
		cancel(nil)
		l.counters.running.remove(&d.handler)
		l.put(handlerReturned{d, r, timeout})
	})
}

// invoke calls the handler and hands its result to then. However the handler fails, it fails its message and nothing else.
func (w *Worker) invoke(ctx context.Context, d *delivery, count int, then func(result)) {
	if w.opts.HandlerTimeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, w.opts.HandlerTimeout)
		defer stop()
	}
	ctx, settled := settle.New(ctx)
	host.Run(func() error {
		if d.damaged {
			return errChecksum
		}
		return w.handler(ctx, d.m)
	}, func(err error) { then(w.judge(err, count, settled)) })
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

// handlerReturned says that a handler has ended.
type handlerReturned struct {
	d       *delivery
	result  result
	timeout *alarm // of Options.HandlerTimeout
}

func (l *loop) handlerReturned(e handlerReturned) {
	d, r := e.d, e.result
	l.schedule.cancel(e.timeout)
	if d.stuck {
		d.stuck = false // the head of a group may run again
		l.counters.stuck.Add(-1)
	} else {
		l.slots++
	}
	if l.stopping.begun {
		l.counters.drained.Add(1)
	}
	l.count(d, r)
	if d.lease.lost || d.state == gone {
		l.returnedLate(d, r)
		return
	}
	l.set(d, settling)
	switch r.outcome {
	case host.Done:
		l.delete(d)
	case host.LeaseLost:
		l.lose(d, "another delivery took the event over", r.err)
	case host.InProgress:
		l.inProgress(d, r)
	case host.Rejected:
		l.reject(d, r)
	default:
		l.failed(d, r)
	}
}

// returnedLate is for a handler whose lease was lost while it ran, or that outlived the stop. Its message is not ours to
// touch.
func (l *loop) returnedLate(d *delivery, r result) {
	if r.outcome == host.Done {
		l.remember(d)
	}
	if r.outcome == host.Rejected {
		l.settle(r)
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
