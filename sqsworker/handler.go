package sqsworker

import (
	"context"
	"errors"
	"time"

	"github.com/sqsonce/sqsonce"
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

// result is what a handler's return means for its message.
type result struct {
	outcome host.Outcome
	err     error
	asked   time.Duration // by sqsonce.RetryAfter; negative: nothing was asked for
	delay   time.Duration // before others may receive the message
	ended   <-chan struct{}
	settle  func(deadLettered bool)
	noSend  bool // the dead-letter queue did not take the message
}

// judge runs beside the loop: Backoff is the user's, and what middleware left to settle may call its store.
func (w *Worker) judge(err error, count int, settle func(bool)) result {
	r := result{outcome: host.OutcomeOf(err), err: err, asked: -1, settle: settle, ended: host.Ended(err)}
	if retry, _ := host.Asked(err); retry != nil {
		r.asked = max(0, retry.After)
		r.delay = r.asked
	} else if err != nil {
		r.delay = w.backoff(count)
	}
	if r.outcome != host.Rejected {
		settle(false)
	}
	return r
}

func (w *Worker) backoff(count int) (d time.Duration) {
	defer func() {
		if p := recover(); p != nil {
			w.log.Error("sqsworker: Options.Backoff panicked", keyError, p)
			d = host.DefaultBackoff(count)
		}
	}()
	return max(0, w.opts.Backoff(count))
}

func (l *loop) count(d *delivery, r result) {
	switch r.outcome {
	case host.Done:
		l.counters.done.Add(1)
	case host.LeaseLost: // counted with the leases
	case host.InProgress:
		l.log.Debug("sqsworker: in progress elsewhere", keyMessage, d.m.ID, keyCount, d.lease.count)
	default:
		l.counters.failed.Add(1)
		l.log.Warn("sqsworker: handler failed", keyMessage, d.m.ID, keyGroup, d.m.Group, keyCount, d.lease.count,
			keyError, r.err)
	}
}

// failed lets the message be delivered again, here or anywhere.
func (l *loop) failed(d *delivery, r result) {
	ended := errors.Is(r.err, context.Canceled) || errors.Is(r.err, sqsonce.ErrShutdown)
	if l.stopping.cancelled && r.asked < 0 && ended {
		r.delay = 0 // it did not fail: we ended it
	}
	if d.group != nil {
		l.headFailed(d, r)
		return
	}
	l.counters.retried.Add(1)
	l.release(d, r.delay)
}

// inProgress brings a message back when another delivery of its event should have ended. SQS counts every receive, so a
// message that bounces while a long handler runs elsewhere could reach the dead-letter queue without having been run:
// where that is near, and on FIFO, it is kept here, under the heartbeat and without a slot. Where this process will know
// when the other one has ended it is kept too, while there is room.
func (l *loop) inProgress(d *delivery, r result) {
	half := l.opts.Visibility / 2
	switch {
	case d.group != nil && l.stopping.begun && !l.keepAtStop(d) && !l.followerAtLastReceive(d.group):
		l.releaseGroup(d.group, max(r.asked, 0))
	case !l.stopping.cancelled && (d.group != nil || l.atLastReceive(d)):
		d.runs = 0 // not a failure: it takes no local retry
		delay := half
		if r.asked >= 0 {
			delay = r.asked
		}
		l.hold(d, max(delay, time.Second), r.ended)
	case d.group != nil:
		l.releaseGroup(d.group, max(r.asked, 0))
	case r.ended != nil && d.offered && !l.stopping.begun:
		if !l.canKeep(d) {
			l.makeReady(d) // others took the room: now its handler waits
			return
		}
		l.hold(d, max(r.asked, time.Second), r.ended)
	default:
		delay := maxVisibility
		if shift := d.lease.count - 1; shift < 20 {
			delay = min(delay, half<<shift)
		}
		l.counters.retried.Add(1)
		l.release(d, max(delay, r.asked))
	}
}

// atLastReceive says that SQS moves the message to the dead-letter queue when it is received once more.
func (l *loop) atLastReceive(d *delivery) bool {
	return l.queue.maxReceives > 0 && d.lease.count >= l.queue.maxReceives
}
