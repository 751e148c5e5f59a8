package dedup

import "time"

// remaining returns what is left until a time, by the one of the two clocks that has run further since the time was
// made. The monotonic clock stops while a machine is suspended or a Lambda environment frozen, the wall clock can be set
// back: a holder that trusted either alone could believe in a lease that is over.
func remaining(until, now time.Time) time.Duration {
	wall := until.Round(0).Sub(now.Round(0))
	return min(until.Sub(now), wall)
}

// anchor returns the same instant with a reading of the monotonic clock, which times computed from a server's date lack.
func anchor(until, now time.Time) time.Time { return now.Add(remaining(until, now)) }
