package outbox

import (
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
)

// Stats counts since NewRelay.
type Stats struct {
	Moved     int64 `help:"Due events that this relay added to the outbox, where the store keeps events until they are due."`
	Published int64 `help:"Events that SQS confirmed. A copy counts again."`
	Deleted   int64 `help:"Events that were deleted after SQS had confirmed them."`
	Copies    int64 `help:"Sends over 285 s after an unanswered one of the same event."`
	Unknown   int64 `help:"Sends without an answer."`
	Refused   int64 `help:"Events that SQS refused. Each attempt counts."`
	Halted    int64 `help:"Visits that ended at a halted event."`
	Unsettled int64 `help:"Reads that could not confirm the events that follow."`
	Rounds    int64 `help:"Looks for all groups, by Run and Sweep."`
	Reads     int64 `help:"Reads of a group's events."`
	Probes    int64 `help:"Requests of the store for the event before the first one, where it has any."`
	Stale     int64 `help:"Pages of which a part was too old to be sent."`
	Undeleted int64 `help:"Events that SQS confirmed, and whose delete is still owed."`
	// WrongSource counts visits that ended at an event of another namespace.
	WrongSource int64 `help:"Visits that ended at an event of another namespace."`
	// Began is when the Run that is under way began, or zero if Run is not under way. Swept is when a sweep, of Sweep or of
	// Run, last came to the end of the store. It is zero before the first such sweep, and again after a Run begins or ends. In
	// Run one of them is always young. If Swept, or before it Began, is minutes old, the store doesn't answer, or many groups
	// wait and every one fails, and Backlog is as old.
	Began time.Time `help:"When the running Run began. 0: none runs."`
	Swept time.Time `help:"When a sweep last reached the end of the store. 0: none has since Run began or ended."`
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
	Groups  int           `help:"Groups with events, as the last sweep saw them."`
	Oldest  time.Duration `help:"Age of the oldest event that is not skipped, at the last sweep. 0: none."`
	Halted  int           `help:"First halted events of their groups that the last sweep saw."`
	Skipped int           `help:"Skipped events before these that the last sweep saw."`
	Overdue time.Duration `help:"How long the first event has been due that the last sweep could not add to the outbox. 0: none."`
}

// Backlog returns the state that the last complete sweep saw, of Sweep or of Run. A sweep is complete if it came to the end of
// the store. Before the first one Backlog is zero.
func (r *Relay) Backlog() Backlog {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.backlog
}
