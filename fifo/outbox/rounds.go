package outbox

import (
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
)

// rounds is the pause of Run while every visit fails. A round without a success doubles it, up to 30 s. The first success ends
// it. A round is as many failed visits as groups are published at once, or all groups. After the first lost round it is as many
// as fill a request, which are enough to see that the queue is there again.
type rounds struct {
	groups   int // Options.Groups
	poll     time.Duration
	failures int // of this round
	lost     int // rounds in a row
	until    time.Time
}

// width is how many groups are published at once.
func (r *rounds) width() int {
	if r.lost > 0 {
		return min(r.groups, host.MaxBatch)
	}
	return r.groups
}

func (r *rounds) paused() bool { return time.Now().Before(r.until) }

// failed notes a visit that failed. Those that end in a pause belong to the round before it.
func (r *rounds) failed() {
	if !r.paused() {
		r.failures++
	}
}

// end ends a round, which was lost if it has failures.
func (r *rounds) end() {
	if r.failures == 0 || r.paused() {
		return
	}
	r.failures = 0
	r.lost++
	r.until = time.Now().Add(max(r.poll, host.Double(2*r.poll, longestPause, r.lost)))
}

func (r *rounds) succeeded() { *r = rounds{groups: r.groups, poll: r.poll} }
