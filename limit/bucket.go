package limit

import (
	"slices"
	"time"
)

// bucket is the rate of a key in this process: a schedule (GCRA). next is the regular time of the next start. A start may be earlier
// than that by the plan's tolerance.
type bucket struct {
	next   time.Time
	recent []taken // what may go back yet
}

// taken is the starts of a ticket, and what next was before.
type taken struct {
	by       *ticket
	cost     int
	at, next time.Time
}

// at returns when cost starts are allowed at once. A cost is at most the burst.
func (b *bucket) at(p plan, cost int) time.Time {
	return b.next.Add(time.Duration(cost-1)*p.step - p.tolerance())
}

// take counts starts, also those that are not allowed yet: a debt.
func (b *bucket) take(now time.Time, p plan, by *ticket, cost int) {
	b.recent = append(b.recent, taken{by, cost, now, b.next})
	b.next = later(b.next, now).Add(time.Duration(cost) * p.step)
}

// putBack makes the schedule the one in which a ticket's starts were not taken: it takes those after them again. It does not subtract
// their time from next, because the burst may have filled up without them meanwhile, and would then be more than full.
func (b *bucket) putBack(p plan, by *ticket) {
	i := slices.IndexFunc(b.recent, func(t taken) bool { return t.by == by })
	if i < 0 {
		return
	}
	after := b.recent[i+1:]
	b.next, b.recent = b.recent[i].next, b.recent[:i]
	for _, t := range after {
		b.take(t.at, p, t.by, t.cost)
	}
}

// forget has starts that were taken by then never go back.
func (b *bucket) forget(then time.Time) {
	for len(b.recent) > 0 && !b.recent[0].at.After(then) {
		b.recent = b.recent[1:]
	}
}

// change keeps the number of starts that are owed when the plan changes. It is at most the new burst: a day's debt must not outlive
// a plan of one start a day. None of them goes back: they were taken at other steps.
func (b *bucket) change(now time.Time, from, to plan) {
	b.recent = nil
	owed := b.next.Sub(now)
	if owed <= 0 || to.step == 0 {
		b.next = time.Time{}
		return
	}
	starts := min(float64(owed)/float64(from.step), float64(to.burst))
	b.next = now.Add(time.Duration(starts * float64(to.step)))
}
