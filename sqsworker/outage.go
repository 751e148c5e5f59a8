package sqsworker

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

// outage is what the worker knows of something that every message needs: the store of the records, or a dependency that
// handlers report with [sqsonce.Unavailable]. Protocol, section 13.
type outage struct {
	// probing: the worker receives one message at a time, see mayProbe, until it has seen that messages can be handled. So it
	// starts: one that cannot reach its store would take MaxInFlight of them from others, and cost each a receive.
	probing bool
	row     int // unavailable outcomes in a row, of handlers that began after the last other outcome
	// last is when a handler last had another outcome. One that began before, and says now that something was unavailable,
	// may speak of an outage that is over: it may have waited for its calls all the while.
	last time.Time
}

const (
	// provenRun is how long a handler must run to prove that what it needs was there at its start. An acquire that nobody
	// answers ends before: dedup waits 6 s by default.
	provenRun = 8 * time.Second
	// handOver is how long a message is unavailable here before it is given back: other workers may be better off.
	handOver = time.Minute
	// probeAgain is how long a message must have been unavailable before a worker that probes receives another one: the
	// first one may be the only one that is.
	probeAgain = 5 * time.Second
	// mostProbes is how many messages or groups such a worker has at once.
	mostProbes = 3
	// notReady is how many unavailable outcomes in a row make the worker not ready.
	notReady = 3

	unavailableFirst = time.Second
	unavailableMost  = 30 * time.Second
)

// unavailable holds a message, with its group, and tries it again: soon at first, then every half minute. It keeps its part
// of MaxInFlight, so that no receive is started when all are unavailable: each would cost its messages a receive for nothing.
func (l *loop) unavailable(d *delivery, r result) {
	if !d.began.Before(l.outage.last) {
		l.noteUnavailable(d, r)
	}
	now := l.now()
	if d.unavailable == 0 {
		d.unavailableSince = now
	}
	d.unavailable++
	if l.stopping.begun {
		l.giveBack(d, 0)
		return
	}
	l.hold(d, heldUnavailable, unavailableDelay(d.unavailable), nil)
	// While others have another outcome it is this message that is unavailable, and no other worker is better off.
	if elapsed(now, d.unavailableSince) >= handOver && elapsed(now, l.outage.last) >= handOver {
		l.handOver()
	}
}

// mayProbe says whether a worker that probes may receive a message: where it has none, or fewer than mostProbes, all of them
// unavailable. None is received that a message to be handed over would have to wait for. The heartbeat looks every 2 s.
func (l *loop) mayProbe() bool {
	if l.polling.active > 0 {
		return false
	}
	now, probes := l.now(), 0
	for _, d := range l.deliveries {
		if d.parked || d.group != nil && d.group.head != d {
			continue
		}
		probes++
		age := elapsed(now, d.unavailableSince)
		if d.unavailable == 0 || age < probeAgain || age >= handOver-unavailableMost && l.mayHandOver(d) {
			return false
		}
	}
	return probes < mostProbes
}

// unavailableDelay is how long a message is held after so many unavailable outcomes in a row, a quarter more or less.
func unavailableDelay(n int) time.Duration {
	delay := host.Double(unavailableFirst, unavailableMost, n)
	return delay*3/4 + rand.N(delay/2)
}

func (l *loop) noteUnavailable(d *delivery, r result) {
	l.outage.row++
	l.notReady.Store(l.outage.row >= notReady)
	if l.outage.row > 1 {
		return
	}
	const text = "sqsworker: unavailable: messages are held and tried again"
	if errors.Is(r.err, sqsonce.ErrMisconfigured) {
		l.log.ErrorContext(d.context(), text, d.about(keyError, r.err)...)
	} else {
		l.log.WarnContext(d.context(), text, d.about(keyError, r.err)...)
	}
}

// handOver gives back what has been unavailable for a while, in full batches. From here on the worker has at most mostProbes
// messages or groups, so that one that is cut off from its store does not keep MaxInFlight of them from the others.
func (l *loop) handOver() {
	if !l.outage.probing {
		l.outage.probing = true
		l.log.Info("sqsworker: unavailable for a minute: messages are given back for other workers")
	}
	if l.polling.active > 0 {
		return // that receive would get them again; it is the last one until this worker has none
	}
	for _, d := range l.sorted() {
		long := d.unavailable > 0 && elapsed(l.now(), d.unavailableSince) >= handOver-unavailableMost
		if d.state == held && long && l.mayHandOver(d) {
			l.giveBack(d, 0)
		}
	}
}

// mayHandOver says that a message and its group can be given back: another receive must not be the last of any of them.
func (l *loop) mayHandOver(d *delivery) bool {
	hasReceives := func(d *delivery) bool { return l.queue.maxReceives == 0 || d.lease.count <= l.queue.maxReceives-2 }
	if d.group == nil {
		return hasReceives(d)
	}
	for _, f := range d.group.followers {
		if !hasReceives(f) {
			return false
		}
	}
	return hasReceives(d)
}

// available ends an outage: a handler has returned with another outcome.
func (l *loop) available() {
	l.outage.probing = false
	if l.outage.row > 0 {
		l.log.Info("sqsworker: available again")
	}
	l.outage.row, l.outage.last = 0, l.now()
	l.notReady.Store(false)
}

// proveBy has a handler that runs for a while count as the proof that what it needs is there.
func (l *loop) proveBy(d *delivery) {
	if !l.outage.probing {
		return
	}
	run := d.run // a message may run again meanwhile
	l.after(provenRun, func() {
		if d.state == running && d.run == run {
			l.outage.probing = false
		}
	})
}
