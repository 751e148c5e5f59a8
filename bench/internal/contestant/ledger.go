package contestant

import (
	"sync/atomic"
	"time"

	"github.com/sqsonce/sqsonce/bench/internal/job"
)

// Ledger is the handler's effect: which events it was started for, how often, and for which it returned. It takes four
// bytes an event and one atomic operation each way, the same for every contestant.
type Ledger struct{ events []atomic.Uint32 }

// finished is set beside the number of starts.
const finished = 1 << 31

// NewLedger has room for n events.
func NewLedger(n int) *Ledger { return &Ledger{events: make([]atomic.Uint32, n)} }

// Handle is the handler: it takes its time, whatever its context says, and cannot fail.
func (l *Ledger) Handle(body string, d time.Duration) {
	n := job.Number(body)
	if n < 0 || n >= len(l.events) {
		return
	}
	l.events[n].Add(1)
	if d > 0 {
		time.Sleep(d)
	}
	l.events[n].Or(finished)
}

// Done records event n without a handler: a publisher's event that was accepted.
func (l *Ledger) Done(n int) { l.events[n].Or(finished) }

// Report adds what the handlers did to u.
func (l *Ledger) Report(u *job.Usage) {
	u.Done = job.NewBits(len(l.events))
	for n := range l.events {
		v := l.events[n].Load()
		if v&finished != 0 {
			u.Done.Add(n)
		}
		if v&^finished > 1 {
			u.Doubled++
		}
	}
}
