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
	last    bool // the last outcome is that of a message that stands
	probes  int  // receives since then
	handing bool // handOverStanding is to come
}

// noteStanding notes whether the message of an outcome stands.
func (l *loop) noteStanding(err error) {
	s := &l.standing
	turn, _ := settle.TurnOf(err)
	was := s.last
	if s.last = stands(turn); !s.last {
		s.probes = 0
		return
	}
	if !was {
		l.wakeAfter(l.standingPause())
	}
	if !s.handing {
		s.handing = true
		l.after(lookAgain, l.handOverStanding)
	}
}

func stands(t settle.Turn) bool { return t.Stands != nil && t.Stands() }

// standingPause is how long after a receive the next one begins.
func (l *loop) standingPause() time.Duration {
	return host.Double(probeEvery, lateProbe, l.standing.probes+1)
}

// probedStanding notes that a receive begins.
func (l *loop) probedStanding() {
	if l.standing.last {
		l.standing.probes++
		l.wakeAfter(l.standingPause())
	}
}

// probeStanding is how many messages a receive may ask for while the last outcome stands.
func (l *loop) probeStanding() int {
	if l.polling.active > 0 || elapsed(l.now(), l.behind.probed) < l.standingPause() {
		return 0
	}
	return 1
}

// handOverStanding gives back messages that have stood for a minute, if it keeps enough receives, and looks again while anything stands.
func (l *loop) handOverStanding() {
	s := &l.standing
	if s.handing = s.last; l.stopping.begun {
		return // it gives all back
	}
	for _, d := range l.sorted() {
		if d.state != held || d.heldFor != heldPostponed || !stands(d.turn) {
			continue
		}
		s.handing = true
		// A receive that is under way would get it again.
		if l.polling.active == 0 && elapsed(l.now(), d.received) >= handOver && l.mayPutOff(d) {
			l.putOff(d, leastPostponed)
		}
	}
	if s.handing {
		l.after(lookAgain, l.handOverStanding)
	}
}
