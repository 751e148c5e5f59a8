package sqsworker

import (
	"context"
	"time"
)

// hold keeps a message in flight under the heartbeat, without a slot. It is tried again after delay, or when its peer has
// ended; ended is nil if that cannot be known.
func (l *loop) hold(d *delivery, delay time.Duration, ended <-chan struct{}) {
	l.counters.retried.Add(1)
	l.setState(d, held)
	l.held = l.held.plus(d.amount())
	d.retry = l.after(delay, func() { l.makeReady(d) })
	if ended == nil {
		return
	}
	ctx, cancel := context.WithCancel(l.callCtx)
	d.stopWait = cancel
	l.calls.Go(func() {
		select {
		case <-ctx.Done():
		case <-ended:
			l.post(peerEnded{d})
		}
	})
}

// peerEnded says that the delivery in this process that a held message waits for has ended.
type peerEnded struct{ waiting *delivery }

func (l *loop) peerEnded(e peerEnded) {
	// The message may have been tried, and be held again by now, for another peer: then it is tried too early, which does
	// no harm.
	if e.waiting.state == held {
		l.makeReady(e.waiting)
	}
}

// endHold is called for a message that leaves the state held, whatever becomes of it.
func (l *loop) endHold(d *delivery) {
	l.held = l.held.minus(d.amount())
	l.schedule.cancel(d.retry)
	if d.stopWait != nil {
		d.stopWait()
		d.stopWait = nil
	}
}

// canHold says whether a message may be held that could as well be given back. All held messages together take at most
// half of what InFlight has beyond Concurrency, and half of Bytes: many copies of one event leave slots and capacity to
// other messages.
func (l *loop) canHold(d *delivery) bool {
	return l.held.messages < (l.opts.InFlight-l.opts.Concurrency)/2 && l.held.bytes+d.size <= l.opts.Bytes/2
}

// willHold says whether a message is held if its handler finds its event in progress in this process. If not, the handler
// waits for the peer.
func (l *loop) willHold(d *delivery) bool {
	return d.group != nil || l.atLastReceive(d) || l.canHold(d)
}
