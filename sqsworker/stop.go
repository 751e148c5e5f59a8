package sqsworker

import (
	"time"

	"github.com/sqsonce/sqsonce"
)

// stopping is the state of the stop, which has phases:
//
//  1. The worker starts no receive, and receives under way end by themselves. Messages that have not been started are given
//     back.
//  2. Handlers continue until StopTimeout. Then they are cancelled, and have StopGrace to return.
//  3. Done messages are deleted and failed ones given back, for at most flushTimeout.
//
// The heartbeat continues until the end of the stop.
type stopping struct {
	begun     bool
	at        time.Time // when it began
	cancelled bool      // the handlers' contexts
	flushBy   time.Time // the end of phase 3; zero before it
	reason    error     // an error that no retry mends
	undeleted int64     // Stats.Undeleted when the stop began
}

// flushTimeout is the time for deletes, releases and sends at the end of the stop.
const flushTimeout = 5 * time.Second

// stopBecause stops the worker because of an error that no retry mends. Run returns the first one.
func (l *loop) stopBecause(err error) {
	if l.stopping.reason == nil {
		l.log.Error("sqsworker: stopping: the error needs a fix, a retry does not help", keyError, err)
	}
	l.releases.missing = l.releases.missing || isMissing(err)
	l.beginStop(err)
}

// changeFailed is for the error of a whole delete or visibility change that began at start, or nil.
//
// To a queue that does not exist nothing is sent again, since each message would cost a call. After a receive has said so,
// what is done is still deleted: SQS may answer so for a moment, and a done message should not come back.
func (l *loop) changeFailed(err error, start time.Time, signed *signature) {
	absent := l.absent(err, start)
	if absent {
		l.deletes.missing = true
	}
	if absent || signed.ends(err, start, l.now()) || isFatal(err) {
		l.stopBecause(err)
	}
}

// noticeStop begins what Run's context or Shutdown asks for. It comes before each step, which could start a receive.
func (l *loop) noticeStop() {
	select {
	case <-l.stop:
		l.stop = nil
		l.beginStop(nil)
	default:
	}
	select {
	case <-l.shutdownAsked:
		l.shutdownAsked = nil
		l.beginStop(nil)
		l.cancelHandlers()
		l.log.Info("sqsworker: handlers cancelled before StopTimeout: the stop waits for them to return",
			"receives", l.polling.active, "handlers", l.counts[running], "deletes", l.counts[deleting],
			"releases", l.counts[releasing], "dead_letters", l.counts[rejecting])
	default:
	}
}

func (l *loop) beginStop(reason error) {
	if l.stopping.reason == nil {
		l.stopping.reason = reason
	}
	if l.stopping.begun {
		return
	}
	l.stopping.begun, l.stopping.at = true, l.now()
	l.stopping.undeleted = l.counters.undeleted.Load()
	l.state.Store(stateStopping)
	l.deletes.slow.until, l.releases.slow.until = time.Time{}, time.Time{}
	l.log.Info("sqsworker: stop begun")

	timeout := max(0, l.opts.StopTimeout)
	l.after(timeout, l.cancelHandlers)
	l.after(timeout+max(0, l.opts.StopGrace), func() {
		if l.polling.active > 0 {
			l.log.Warn("sqsworker: receives cancelled at the deadline of the stop: messages that they bring stay hidden until their visibility timeout ends")
		}
		l.cancelPollCtx()
	})
	l.line.close()
	l.releaseAllUnstarted()
	l.wake() // what is left of it has no other time
	for _, d := range l.sorted() {
		if d.state == held && (d.heldFor == heldAttempt || d.heldFor == heldPostponed) {
			l.makeReady(d)
		}
	}
}

// cancelHandlers cancels the contexts of the handlers, and gives back everything that has not been started.
func (l *loop) cancelHandlers() {
	if l.stopping.cancelled {
		return
	}
	l.stopping.cancelled = true
	l.cancelHandlerCtx(sqsonce.ErrShutdown)
	l.releaseAllUnstarted()
	l.after(max(0, l.opts.StopGrace), l.abandonRunning)
}

// mustRunInStop says that a message is run in the stop, while there is time: given back, it would go to the dead-letter
// queue without having been run.
func (l *loop) mustRunInStop(d *delivery) bool {
	return !l.stopping.cancelled && l.atLastReceive(d)
}

// mustEndInStop says the same of a message that was tried, and of those behind it.
func (l *loop) mustEndInStop(d *delivery) bool {
	return l.mustRunInStop(d) || !l.stopping.cancelled && d.group != nil && l.followerAtLastReceive(d.group)
}

// delayInStop has attempts in a stop follow soon, so that the last one leaves time for the messages behind it.
func (l *loop) delayInStop(delay time.Duration) time.Duration {
	if l.stopping.begun {
		return min(delay, (l.opts.StopTimeout-elapsed(l.now(), l.stopping.at))/4)
	}
	return delay
}

func (l *loop) releaseAllUnstarted() {
	for _, g := range l.groups {
		l.releaseUnstartedOf(g)
	}
	for _, d := range l.sorted() {
		if d.group == nil && d.isUnstarted() && !l.mustRunInStop(d) {
			l.releaseUnstarted(d)
		}
	}
}

// releaseUnstarted gives back a message that waits or is held.
func (l *loop) releaseUnstarted(d *delivery) {
	delay := time.Duration(0)
	switch {
	case d.state == held && d.heldFor == heldPostponed:
		delay = l.beforeEnd(d, max(0, d.until.Sub(l.now())))
	case d.state == held && d.heldFor.keepsDelay:
		delay = d.retry.at.Sub(l.now())
	case l.isAside(d) || l.needs.keepUnrun():
		delay = l.hiddenUnavailable(d)
	}
	l.giveBack(d, delay)
}

// hiddenInStop is how long a message stays hidden that the stop gives back. The worker's own receives could get it again: one that they
// have brought waits for their end, and one whose next receive is the last one. Others are visible at once, because another worker may be
// free.
func (l *loop) hiddenInStop(d *delivery) time.Duration {
	if !l.stopping.begun || l.polling.active == 0 || l.mayTrim(heldAside, d) && d.received.Before(l.stopping.at) {
		return 0
	}
	repeated := l.polling.repeats.Add(shortReceive + time.Second)
	return max(0, later(l.polling.waits, repeated).Sub(l.now()))
}

// abandonRunning ends the deliveries of handlers that did not return. Their messages stay hidden until the visibility
// timeout ends: given back, they would be started elsewhere while they still run here.
func (l *loop) abandonRunning() {
	var abandoned []*delivery
	for _, d := range l.sorted() {
		if d.state == running {
			abandoned = append(abandoned, d)
		}
	}
	for _, d := range l.orphans {
		abandoned = append(abandoned, d)
	}
	for _, d := range abandoned {
		if call := d.call; call != nil {
			l.calls.Go(func() { call.End(sqsonce.Return{Outcome: sqsonce.OutcomeAbandoned, Delay: -1}) })
		}
		l.markStuck(d)
		l.counters.abandoned.Add(1)
		l.remove(d)
	}
}

// stopFinished says that the stop has come to its end.
func (l *loop) stopFinished() bool {
	if !l.stopping.begun || l.polling.active > 0 || l.counts[following]+l.counts[ready]+l.counts[held]+l.counts[running] > 0 {
		return false
	}
	if l.counts[deleting]+l.counts[releasing]+l.counts[rejecting] == 0 {
		return true
	}
	if l.stopping.flushBy.IsZero() {
		l.stopping.flushBy = l.now().Add(flushTimeout)
		l.wakeAfter(flushTimeout)
	}
	return !l.now().Before(l.stopping.flushBy)
}

// report counts what the stop could not finish, and returns what Run returns.
func (l *loop) report() error {
	l.counters.undeleted.Add(int64(l.counts[deleting]))
	l.counters.abandoned.Add(int64(l.counts[releasing] + l.counts[rejecting]))
	s := l.Stats()
	l.log.Info("sqsworker: stopped", "drained", s.Drained, "released", s.Released,
		"stuck", s.Stuck, "abandoned", s.Abandoned, "undeleted", s.Undeleted)
	if l.stopping.reason != nil {
		return l.stopping.reason
	}
	unfinished := &StopError{Stuck: s.Stuck, Abandoned: s.Abandoned, Undeleted: s.Undeleted - l.stopping.undeleted}
	if *unfinished != (StopError{}) {
		return unfinished
	}
	return nil
}
