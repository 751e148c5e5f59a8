package sqsworker

import (
	"context"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/settle"
)

func (l *loop) start(d *delivery) {
	l.handlerBegins(d)
	if d.m.QueueARN == "" { // it may be known by now
		d.m.QueueARN = l.queue.arn
	}
	ctx, cancel := context.WithCancelCause(l.handlerCtx)
	ctx, _ = settle.New(l.withSuspects(ctx, d))
	settle.RunsAtOnce(ctx, l.opts.Concurrency)
	settle.HeldBy(ctx, d)
	d.cancel, d.key.handler = cancel, ctx
	// All else waits for a suspect: postponed, it would wait for a turn that comes only when it does not run.
	d.keeps, d.debt = !l.mayPutOff(d), d.owes || d.suspect || l.stopping.begun && l.mustEndInStop(d)
	if !d.owes {
		d.owesFor = ""
	}
	d.owes, d.postponed = false, false
	l.proveBy(d)
	l.counters.running.add(d)
	d.runs++
	d.call = l.hooks.handlers.Call(sqsonce.Delivery{Message: d.m, QueueURL: l.queueURL, Received: d.received, Run: d.runs})
	attempt := d.lease.count // read here: a newer handle may replace the lease while the handler runs
	if d.group != nil {
		attempt = d.attempts + 1
	}
	go l.invoke(ctx, d, attempt)
}

// invoke calls the handler and posts its result. However the handler fails, it fails its message and nothing else. ctx is of
// settle.New.
func (l *loop) invoke(ctx context.Context, d *delivery, attempt int) {
	settled := ctx
	stop := context.CancelFunc(func() {})
	defer func() { stop() }() // when the message is settled: what middleware left may use the handler's context
	host.Run(func() error {
		if d.damaged {
			return errChecksum
		}
		ctx = d.call.Start(ctx)
		ctx, stop = l.withTimeout(ctx, d.m, func(timeout time.Duration) { l.post(timeoutBegan{d, timeout}) })
		return l.handler(ctx, d.m)
	}, func(err error) {
		r := l.newResult(d, err, attempt)
		r.handler, r.key, r.recordKey = settled, settle.KeptKey(settled), settle.RecordKey(settled)
		r.ran, r.told = settle.HasRun(settled)
		d.call.End(r.handlerReturn(settled))
		if r.outcome != sqsonce.OutcomeRejected {
			l.settle(d, r, false)
		}
		d.cancel(nil)
		l.counters.running.remove(d)
		d.result = r
		l.post(handlerReturned{d}) // from here on the next run may begin
	})
}

// result is the meaning of a handler's return for its message.
type result struct {
	outcome    sqsonce.OutcomeKind
	err        error
	ran        bool            // else middleware decided without the handler
	told       bool            // middleware has said that it called the handler
	asked      time.Duration   // delay of sqsonce.RetryAfter or Postpone; negative: none
	delay      time.Duration   // until others may receive the message
	peerEnded  <-chan struct{} // of an event in progress; nil: not known
	handler    context.Context // of settle.New: settled once, before a rejected message is deleted; nil: it has not run
	key        string          // of the event where the message does not have it: settle.KeptKey
	recordKey  string          // settle.RecordKey
	sendFailed bool            // the dead-letter queue did not take the message
}

// newResult runs on the handler's goroutine, since Backoff, the user's, may take its time.
func (w *Worker) newResult(d *delivery, err error, attempt int) result {
	o := sqsonce.OutcomeOf(err)
	r := result{outcome: o.Kind, err: err, asked: -1, peerEnded: host.Ended(err)}
	if o.Retry {
		r.asked = max(time.Second, o.After)
		r.delay = r.asked
	} else if o.Postpone {
		r.asked, r.delay = o.After, o.After
	} else if !host.Outcomes[o.Kind].Done {
		r.delay = w.backoff(d, attempt)
	}
	return r
}

// settle runs what middleware left for the end of the message: the user's code, and calls of the store.
func (w *Worker) settle(d *delivery, r result, deadLettered bool) {
	if r.handler == nil {
		return
	}
	if err := settle.Settle(r.handler, deadLettered); err != nil {
		w.log.ErrorContext(d.context(), "sqsworker: function of OnSettled failed", d.event(host.ErrorAttrs(err)...)...)
	}
}

func (w *Worker) backoff(d *delivery, attempt int) (delay time.Duration) {
	if err := host.Contain(func() error { return host.Recover(func() { delay = w.opts.Backoff(attempt) }) }); err != nil {
		w.log.ErrorContext(d.context(), "sqsworker: Options.Backoff failed, the default is used", d.event(host.ErrorAttrs(err)...)...)
		delay = host.DefaultBackoff(attempt)
	}
	return max(0, delay)
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
	switch {
	case d.stuck:
		return
	case settle.Recording(d.key.handler) && d.key.handler.Err() == nil:
		// Middleware has the message, and not the handler: it records the outcome, or answers a call that the handler makes.
		d.watchdog = l.schedule.add(l.now().Add(time.Second), func() { l.markStuck(d) })
		return
	}
	d.stuck = true
	l.counters.running.changed(d)
	l.endSlot(d)
	l.counters.stuck.Add(1)
	l.log.ErrorContext(d.context(), "sqsworker: handler does not return after its context was cancelled", d.about()...)
	l.giveBackBehind(d)
}

// handlerReturned says that a handler has returned.
type handlerReturned struct{ d *delivery }

func (l *loop) handlerReturned(e handlerReturned) {
	d, r := e.d, e.d.result
	l.schedule.cancel(d.watchdog)
	l.noteProgress()
	l.handlerEnds(d)
	l.countResult(d, r)
	if d.place.taken && r.outcome != sqsonce.OutcomePostponed {
		l.line.leave(d)
	}
	if d.lease.lost || d.state == gone {
		l.orphanReturned(d, r)
		return
	}
	l.setState(d, deciding)
	if s, suspect := settle.SuspectOf(r.err); suspect {
		l.suspected(d, s)
		return
	}
	d.suspect, d.accused, d.crashes = false, false, false
	l.noteStanding(r.err)
	l.needs.told = l.needs.told || r.told
	if r.outcome != sqsonce.OutcomeUnavailable && r.outcome != sqsonce.OutcomePostponed && !d.damaged {
		l.available(d, l.needs.ran(r))
	}
	if r.outcome != sqsonce.OutcomeInProgress {
		d.bounces = 0
	}
	switch k := r.outcome; {
	case host.Outcomes[k].Done:
		l.delete(d)
	case k == sqsonce.OutcomeLeaseLost:
		l.loseLease(d, "the error of the handler or its middleware", r.err)
	case k == sqsonce.OutcomeInProgress:
		l.inProgress(d, r)
	case k == sqsonce.OutcomeRejected:
		d.attempts++
		l.reject(d, r)
	case k == sqsonce.OutcomeUnavailable:
		l.unavailable(d, r)
	case k == sqsonce.OutcomePostponed:
		l.postponed(d, r)
	default:
		d.attempts++
		l.failed(d, r)
	}
}

func (l *loop) countResult(d *delivery, r result) {
	if l.stopping.begun {
		l.counters.drained.Add(1)
	}
	l.counters.outcomes[r.outcome].Add(1)
	if line := host.Outcomes[r.outcome].Line; line != "" {
		l.log.InfoContext(d.context(), "sqsworker: "+line, d.about(keyError, r.err)...)
	}
	if line := host.Outcomes[r.outcome].Debug; line != "" {
		l.log.DebugContext(d.context(), "sqsworker: "+line, d.about(keyError, r.err)...)
	}
	switch r.outcome {
	case sqsonce.OutcomeUnavailable:
		l.log.DebugContext(d.context(), "sqsworker: unavailable", d.about(keyError, r.err)...)
	case sqsonce.OutcomeFailed, sqsonce.OutcomeRejected:
		l.log.WarnContext(d.context(), "sqsworker: handler failed", d.about(host.ErrorAttrs(r.err)...)...)
	}
}

// orphanReturned is for a handler whose lease was lost while it ran, or that returned after the stop. Its message is not
// touched any more. If SQS has delivered the message again, that delivery may start now.
func (l *loop) orphanReturned(d *delivery, r result) {
	switch {
	case host.Outcomes[r.outcome].Done:
		l.finishUndeleted(d)
	case r.outcome == sqsonce.OutcomeRejected:
		l.settleFailed(d, r)
	}
	if l.orphans[d.m.ID] == d {
		delete(l.orphans, d.m.ID)
	}
	if turn, _ := settle.TurnOf(r.err); turn.Left != nil {
		turn.Left()
	}
	l.line.leave(d)
	next := d.next
	l.remove(d)
	if next != nil && next.state == following {
		l.makeReady(next)
	}
}

// failed has the message delivered again, here or by another worker.
func (l *loop) failed(d *delivery, r result) {
	if l.stopping.cancelled && r.asked < 0 && isCancellation(r.err) {
		r.delay = 0 // the handler did not fail: the stop cancelled it
	}
	d.result = r
	if !l.inTime(d, &r.delay) {
		return
	}
	if d.group != nil {
		l.headFailed(d, r)
		return
	}
	l.giveBack(d, r.delay)
}

// atLastReceive says that SQS may move the message to the dead-letter queue when it is received once more.
func (l *loop) atLastReceive(d *delivery) bool {
	return l.queue.maxReceives > 0 && d.lease.count >= l.queue.maxReceives
}
