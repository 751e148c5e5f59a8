package sqsworker

import (
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// A postponed message stands while a service that middleware asks about it is down, such as a limit's Counter: see settle.Turn. The worker can't
// tell by it whether anything else is, and goes on. But each message that it receives for nothing loses a receive, and another worker may
// have its answers. So it looks for others less and less often, and gives standing messages back. Protocol, 18.5c.
type standing struct {
	since   time.Time   // the first of the outcomes in a row that stand; zero: the last one doesn't
	stands  func() bool // whether the message of the last one does still
	probes  int         // receives since then
	handing bool        // handOverStanding is to come
}

// noteStanding notes whether the message of an outcome stands.
func (l *loop) noteStanding(err error) {
	s := &l.standing
	turn, _ := settle.TurnOf(err)
	if !stands(turn) {
		l.endStanding()
		return
	}
	if s.stands = turn.Stands; s.since.IsZero() {
		s.since = l.now()
		l.wakeAfter(l.standingPause())
	}
	if !s.handing {
		s.handing = true
		l.after(lookAgain, l.handOverStanding)
	}
}

func (l *loop) endStanding() { l.standing = standing{handing: l.standing.handing} }

// endStandingBy has a handler that begins meanwhile, and runs for a while, count as an outcome: it may run for hours.
func (l *loop) endStandingBy(d *delivery) {
	since, began := l.standing.since, d.began // a message may run again meanwhile
	if since.IsZero() {
		return
	}
	l.after(provenRun, func() {
		if d.state == running && d.began.Equal(began) && l.standing.since.Equal(since) {
			l.endStanding()
		}
	})
}

// lastStands reports whether the message of the last outcome stands still.
func (l *loop) lastStands() bool {
	s := &l.standing
	if !s.since.IsZero() && !s.stands() {
		l.endStanding()
	}
	return !s.since.IsZero()
}

func stands(t settle.Turn) bool { return t.Stands != nil && t.Stands() }

// standingPause is how long after a receive the next one begins.
func (l *loop) standingPause() time.Duration {
	return host.Double(probeEvery, lateProbe, l.standing.probes+1)
}

// probedStanding notes that a receive begins.
func (l *loop) probedStanding() {
	if !l.standing.since.IsZero() {
		l.standing.probes++
		l.wakeAfter(l.standingPause())
	}
}

// probeStanding is how many messages a receive may ask for while lastStands.
func (l *loop) probeStanding() int {
	if l.polling.active > 0 || elapsed(l.now(), l.behind.probed) < l.standingPause() {
		return 0
	}
	return 1
}

// handOverStanding gives back messages that have stood for a minute, if it keeps enough receives, and looks again while anything stands.
func (l *loop) handOverStanding() {
	s := &l.standing
	if s.handing = l.lastStands(); l.stopping.begun {
		return // it gives all back
	}
	for _, d := range l.sorted() {
		if d.state == ready || d.state == running {
			continue // it asks again, and may stand on
		}
		if d.state != held || d.heldFor != heldPostponed || !stands(d.turn) {
			d.stood = time.Time{}
			continue
		}
		if d.stood.IsZero() {
			d.stood = l.now()
		}
		s.handing = true
		// A receive that is under way would get it again.
		if l.polling.active == 0 && elapsed(l.now(), d.stood) >= handOver && l.mayPutOff(d) {
			l.putOff(d, leastPostponed)
		}
	}
	if s.handing {
		l.after(lookAgain, l.handOverStanding)
	}
}
