package limit

import "time"

// bucket is the rate of a key in this process: a schedule (GCRA). next is the regular time of the next start. A start may be earlier
// than that by the plan's tolerance.
type bucket struct{ next time.Time }

// at returns when cost starts are allowed at once. A cost is at most the burst.
func (b *bucket) at(p plan, cost int) time.Time {
	return b.next.Add(time.Duration(cost-1)*p.step - p.tolerance())
}

// take counts starts, also those that are not allowed yet: a debt.
func (b *bucket) take(now time.Time, p plan, cost int) {
	if b.next.Before(now) {
		b.next = now
	}
	b.next = b.next.Add(time.Duration(cost) * p.step)
}

// putBack takes a take back.
func (b *bucket) putBack(p plan, cost int) {
	b.next = b.next.Add(-time.Duration(cost) * p.step)
}

// change keeps the number of starts that are owed when the plan changes. It is at most the new burst: a day's debt must not outlive
// a plan of one start a day.
func (b *bucket) change(now time.Time, from, to plan) {
	owed := b.next.Sub(now)
	if owed <= 0 || to.step == 0 {
		b.next = time.Time{}
		return
	}
	starts := min(float64(owed)/float64(from.step), float64(to.burst))
	b.next = now.Add(time.Duration(starts * float64(to.step)))
}
