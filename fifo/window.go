package fifo

import "time"

// safeWindow is how long after the start of an event's first attempt with an unknown outcome another attempt may start.
//
// SQS deduplicates for five minutes after it accepts a message, which is not before that start: the attempts before it did not
// reach the queue. So SQS recognises an attempt that arrives within five minutes of it; AWS does not say whether a recognised
// copy prolongs the interval. An attempt ends at latestEnd at the latest, and a request that is still on its way then has
// another 10 s.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/using-messagededuplicationid-property.html
func safeWindow(attemptTimeout time.Duration) time.Duration {
	return min(285*time.Second, latestEnd-attemptTimeout)
}

const (
	// latestEnd is when the last attempt ends, from the start of the window. An attempt whose timeout has grown is cut to it.
	latestEnd = 290 * time.Second
	// mostRepeats is how often an attempt with an unknown outcome is repeated on a standard queue, which recognises no copy.
	mostRepeats = 2
	// warnAfter is how long an event is tried before a line says so, and the time between two such lines.
	warnAfter = time.Minute
)

// lastAttemptMargin is how long before the end of the window the last attempt is planned, because timers fire late.
const lastAttemptMargin = time.Second

// instant is a reading of both clocks. The monotonic clock stops in a frozen Lambda environment and in a suspended
// computer; a correction moves the wall clock.
type instant struct {
	mono time.Duration
	wall time.Time
}

var processStart = time.Now()

func readClocks() instant {
	now := time.Now()
	return instant{mono: now.Sub(processStart), wall: now.Round(0)}
}

// since returns the time since start, by the clock that says more: SQS's own clock does not stop.
func (i instant) since(start instant) time.Duration {
	return max(i.mono-start.mono, i.wall.Sub(start.wall))
}

// inheritWindow gives an entry the window of an earlier call that published the same event, while that window is open: SQS's
// deduplication interval began with that call. The caller holds the lock.
func (p *Publisher) inheritWindow(e *entry) {
	if !p.fifo {
		return
	}
	if s, ok := p.recent.find(e.keyHash); ok && p.clocks().since(s.first()) <= p.window {
		e.first, e.opened = s.first(), true
	}
}
