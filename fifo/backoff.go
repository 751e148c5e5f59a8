package fifo

import (
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
)

// The delay before an attempt: a random part of 100 ms, doubled with each failure up to 5 s.
const (
	firstDelay   = 100 * time.Millisecond
	longestDelay = 5 * time.Second
)

// retryDelay returns the delay after the n-th failure in a row, counted from 1.
func retryDelay(n int) time.Duration { return host.Jitter(firstDelay, longestDelay, n) }

// throttle delays all requests after SQS throttled the queue and not one entry.
type throttle struct {
	until time.Time
	n     int // throttled requests in a row
}

func (t *throttle) extend(now time.Time) {
	t.n++
	if until := now.Add(retryDelay(t.n)); until.After(t.until) {
		t.until = until
	}
}

// unsigned counts attempts that failed because of credentials or a signature: they were missing, or SQS refused them. One such
// failure passes, but a wrong configuration must not stay hidden.
type unsigned struct{ first, last time.Time }

const (
	// unsignedPatience is how long such attempts are repeated.
	unsignedPatience = 5 * time.Second
	// unsignedMemory is how long a failure counts as one of a row.
	unsignedMemory = time.Minute
)

// refused returns what one more failure proves.
func (u *unsigned) refused(now time.Time) proof {
	if now.Sub(u.last) > unsignedMemory {
		u.first = now
	}
	u.last = now
	if now.Sub(u.first) < unsignedPatience {
		return provesNotSent
	}
	return provesRefused
}

// mostGrown bounds the growth of a timeout. After an outage without answers an attempt may wait in vain for so long, and new
// events wait for it.
const mostGrown = 20 * time.Second

// adaptTimeout gives the next attempt twice the time after one that took too long. What SQS answers after the timeout is an
// unknown outcome, and a copy on a standard queue; a queue that is slow now would answer every attempt so. A response within
// Options.attemptTimeout sets it back. The caller holds the lock.
func (p *Publisher) adaptTimeout(a *attempt) {
	switch {
	case a.timedOut:
		p.timeout = max(p.timeout, min(2*a.timeout, mostGrown))
	case a.answered && a.took <= p.opts.attemptTimeout:
		p.timeout = p.opts.attemptTimeout
	}
}
