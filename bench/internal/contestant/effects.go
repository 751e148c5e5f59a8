package contestant

import (
	"sync/atomic"
	"time"

	"github.com/sqsonce/sqsonce/bench/internal/job"
)

// Effects are what the handlers did: how often the handler of each event was started, and whether it returned. They take
// four bytes for each event and two atomic operations for each run, the same for every contestant.
type Effects struct{ events []atomic.Uint32 }

// finished is the bit beside an event's number of starts.
const finished = 1 << 31

// NewEffects returns the effects of events 0 to n-1.
func NewEffects(n int) *Effects { return &Effects{events: make([]atomic.Uint32, n)} }

// Handle is the handler of every contestant. It sleeps for d, ignores its context, and does not fail.
func (e *Effects) Handle(body string, d time.Duration) {
	n := job.Number(body)
	if n < 0 || n >= len(e.events) {
		return
	}
	e.events[n].Add(1)
	if d > 0 {
		time.Sleep(d)
	}
	e.events[n].Or(finished)
}

// Accepted records that the queue has accepted event n from a publisher.
func (e *Effects) Accepted(n int) { e.events[n].Or(finished) }

// Report adds the effects to u.
func (e *Effects) Report(u *job.Usage) {
	u.Done = job.NewBits(len(e.events))
	for n := range e.events {
		v := e.events[n].Load()
		if v&finished != 0 {
			u.Done.Add(n)
		}
		if v&^finished > 1 {
			u.Doubled++
		}
	}
}
