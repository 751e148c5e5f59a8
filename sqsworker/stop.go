package sqsworker

import (
	"time"

	"github.com/sqsonce/sqsonce"
)

// stopping is the stop, in phases: nothing more is asked for; receives under way end by themselves; what has not been
// started is given back; handlers go on until StopTimeout, then they are cancelled and have StopGrace to return; what is
// done is deleted. The heartbeat goes on until all of it is over.
type stopping struct {
	begun     bool
	cancelled bool      // handlers were told
	abandoned bool      // those that did not listen were given up
	flushBy   time.Time // for deletes, releases and sends, once no handler runs
	reason    error     // an error that cannot heal
	undeleted int64     // Stats.Undeleted when it began
}

// flushTime is what deletes and releases get at the end.
const flushTime = 5 * time.Second

// fail stops the worker because of an error that cannot heal. The first one is Run's.
func (l *loop) fail(err error) {
	if l.stopping.reason == nil {
		l.log.Error("sqsworker: stopping", keyError, err)
	}
	l.beginStop(err)
}

func (l *loop) beginStop(reason error) {
	if l.stopping.reason == nil {
		l.stopping.reason = reason
	}
	if l.stopping.begun {
		return
	}
	l.stopping.begun = true
	l.stopping.undeleted = l.counters.undeleted.Load()
	l.state.Store(stateStopping)
	l.log.Info("sqsworker: stop begun")

	timeout := max(0, l.opts.StopTimeout)
	l.later(timeout, l.cancelHandlers)
	l.later(timeout+max(0, l.opts.StopGrace), func() {
		l.abandon()
		if l.polling.active > 0 {
			l.log.Warn("sqsworker: receives ended at the stop's deadline; what they carry stays hidden until its visibility timeout")
		}
		l.endPolls()
	})
	for _, g := range l.groups {
		l.releaseUnstarted(g)
	}
	for _, d := range l.inTable() {
		if d.group == nil && (d.state == waiting || d.state == held) && !l.keepAtStop(d) {
			l.giveBack(d)
		}
	}
}

// keepAtStop says that a message must not go back unstarted while there is time to run it: it would go to the
// dead-letter queue without having been run.
func (l *loop) keepAtStop(d *delivery) bool {
	return !l.stopping.cancelled && l.atLastReceive(d)
}

// cancelHandlers tells the handlers that they must end.
func (l *loop) cancelHandlers() {
	if l.stopping.cancelled {
		return
	}
	l.stopping.cancelled = true
	l.endHandler(sqsonce.ErrShutdown)
	for _, g := range l.groups {
		l.releaseUnstarted(g)
	}
	for _, d := range l.inTable() {
		if d.group == nil && (d.state == waiting || d.state == held) {
			l.giveBack(d)
		}
	}
	l.later(max(0, l.opts.StopGrace), l.abandon)
}

// abandon leaves the messages of handlers that did not listen to their visibility timeout: to give them back would start
// them elsewhere while they still run here.
func (l *loop) abandon() {
	if l.stopping.abandoned {
		return
	}
	l.stopping.abandoned = true
	var stuck []*delivery
	for _, d := range l.inTable() {
		if d.state == running {
			stuck = append(stuck, d)
		}
	}
	for _, d := range l.orphans {
		stuck = append(stuck, d)
	}
	for _, d := range stuck {
		l.markStuck(d)
		l.counters.abandoned.Add(1)
		if d.group != nil {
			d.group.queue = nil // none are left but behind a handler that ran
		}
		l.leave(d)
	}
}

// over says that the stop has come to its end.
func (l *loop) over() bool {
	if !l.stopping.begun || l.polling.active > 0 || l.counts[waiting]+l.counts[held]+l.counts[running] > 0 {
		return false
	}
	if l.counts[deleting]+l.counts[releasing]+l.counts[rejecting] == 0 {
		return true
	}
	if l.stopping.flushBy.IsZero() {
		l.stopping.flushBy = l.now().Add(flushTime)
		l.later(flushTime, func() {})
	}
	return !l.now().Before(l.stopping.flushBy)
}

// report counts what is left and says what Run returns.
func (l *loop) report() error {
	l.counters.undeleted.Add(int64(l.counts[deleting]))
	l.counters.abandoned.Add(int64(l.counts[releasing] + l.counts[rejecting]))
	s := l.Stats()
	l.log.Info("sqsworker: stopped", "drained", s.Drained, "released", s.Released,
		"stuck", s.Stuck, "abandoned", s.Abandoned, "undeleted", s.Undeleted)
	if l.stopping.reason != nil {
		return l.stopping.reason
	}
	left := &StopError{Stuck: s.Stuck, Abandoned: s.Abandoned, Undeleted: s.Undeleted - l.stopping.undeleted}
	if *left != (StopError{}) {
		return left
	}
	return nil
}
