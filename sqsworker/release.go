package sqsworker

import "time"

// release gives a message back: others may receive it after delay. It is not extended from here on, and tried again
// until its visibility timeout does what we could not.
func (l *loop) release(d *delivery, delay time.Duration) {
	if !d.lease.live(l.now()) {
		l.lose(d, "visibility timeout passed before the release", nil)
		return
	}
	l.set(d, releasing)
	d.delay, d.tries = delay, 0
	// An extension under way could reach SQS after the release and hide the message for a whole visibility timeout: the
	// release waits for its answer.
	if !d.lease.extending {
		l.releases.put(d)
	}
}

// giveBack releases a message whose handler is not to be started or not to be started again, because the worker stops.
func (l *loop) giveBack(d *delivery) {
	if d.state == held {
		l.counters.retried.Add(1)
		l.release(d, d.alarm.at.Sub(l.now()))
		return
	}
	l.counters.released.Add(1)
	l.release(d, 0)
}

func (l *loop) sendReleases(batch []*delivery) {
	now := l.now()
	changes := make([]change, 0, len(batch))
	for _, d := range batch {
		if !d.lease.live(now) {
			l.releases.calls--
			l.leave(d) // it is back already
			continue
		}
		// SQS refuses what would pass its 12 h after the receive.
		rest := maxVisibility - time.Second - elapsed(now, d.lease.received)
		changes = append(changes, change{d: d, handle: d.lease.handle, visibility: min(d.delay, rest.Truncate(time.Second))})
	}
	if len(changes) == 0 {
		return
	}
	l.changeVisibility(changes, callTimeout, true)
}

func (l *loop) releasesAnswered(e visibilityChanged) {
	l.releases.calls -= len(e.changes)
	for i, c := range e.changes {
		l.givenBack(c.d, e.results[i])
	}
}

func (l *loop) givenBack(d *delivery, err error) {
	superseded := l.table[d.m.ID] != d // received again already: its old handle must not hide it
	switch {
	case err == nil || superseded || isHandleDead(err):
		l.leave(d)
	default:
		if d.tries == 0 {
			l.log.Warn("sqsworker: release failed", keyMessage, d.m.ID, keyError, err)
		}
		l.again(&l.releases, d, releasing)
	}
}
