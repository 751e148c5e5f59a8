package limit

import (
	"cmp"
	"slices"
	"time"
)

// counts are the counts of a rule.
type counts struct{ started, postponed, owed, forgotten, calls, outages int64 }

// RuleStats is the state of a rule in this process, and its counts since New.
type RuleStats struct {
	Name        string
	Plan        string        // the rule's, such as "10/s"; "" if PlanOf decides
	Shared      bool          `help:"The rule has a Counter."`
	Started     int64         `help:"Deliveries that the rule has let through."`
	Postponed   int64         `help:"Deliveries that the rule has postponed."`
	Owed        int64         `help:"Deliveries that ran above the limit, because they could not wait. Those behind them wait longer."`
	NoGroup     int64         `help:"Deliveries that the rule did not limit, because its key is the message group and they had none."`
	Forgotten   int64         `help:"Keys that were forgotten while they were at their limit: raise Options.MaxKeys."`
	Keys        int64         `help:"Keys that are remembered."`
	Running     int64         `help:"Handlers that run under the rule."`
	Waiting     int64         `help:"Messages that wait for their turn in this process."`
	Next        time.Time     `help:"When the next waiting message has its turn, if that is known."`
	Paused      int64         `help:"Keys that are paused."`
	PausedUntil time.Time     `help:"The end of the last of these pauses."`
	Calls       int64         `help:"Calls of the Counter."`
	Outages     int64         `help:"How often the Counter went down."`
	Down        time.Duration `help:"How long the Counter has not answered."`
	KeysDown    int64         `help:"Keys for which the Counter fails while it answers for others."`
	Longest     []KeyStats    `help:"The ten keys with the most waiting messages."`
}

// KeyStats is a key that keeps messages waiting.
type KeyStats struct {
	Key     string
	Waiting int64
	Running int64
	Paused  time.Duration // until the end of a Pause
}

const longest = 10

// Stats returns the state of the rules, in their order.
func (l *Limiter) Stats() []RuleStats {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	all := make([]RuleStats, len(l.rules))
	for i, r := range l.rules {
		s := RuleStats{
			Name: r.Name, Plan: r.Plan.String(), Shared: r.Counter != nil,
			Started: r.counts.started, Postponed: r.counts.postponed, Owed: r.counts.owed, NoGroup: r.noGroup.Load(),
			Forgotten: r.counts.forgotten, Keys: int64(len(r.gates)), Calls: r.counts.calls, Outages: r.counts.outages,
		}
		if r.outage.lapse(now); r.outage.down() {
			s.Down = now.Sub(r.outage.since)
		}
		for _, g := range r.gates {
			s.Running += int64(g.running - g.reserved.Len())
			s.Next = sooner(s.Next, g.next)
			if g.outage.lapse(now); g.outage.down() {
				s.KeysDown++
			}
			if g.paused.After(now) {
				s.Paused++
				s.PausedUntil = later(s.PausedUntil, g.paused)
			}
			waits := int64(g.line.n + g.reserved.Len())
			if s.Waiting += waits; waits > 0 {
				s.Longest = append(s.Longest, KeyStats{g.key, waits, int64(g.running - g.reserved.Len()), max(0, g.paused.Sub(now))})
			}
		}
		slices.SortFunc(s.Longest, func(a, b KeyStats) int {
			return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), cmp.Compare(a.Key, b.Key))
		})
		s.Longest = s.Longest[:min(longest, len(s.Longest))]
		all[i] = s
	}
	return all
}
