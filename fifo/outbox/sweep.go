package outbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Sweep adds events that are due to the outbox, where the store keeps events until they are due. This takes at most 2 s, or 7 s
// while the store is slow. It then finds every group that has events and drains it, one page of a group after one of each other
// group. It logs one line with the figures of its [Backlog]. If it didn't come to the end of the store, the figures are those
// of the groups that it came to. It counts the groups whose oldest event is younger than Options.Settle and leaves them to
// their doorbell.
//
// Sweep returns nil if every old enough event is published. Halted groups, which the Backlog counts, and groups that another
// relay is at are exceptions. Else the error joins those of the first 20 groups. If producers go on, give ctx a deadline. Sweep
// doesn't begin a visit in the last 10 s before it, or in the last third of the time that ctx had if that is less, and then the
// next sweep begins at the place this one has reached. While every group fails, Sweep ends after the first [Options].Groups
// failures.
func (r *Relay) Sweep(ctx context.Context) (Backlog, error) {
	j := r.newJob(ctx, ctx)
	defer j.end()
	if err := j.begin(); err != nil {
		return Backlog{}, err
	}
	q := newQueue(j, once)
	for _, name := range r.owingGroups() {
		q.push(Group{Name: name})
	}
	settle := r.opts.Settle
	if settle == 0 {
		settle = defaultSettle
	}
	overdue, moveErr := q.moveDue()
	b, err := q.sweep(settle)
	q.wait()
	q.mu.Lock()
	b.Overdue = overdue
	seen := *b
	fatal := q.fatal
	q.mu.Unlock()
	if err == nil {
		r.keepBacklog(seen)
	}
	if err == nil || seen.Groups > 0 { // zeros of a sweep that saw nothing would look like an empty outbox
		r.logSwept(ctx, seen)
	}
	if fatal != nil {
		return seen, fatal
	}
	return seen, errors.Join(moveErr, err, q.err())
}

func (r *Relay) keepBacklog(b Backlog) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.backlog, r.stats.Swept = b, time.Now()
}

// sweep looks for all groups once, and puts those that are to be visited into the queue. It asks for more when the visits of
// what it found have begun. It begins where the last sweep has ended, or at a random place that the last one came by: relays
// that begin at the same time do not do the same work, and none is always late. The error says that it did not come to the end.
func (q *queue) sweep(settle time.Duration) (*Backlog, error) {
	r := q.j.r
	b := &Backlog{}
	q.mu.Lock()
	q.seen = b
	q.mu.Unlock()
	defer func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.mode == once { // its last visits are still to be counted
			return
		}
		q.seen = nil
		if q.active == 0 {
			q.rounds.end()
		}
	}()
	r.count(func(s *Stats) { s.Rounds++ })
	r.mu.Lock()
	start := r.cursor
	r.mu.Unlock()
	var first map[string]bool // the groups of the first page, if it is not the store's first: the sweep ends when it finds them again
	after, wrapped, places, begin, last := start, false, 0, "", start
	for {
		if err := q.awaitFresh(); err != nil {
			if errors.Is(err, errPaused) { // others may fare better than the rest of the last page
				last = after
			}
			r.keepCursor(last)
			return b, err
		}
		last = after
		page, err := r.store.groups(q.j.ctx, after, r.opts.Groups)
		if err == nil && page.next != "" && page.next == after {
			err = errors.New("outbox: find groups: the store's answer is wrong: the next page begins where this one does")
		}
		if err != nil {
			r.keepCursor("") // the place may be what the store stumbles over
			return b, err
		}
		if first == nil && start != "" {
			first = make(map[string]bool)
			for _, g := range page.found {
				first[g.Name] = true
			}
		}
		// Where only some of them are visited, because they fail, those are others each time.
		rand.Shuffle(len(page.found), func(i, k int) { page.found[i], page.found[k] = page.found[k], page.found[i] })
		round := false
		for _, g := range page.found {
			if wrapped && first[g.Name] {
				round = true // and the page is looked at to its end: it is in no order any more
				continue
			}
			q.find(g, b, settle)
		}
		switch {
		case round, page.next == "" && (wrapped || start == ""):
			r.keepCursor(begin)
			return b, nil
		case page.next == "":
			wrapped, after = true, ""
			continue
		}
		after = page.next
		if places++; rand.IntN(places) == 0 {
			begin = after
		}
	}
}

func (r *Relay) keepCursor(c string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cursor = c
}

// find counts a group that was found, and puts it into the queue if it is to be visited.
func (q *queue) find(g Group, b *Backlog, settle time.Duration) {
	saw, rests := q.j.r.rests(g)
	young := settle > 0 && g.Age > 0 && g.Age < settle
	q.mu.Lock()
	b.Groups++
	if g.Parked != OnRefusedSkip {
		b.Oldest = max(b.Oldest, g.Age)
	}
	switch {
	case g.Parked == OnRefusedHalt:
		b.Halted++
	case rests:
		b.add(saw, g)
		if saw.err != nil && q.mode == once {
			q.errs[g.Name] = saw.err
		}
	case young && g.Parked == OnRefusedSkip:
		b.Skipped++
	}
	q.mu.Unlock()
	if g.Parked != OnRefusedHalt && !rests && !young {
		q.pushFound(g)
	}
}

// note counts what the first visit of a group that was found has seen.
func (q *queue) note(g Group, saw sight) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.seen != nil {
		q.seen.add(saw, g)
	}
}

func (b *Backlog) add(saw sight, g Group) {
	b.Skipped += saw.skipped
	if saw.halted && g.Parked != OnRefusedHalt {
		b.Halted++
	}
	b.Oldest = max(b.Oldest, saw.oldest)
}

// awaitFresh waits until the visits of all groups that a sweep has found have begun. Meanwhile Run hears its bell.
func (q *queue) awaitFresh() error {
	for {
		q.mu.Lock()
		err, fresh := q.problem(), q.fresh
		q.mu.Unlock()
		if err != nil {
			return fmt.Errorf("outbox: not all groups were looked for: %w", err)
		}
		if fresh == 0 {
			return nil
		}
		q.await(nil)
	}
}

// await waits for a change of the queue, for the bell, for the end of the call, or for the timer.
func (q *queue) await(timer <-chan time.Time) {
	var bell <-chan struct{}
	if q.mode == always {
		bell = q.j.r.ring
	}
	select {
	case <-q.changed:
	case <-bell:
		q.pushRung()
	case <-q.j.stop.Done():
	case <-timer:
	}
}
