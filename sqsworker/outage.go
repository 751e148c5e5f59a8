package sqsworker

import (
	"fmt"
	"slices"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// A message that is unavailable accuses nobody: it may be the only one, or what it needs may be down for all. The error's question
// tells which. It is a call of our own on the path that failed. Where it fails nothing is received and nothing runs; where it passes
// only the message is set aside. An error without a question is a claim: see aside.go. Protocol, section 17.

// needs is the worker's knowledge of the dependencies of its messages: the store of the records, or a dependency of the
// handlers.
type needs struct {
	state     needsState
	since     time.Time     // of the state
	proven    bool          // a message had another outcome than unavailable since Run began
	last      time.Time     // when a message last had one
	took      time.Duration // by the longest run that was unavailable, since then
	err       error         // of the newest unavailable outcome
	postpones bool          // a message was postponed since the state began
	told      bool          // middleware tells when it calls handlers: see settle.Ran

	questions []*asked
	asking    *asked // the one that is under way; nil: none is
	trial     trial

	claims  int // in a row
	probes  int // receives since the worker is in doubt
	probeAt time.Time
	count   int       // receive count of the newest message
	woken   time.Time // when all that is aside was last tried because one got through
	trouble trouble
}

type needsState int

const (
	needsProven   needsState = iota
	needsUnproven            // no message had another outcome yet, since the start or an outage: one at a time
	needsDoubted             // claims in a row: one message a second, see aside.go
	needsDown                // a question fails: the worker neither receives nor runs messages
)

const (
	handOver     = time.Minute // messages that a worker cannot run for so long go to others
	firstTrial   = 30 * time.Second
	trialEvery   = 10 * time.Minute
	lookAgain    = 10 * time.Second
	leftReceives = 2 // of a message that is given back without a run
	// provenRun is how long a handler must run to prove that its dependencies worked at its start.
	provenRun = 8 * time.Second
)

// newNeeds is what a worker knows at its start. One that cannot reach its store would take MaxInFlight messages from others, and
// cost each a receive: so it begins with one.
func newNeeds(warm bool) needs {
	if warm {
		return needs{proven: true}
	}
	return needs{state: needsUnproven}
}

func (l *loop) setNeeds(s needsState) {
	l.needs.state, l.needs.since, l.needs.postpones = s, l.now(), false
	switch reason := ""; s {
	case needsDown:
		reason = fmt.Sprintf("the store or a dependency of the handlers is down: %v", l.needs.err)
		l.notReady.Store(&reason)
	case needsDoubted:
		reason = fmt.Sprintf("the last %d outcomes were unavailable: %v", doubtAfter, l.needs.err)
		l.notReady.Store(&reason)
	case needsProven, needsUnproven:
		l.notReady.Store(nil)
	}
}

// keepUnrun says that messages wait because of an outage, or of a doubt.
func (n *needs) keepUnrun() bool { return n.state == needsDown || n.state == needsDoubted }

// beginOutage begins the outage that a question told of. It may have got no answer: other workers shall not wait longer for what is held
// here than where it was refused.
func (l *loop) beginOutage(a *asked) {
	l.setNeeds(needsDown)
	waited := min(elapsed(l.needs.since, a.begun), a.Within()+time.Second) // a clock may jump
	l.whileNeeds(handOver-waited, lookAgain, func() {
		l.expireHeld()
		l.handOver(0)
	})
	l.whileNeeds(firstTrial-waited, trialEvery, func() { l.needs.trial = trial{state: trialDue} })
}

// whileNeeds runs f after first, and then again and again, until the state that begins now has ended.
func (l *loop) whileNeeds(first, then time.Duration, f func()) {
	state, since := l.needs.state, l.needs.since
	l.after(first, func() {
		if l.needs.state == state && l.needs.since.Equal(since) {
			f()
			l.whileNeeds(then, then, f)
		}
	})
}

// endOutage runs all that is held.
func (l *loop) endOutage(next needsState) {
	l.setNeeds(next)
	l.again.slots = l.opts.Concurrency
	l.needs.trial, l.needs.claims = trial{}, 0
	l.wake()
}

// disbelieve ends an outage that is none: a message that was tried all the same had another outcome.
func (l *loop) disbelieve() {
	for _, a := range l.needs.questions {
		if a.failures > 0 {
			a.failures, a.wanted, a.disbelieved = 0, false, l.now().Add(disbelief)
			l.log.Warn("sqsworker: a message was handled while the question whether the store works fails: for an hour its failure only sets messages aside",
				keyError, a.err)
		}
	}
	l.endOutage(needsProven)
}

// handOver gives back what cannot run here, and has been unavailable for so long: other workers may be better off.
func (l *loop) handOver(after time.Duration) {
	if l.polling.active > 0 {
		return // that receive would get them again
	}
	for _, d := range l.kept() {
		long := after == 0 || l.isAside(d) && elapsed(l.now(), d.unavailableSince) >= after
		if long && l.mayHandOver(d) {
			hidden := time.Duration(0)
			if l.needs.state == needsDoubted && d.heldFor == heldAside {
				hidden = l.asideHidden(d) // it is unavailable by itself
			}
			l.giveBack(d, hidden)
		}
	}
}

// kept are the messages that an outage or a doubt keeps from running, without those behind them in their groups, in the order of receipt.
func (l *loop) kept() []*delivery {
	return slices.DeleteFunc(l.sorted(), func(d *delivery) bool {
		behind := d.group != nil && d.group.head != d
		return behind || d == l.needs.trial.message || d.state != ready && !l.isAside(d)
	})
}

// mayHandOver says that a message and its group can be given back unrun: each has receives left.
func (l *loop) mayHandOver(d *delivery) bool { return l.mayTrimGroup(heldAside, d) }

// othersComplete is how long nothing starts after an outage. Package dedup goes on to complete the records of handlers that succeeded in
// it, with pauses of a sixtieth of the time that it has lasted.
const othersComplete = 2 * time.Second

// letOthersComplete keeps messages from running right after an outage. Other workers may have had them, with handlers that succeeded and
// leases that ended since: without a pause the messages would run here again before those workers can complete their records. No lease
// ends in an outage of less than half a visibility timeout.
func (l *loop) letOthersComplete(began time.Time) {
	if elapsed(l.now(), began) < l.opts.VisibilityTimeout/2 {
		return
	}
	l.startAfter = l.now().Add(othersComplete)
	l.wakeAfter(othersComplete)
}

// mayStart says whether a message may run: all in a stop, while there is time, and in an outage only the one that is tried. None runs
// that waits for suspects.
func (l *loop) mayStart(d *delivery) bool {
	if l.waitsForSuspects(d) || l.now().Before(l.startAfter) && !l.stopping.begun {
		return false
	}
	return l.needs.state != needsDown || l.stopping.begun || d == l.needs.trial.message
}

// trial is the message that is run in an outage all the same. It has not been unavailable yet, and is received for the trial
// if need be. It finds out a question that fails for another reason than the messages do.
type trial struct {
	state   trialState
	message *delivery // trialRuns
}

type trialState int

const (
	noTrial       trialState = iota
	trialDue                 // a message is to be chosen
	trialReceived            // a receive is under way for it
	trialRuns
)

// chooseTrial chooses a message for a trial. Without one a receive for one message is started, see toProbe, if one may be.
func (l *loop) chooseTrial() {
	t := &l.needs.trial
	if m := t.message; m != nil && (m.lease.lost || m.state != ready && m.state != running) {
		l.tryAnother()
	}
	if t.state != trialDue && (t.state != trialReceived || l.polling.active > 0) {
		return
	}
	var oldest *delivery
	for _, d := range l.sorted() {
		if l.waitsForSuspects(d) {
			continue
		}
		if d.state == ready && d.unavailable == 0 {
			*t = trial{trialRuns, d}
			return
		}
		if oldest == nil && (d.state == ready || l.isAside(d)) {
			oldest = d
		}
	}
	if t.state == trialDue && (oldest == nil || l.mayReceive()) {
		return
	}
	*t = trial{}
	if oldest == nil {
		return
	}
	*t = trial{trialRuns, oldest} // no other one is to be had
	if oldest.state == held {
		l.makeReady(oldest)
	}
}

// tryAnother has a trial follow soon on one that told nothing: its lease was lost, it is a suspect or a duplicate.
func (l *loop) tryAnother() {
	l.needs.trial = trial{}
	if l.needs.state != needsDown {
		return
	}
	since := l.needs.since
	l.after(lookAgain, func() {
		if n := &l.needs; n.state == needsDown && n.since.Equal(since) && n.trial.state == noTrial {
			n.trial.state = trialDue
		}
	})
}

// toProbe is how many messages a worker may receive that is not sure of what its messages need; decided is false where it is sure, and
// where one receive at a time may be for more: what is postponed does not get as far as to need anything.
func (l *loop) toProbe() (n int, decided bool) {
	may := l.polling.active == 0
	switch l.needs.state {
	case needsProven:
		return 0, false
	case needsUnproven:
		if may = may && !l.awaitsOutcome(); may && l.needs.postpones && l.needs.trouble.affected == 0 {
			return 0, false
		}
	case needsDoubted:
		may = may && int(l.heldAs[heldClaim]) < l.opts.MaxHeld && !l.now().Before(l.needs.probeAt)
	case needsDown:
		may = may && l.needs.trial.state == trialDue
	}
	if may {
		return 1, true
	}
	return 0, true
}

// awaitsOutcome says that a message waits for its first outcome since the state began, with a slot or for one. A handler that has run
// since before that says nothing, and may run for hours. What was unavailable since then is aside or a claim, and may run all the time.
func (l *loop) awaitsOutcome() bool {
	for _, d := range l.deliveries {
		again := d.unavailable > 0 && !d.unavailableLast.Before(l.needs.since)
		if !again && (d.state == ready || d.state == running && !d.began.Before(l.needs.since)) {
			return true
		}
	}
	return false
}

// ran says whether a result is that of a handler. Where middleware tells when it calls the handler, a failure of which it does not is of
// other middleware, outside of it.
func (n *needs) ran(r result) bool {
	decided := n.told && !r.told && r.outcome != sqsonce.OutcomeDone
	return r.ran && !decided && r.outcome != sqsonce.OutcomeLeaseLost
}

// available notes that a message had another outcome than unavailable. Where its handler did not run, as for a duplicate, that says
// nothing about what handlers need, and may come of what this process remembers.
func (l *loop) available(d *delivery, ran bool) {
	n := &l.needs
	wasAside := d.unavailable > 0
	l.forgetUnavailable(d)
	if !ran {
		if n.state == needsUnproven {
			l.setNeeds(needsProven) // it cost the message nothing
		}
		return
	}
	l.refute()
	n.proven, n.last, n.took = true, l.now(), 0
	switch began := d.began; n.state {
	case needsDown:
		for _, a := range n.questions {
			if a.failures > 0 && !began.After(a.failed) {
				return // it began before
			}
		}
		l.disbelieve()
	case needsDoubted:
		if !began.Before(n.since) {
			l.setNeeds(needsProven)
		}
	case needsUnproven:
		l.setNeeds(needsProven)
	case needsProven:
	}
	n.claims = 0
	if wasAside {
		l.gotThrough()
	}
}

// proveBy has a handler that runs for a while, and for twice as long as those that were unavailable, count as the proof that what it needs
// is there: it may run for hours.
func (l *loop) proveBy(d *delivery) {
	n := &l.needs
	if d.unavailable == 0 && (n.state == needsProven || n.state == needsDown && n.trial.message != d) {
		return
	}
	state, since, began := n.state, n.since, d.began // a message may run again meanwhile
	proves := max(provenRun, 2*n.took, 2*d.took)
	var prove func()
	prove = func() {
		same := n.state == state && n.since.Equal(since)
		switch {
		case d.state != running || !d.began.Equal(began):
			return
		case 2*n.took > proves:
			l.proveBy(d)
			return
		case !settle.InHandler(d.key.handler): // middleware may wait for a store that is down
			l.after(provenRun, prove)
			return
		case !same || state == needsProven || state == needsDown && n.trial.message != d:
		case state == needsDown:
			l.disbelieve()
		default:
			l.setNeeds(needsProven)
			l.refute()
			n.claims, n.last = 0, l.now()
		}
		if d.unavailable > 0 {
			l.forgetUnavailable(d)
			l.endAgain(d) // its run may take hours
			l.gotThrough()
		}
	}
	l.after(d.began.Add(proves).Sub(l.now()), prove)
}
