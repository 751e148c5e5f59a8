package sqsworker

import (
	"context"
	"time"
)

// hold keeps a message under the heartbeat, without a slot, and tries it again after delay, or when what it waits for
// has ended, if that can be known.
func (l *loop) hold(d *delivery, delay time.Duration, ended <-chan struct{}) {
	l.counters.retried.Add(1)
	l.set(d, held)
	l.kept.n, l.kept.size = l.kept.n+1, l.kept.size+d.size
	d.alarm = l.later(delay, func() { l.makeReady(d) })
	if ended == nil {
		return
	}
	ctx, cancel := context.WithCancel(l.callCtx)
	d.unwatch = cancel
	l.calls.Go(func() {
		select {
		case <-ctx.Done():
		case <-ended:
			l.put(holderEnded{d})
		}
	})
}

// holderEnded says that the delivery of this process that a held message waits for has ended.
type holderEnded struct{ waiting *delivery }

func (l *loop) holderEnded(e holderEnded) {
	if e.waiting.state == held { // to try it too early, when it is held again by now, does no harm
		l.makeReady(e.waiting)
	}
}

// unhold is for a message that is held no longer, whatever becomes of it.
func (l *loop) unhold(d *delivery) {
	l.kept.n, l.kept.size = l.kept.n-1, l.kept.size-d.size
	l.schedule.cancel(d.alarm)
	if d.unwatch != nil {
		d.unwatch()
		d.unwatch = nil
	}
}

// canKeep says whether a message may be held that could as well be given back. All that is held takes at most half of
// what InFlight has beyond Concurrency, and half of Bytes: copies of one event, however many come, leave the slots to
// others.
func (l *loop) canKeep(d *delivery) bool {
	return l.kept.n < (l.opts.InFlight-l.opts.Concurrency)/2 && l.kept.size+d.size <= l.opts.Bytes/2
}

// offersHold says whether a message is held if its handler finds its event in progress in this process. If not, the
// handler waits a while.
func (l *loop) offersHold(d *delivery) bool {
	return d.group != nil || l.atLastReceive(d) || l.canKeep(d)
}
