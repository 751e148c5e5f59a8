package outbox

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
)

const (
	// mostDeletes is how many events one call of Delete has, unless one page has more.
	mostDeletes = 250
	// gatherTime is how long a page waits for those of other visits, which had their last results in the same answer.
	gatherTime = time.Millisecond
	// deleteTries is how often a visit tries to delete before it leaves the rest to the group's next one.
	deleteTries = 4
	// The delay before a try is a random part of firstDelay, doubled with each.
	firstDelay = 100 * time.Millisecond
)

// deletes gathers the events that the visits of a job delete at the same time. One visit makes the call for all, and then hands
// that over to the first that waits.
type deletes struct {
	j *job

	mu      sync.Mutex
	waiting []*deletion
	led     bool
}

type deletion struct {
	es, left []Entry
	err      error
	lead     chan bool // true: make the next call; false: it was made
}

// delete returns the events that may still be there.
func (d *deletes) delete(es []Entry) ([]Entry, error) {
	mine := &deletion{es: es, lead: make(chan bool, 1)}
	d.mu.Lock()
	d.waiting = append(d.waiting, mine)
	led := d.led
	d.led = true
	d.mu.Unlock()
	if !led || <-mine.lead {
		d.call()
	}
	return mine.left, mine.err
}

func (d *deletes) call() {
	if d.j.lanes.others() {
		host.Wait(d.j.late, gatherTime)
	}
	d.mu.Lock()
	var es []Entry
	n := 0
	for _, w := range d.waiting {
		if n > 0 && len(es)+len(w.es) > mostDeletes {
			break
		}
		es = append(es, w.es...)
		n++
	}
	made := d.waiting[:n:n]
	d.waiting = d.waiting[n:]
	d.mu.Unlock()

	left, err := d.j.r.store.delete(d.j.late, es)
	for _, w := range made {
		if w.left = remaining(w.es, left); len(w.left) > 0 {
			w.err = err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range made[1:] { // the first one is the caller
		w.lead <- false
	}
	if d.led = len(d.waiting) > 0; d.led {
		d.waiting[0].lead <- true
	}
}

// remaining returns those of es that are in left.
func remaining(es, left []Entry) (both []Entry) {
	if len(left) == 0 {
		return nil
	}
	for _, e := range es {
		if slices.ContainsFunc(left, func(l Entry) bool { return l.same(e) }) {
			both = append(both, e)
		}
	}
	return both
}

// same reports whether the entries name the same event.
func (e *Entry) same(other Entry) bool {
	return e.Seq == other.Seq && e.ID == other.ID && e.Group == other.Group
}

// delete deletes events of one group that SQS confirmed. What is left after some tries is owed.
func (j *job) delete(g *group, es []Entry) error {
	left, err := j.deletes.delete(es)
	for try := 1; err != nil && try < deleteTries && !errors.Is(err, ErrDenied); try++ {
		if !host.Wait(j.late, host.Jitter(firstDelay, longestPause, try)) {
			break
		}
		left, err = j.deletes.delete(left)
	}
	j.r.owe(g, es, left, err)
	return err
}

// owe notes what a delete of a group's events has left.
func (r *Relay) owe(g *group, es, left []Entry, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := make([]Entry, 0, len(left))
	for _, e := range left { // the names alone: the bodies are the store's
		name := Entry{Seq: e.Seq, Source: e.Source}
		name.Group, name.ID = e.Group, e.ID
		kept = append(kept, name)
	}
	r.owed += len(kept) - len(g.owed)
	g.owed = kept
	if len(kept) > 0 {
		r.owing[g] = struct{}{}
	} else {
		delete(r.owing, g)
	}
	r.stats.Deleted += int64(len(es) - len(left))
	switch {
	case errors.Is(err, ErrDenied):
		r.denied = err
	case len(left) < len(es):
		r.denied = nil
	}
}

// settle notes what a delete of owed events of several groups has left.
func (r *Relay) settle(es, left []Entry, err error) {
	byGroup := make(map[string][]Entry)
	for _, e := range es {
		byGroup[e.Group] = append(byGroup[e.Group], e)
	}
	for name, es := range byGroup {
		if g, _ := r.enter(name); g != nil { // in a visit: that one settles
			r.owe(g, es, remaining(es, left), err)
			r.leave(g)
		}
	}
}

// owes returns what the group owes, and whether the relay owes so much that it sends nothing more.
func (r *Relay) owes(g *group) (es []Entry, tooMuch bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return g.owed, r.owed >= r.opts.Groups*r.opts.Page
}

// owingGroups returns the groups that owe deletes.
func (r *Relay) owingGroups() (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for g := range r.owing {
		names = append(names, g.name)
	}
	return names
}
