package fifo

import (
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
)

const (
	backoffBase = 100 * time.Millisecond
	backoffCap  = 5 * time.Second
)

// delay is how long to wait after the n-th failure in a row, counted from 1.
func delay(n int) time.Duration { return host.Jitter(backoffBase, backoffCap, n) }

// pause holds all requests back after the queue itself, not one entry, was throttled.
type pause struct {
	until time.Time
	n     int // throttled requests in a row
}

func (p *pause) throttled(now time.Time) {
	p.n++
	if until := now.Add(delay(p.n)); until.After(p.until) {
		p.until = until
	}
}
