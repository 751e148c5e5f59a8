package fifo

import "time"

// safeWindow is how long after the start of an event's first attempt another may start.
//
// SQS deduplicates for five minutes from the acceptance, which is not before that start: an attempt that arrives within
// five minutes of it is recognised as a copy, whether or not copies prolong the interval (AWS does not say). An attempt
// takes up to its timeout, and 10 s are left for a request that is still on its way when we give it up.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/using-messagededuplicationid-property.html
func safeWindow(attemptTimeout time.Duration) time.Duration {
	return min(285*time.Second, 290*time.Second-attemptTimeout)
}

// lastChance is how long before the window's end the last attempt is planned, since timers fire late.
const lastChance = time.Second

// instant is a reading of both clocks. A frozen Lambda environment or a suspended laptop stops the monotonic one, a
// correction moves the other.
type instant struct {
	mono time.Duration
	wall time.Time
}

var processStart = time.Now()

func readClocks() instant {
	now := time.Now()
	return instant{mono: now.Sub(processStart), wall: now.Round(0)}
}

// since returns the time that has passed, by the clock that says more: what counts is SQS's clock, which neither stops.
func (i instant) since(start instant) time.Duration {
	return max(i.mono-start.mono, i.wall.Sub(start.wall))
}
