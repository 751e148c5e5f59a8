package sqsworker

import (
	"context"
	"errors"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// makeReady queues a delivery for a handler. A message that is finished is deleted without a run.
func (l *loop) makeReady(d *delivery) {
	l.setState(d, waiting)
	if l.finished.has(d.m.ID) {
		l.delete(d)
		return
	}
	l.ready = append(l.ready, d)
}

// startReady starts handlers while slots are free. It does not start a message whose lease it cannot prove: another
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
			l.loseLease(d, "visibility timeout passed before the start", nil)
			continue
		}
		l.start(d)
	}
}

func (l *loop) start(d *delivery) {
	l.slots--
	d.run = l.pace.began(l.now())
	d.runs++
	l.setState(d, running)
	base := l.handlerCtx
	if d.mayHold = l.willHold(d); d.mayHold {
		base = l.holdingCtx
	}
	ctx, cancel := context.WithCancelCause(base)
	d.cancel = cancel
	l.proveBy(d, d.runs)
	l.counters.running.add(d)
	count := d.lease.count // read here: a newer handle may replace the lease while the handler runs
	began := func(timeout time.Duration) { l.post(timeoutBegan{d, timeout}) }
	go l.invoke(ctx, d, count, began, func(r result) {
		cancel(nil)
		l.counters.running.remove(d)
		d.result = r
		l.post(handlerReturned{d})
	})
}

// invoke calls the handler and hands its result to then. However the handler fails, it fails its message and nothing
// else.
func (w *Worker) invoke(ctx context.Context, d *delivery, count int, began func(timeout time.Duration), then func(result)) {
	ctx, settleMessage := settle.New(ctx)
	stop := context.CancelFunc(func() {})
	defer func() { stop() }() // when the message is settled: what middleware left may use the handler's context
	host.Run(func() error {
		if d.damaged {
			return errChecksum
		}
		ctx, stop = w.withTimeout(ctx, d.m, began)
		return w.handler(ctx, d.m)
	}, func(err error) { then(w.newResult(err, count, settleMessage)) })
}

// result is what a handler's return means for its message.
type result struct {
	outcome    host.Outcome
	err        error
	asked      time.Duration                 // delay of sqsonce.RetryAfter; negative: none
	delay      time.Duration                 // until others may receive the message
	peerEnded  <-chan struct{}               // of an event in progress; nil: not known
	settle     func(deadLettered bool) error // once, before a rejected message is deleted
	sendFailed bool                          // the dead-letter queue did not take the message
}

// newResult runs on the handler's goroutine: Backoff is the user's, and settling the message may call the store.
func (w *Worker) newResult(err error, count int, settleMessage func(bool) error) result {
	r := result{outcome: host.OutcomeOf(err), err: err, asked: -1, settle: settleMessage, peerEnded: host.Ended(err)}
	if retry, _ := host.Asked(err); retry != nil {
		r.asked = max(0, retry.After)
		r.delay = r.asked
	} else if err != nil {
		r.delay = w.backoff(count)
	}
	if r.outcome != host.Rejected {
		w.settle(r, false)
	}
	return r
}

// settle runs what middleware left for the end of the message: the user's code, and calls of the store.
func (w *Worker) settle(r result, deadLettered bool) {
	if err := r.settle(deadLettered); err != nil {
		w.log.Error("sqsworker: settling the message panicked", keyError, err)
	}
}

func (w *Worker) backoff(count int) (d time.Duration) {
	if err := host.Recover(func() { d = w.opts.Backoff(count) }); err != nil {
		w.log.Error("sqsworker: Options.Backoff panicked, the default is used", host.ErrorAttrs(err)...)
		d = host.DefaultBackoff(count)
	}
	return max(0, d)
}

// markStuckAfter marks d's handler as stuck if it has not returned StopGrace after its context is cancelled, which is
// after cancelledIn.
func (l *loop) markStuckAfter(d *delivery, cancelledIn time.Duration) {
	at := l.now().Add(cancelledIn).Add(max(0, l.opts.StopGrace))
	if d.watchdog.pending() && d.watchdog.at.Before(at) {
		return
	}
	l.schedule.cancel(d.watchdog)
	d.watchdog = l.schedule.add(at, func() { l.markStuck(d) })
}

// markStuck gives the slot of d's handler to another message.
func (l *loop) markStuck(d *delivery) {
	if d.stuck {
		return
	}
	d.stuck = true
	l.slots++
	l.counters.stuck.Add(1)
	l.log.Error("sqsworker: handler does not return after its context was cancelled", keyMessage, d.m.ID, keyGroup, d.m.Group)
}

// handlerReturned says that a handler has returned.
type handlerReturned struct{ d *delivery }

func (l *loop) handlerReturned(e handlerReturned) {
	d, r := e.d, e.d.result
	l.schedule.cancel(d.watchdog)
	l.pace.returned(d.run, l.now(), d.stuck)
	if d.stuck {
		d.stuck = false // the head of a group may run again
		l.counters.stuck.Add(-1)
	} else {
		l.slots++
	}
	l.countResult(d, r)
	if d.lease.lost || d.state == gone {
		l.orphanReturned(d, r)
		return
	}
	l.setState(d, deciding)
	if r.outcome != host.Unavailable {
		d.unavailable = 0
		l.available()
	}
	switch r.outcome {
	case host.Done:
		l.delete(d)
	case host.LeaseLost:
		l.loseLease(d, "another delivery took the event over", r.err)
	case host.InProgress:
		l.inProgress(d, r)
	case host.Rejected:
		l.reject(d, r)
	case host.Unavailable:
		l.unavailable(d, r)
	default:
		l.failed(d, r)
	}
}

func (l *loop) countResult(d *delivery, r result) {
	if l.stopping.begun {
		l.counters.drained.Add(1)
	}
	switch r.outcome {
	case host.Done:
		l.counters.done.Add(1)
	case host.LeaseLost: // counted with the leases
	case host.InProgress:
		l.log.Debug("sqsworker: event in progress elsewhere", keyMessage, d.m.ID, keyCount, d.lease.count)
	case host.Unavailable:
		l.counters.unavailable.Add(1)
		l.log.Debug("sqsworker: unavailable", keyMessage, d.m.ID, keyGroup, d.m.Group, keyCount, d.lease.count, keyError, r.err)
	default:
		l.counters.failed.Add(1)
		attrs := []any{keyMessage, d.m.ID, keyGroup, d.m.Group, keyCount, d.lease.count}
		l.log.Warn("sqsworker: handler failed", append(attrs, host.ErrorAttrs(r.err)...)...)
	}
}

// orphanReturned is for a handler whose lease was lost while it ran, or that returned after the stop. Its message is not
// touched any more. If SQS has delivered the message again, that delivery may start now.
func (l *loop) orphanReturned(d *delivery, r result) {
	if r.outcome == host.Done {
		l.finishUndeleted(d)
	}
	if r.outcome == host.Rejected {
		l.settleFailed(r)
	}
	if l.orphans[d.m.ID] == d {
		delete(l.orphans, d.m.ID)
	}
	next := d.next
	l.remove(d)
	if next != nil && next.state == waiting {
		l.makeReady(next)
	}
}

// failed has the message delivered again, here or by another worker.
func (l *loop) failed(d *delivery, r result) {
	cancelled := errors.Is(r.err, context.Canceled) || errors.Is(r.err, sqsonce.ErrShutdown)
	if l.stopping.cancelled && r.asked < 0 && cancelled {
		r.delay = 0 // the handler did not fail: the stop cancelled it
	}
	if d.group != nil {
		l.headFailed(d, r)
		return
	}
	l.counters.retried.Add(1)
	l.release(d, r.delay)
}

// inProgress gives the message back until the lease of the other delivery should have ended, or holds it. SQS counts
// every receive: a message that comes back again and again while a long handler runs elsewhere could reach the dead-letter
// queue without having been run. At its last receive it is therefore held. It is also held if this process will know when
// the peer ends, while canHold allows.
func (l *loop) inProgress(d *delivery, r result) {
	switch {
	case d.group != nil:
		l.headInProgress(d, r)
	case l.atLastReceive(d) && !l.stopping.cancelled:
		l.hold(d, l.holdTime(r), r.peerEnded)
	case r.peerEnded != nil && d.mayHold && !l.stopping.begun:
		if !l.canHold(d) {
			l.makeReady(d) // others are held since: the handler is run again, and waits for the peer
			return
		}
		l.hold(d, max(r.asked, time.Second), r.peerEnded)
	default:
		l.counters.retried.Add(1)
		l.release(d, max(host.Double(l.opts.Visibility/2, maxVisibility, d.lease.count), r.asked))
	}
}

// holdTime is how long a message is held whose event is in progress: as long as the error asks for, else half the
// visibility timeout, and at least a second.
func (l *loop) holdTime(r result) time.Duration {
	if r.asked >= 0 {
		return max(r.asked, time.Second)
	}
	return max(l.opts.Visibility/2, time.Second)
}

// atLastReceive says that SQS moves the message to the dead-letter queue when it is received once more.
func (l *loop) atLastReceive(d *delivery) bool {
	return l.queue.maxReceives > 0 && d.lease.count >= l.queue.maxReceives
}
