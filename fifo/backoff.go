package fifo

import (
	"math/rand/v2"
	"time"
)

const (
	backoffBase = 100 * time.Millisecond
	backoffCap  = 5 * time.Second
)

// backoff returns how long to wait after the n-th failure in a row, counted from 1: anything up to a bound that doubles
// (full jitter), so that many publishers do not come back together.
func backoff(n int) time.Duration {
	bound := backoffCap
	if n < 7 {
		bound = min(backoffBase<<(n-1), backoffCap)
	}
	return rand.N(bound)
}

// pause holds all requests back after the queue itself, not one entry, was throttled.
type pause struct {
	until time.Time
	n     int // throttled requests in a row
}

func (p *pause) throttled(now time.Time) {
	p.n++
	if until := now.Add(backoff(p.n)); until.After(p.until) {
		p.until = until
	}
}
