package outbox

import (
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
)

// Stats counts since NewRelay.
type Stats struct {
	Published int64 // events that SQS confirmed, including copies
	Deleted   int64 // events that were deleted after that
	Copies    int64 // sends over 285 s after an unanswered one of the same event
	Unknown   int64 // sends without an answer
	Refused   int64 // refusals of events for good, one per attempt
	Halted    int64 // visits that ended at a halted event
	Unsettled int64 // reads that could not vouch for the events that follow
	Rounds    int64 // of Run and Sweep: looks for all groups
	Reads     int64
	Probes    int64 // requests of the store for the event before the first one, if it makes such requests
	Stale     int64 // pages of which a part was too old to be sent
	Undeleted int64 // now: confirmed, and the delete is still owed
	// WrongSource counts visits that ended at an event of another namespace.
	WrongSource int64
	// Began is when the Run that is under way began, or zero if Run is not under way. Swept is when a sweep, of Sweep or of
	// Run, last came to the end of the store. It is zero before the first such sweep, and again after a Run begins or ends. In
	// Run one of them is always young. If Swept, or before it Began, is minutes old, the store doesn't answer, or many groups
	// wait and every one fails, and Backlog is as old.
	Began, Swept time.Time
}

// Stats returns the counters.
func (r *Relay) Stats() Stats {
	var probes int64
	if p, ok := r.store.Store.(interface{ Probes() int64 }); ok {
		_ = host.Recover(func() { probes = p.Probes() }) // a count that is not there is 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stats
	s.Undeleted, s.Probes = int64(r.owed), probes
	return s
}

func (r *Relay) count(f func(*Stats)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.stats)
}

// Backlog is the state of the outbox that a sweep saw before it published.
type Backlog struct {
	Groups          int
	Oldest          time.Duration // age of the oldest event that is not skipped, or 0 without one
	Halted, Skipped int           // parked events that were seen: the first halted one of a group, and the skipped ones before it
}

// Backlog returns the state that the last complete sweep saw, of Sweep or of Run. A sweep is complete if it came to the end of
// the store. Before the first one Backlog is zero.
func (r *Relay) Backlog() Backlog {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.backlog
}
