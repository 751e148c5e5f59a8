package emf

import (
	"context"
	"slices"

	"github.com/sqsonce/sqsonce/limit"
)

// Limiter is an option of [limit.New]. It adds a line for each rule that has counted something since its last line, at the end of an
// invocation. Beyond 100 rules the others count together, as _OTHER.
func (m *Metrics) Limiter(o *limit.Options) {
	o.Hooks = append(o.Hooks, limit.Hooks{Attach: func(l *limit.Limiter) func() {
		m.limits.Lock()
		defer m.limits.Unlock()
		m.limiters = append(m.limiters, l)
		return nil
	}})
}

// ruleCounts are the counts of a rule that its lines have.
var ruleCounts = []struct {
	metric string
	of     func(*limit.RuleStats) *int64
}{
	{"Started", func(s *limit.RuleStats) *int64 { return &s.Started }},
	{"Postponed", func(s *limit.RuleStats) *int64 { return &s.Postponed }},
	{"Owed", func(s *limit.RuleStats) *int64 { return &s.Owed }},
	{"NoGroup", func(s *limit.RuleStats) *int64 { return &s.NoGroup }},
	{"CounterOutages", func(s *limit.RuleStats) *int64 { return &s.Outages }},
}

// rules writes a line for each rule of the limiters that has counted something since its last line. It has the queue of the invocation
// that ends.
func (m *Metrics) rules(ctx context.Context, queue string) {
	for _, r := range m.counted() {
		l := m.newLine(ctx, queue)
		l.dimensions = append(slices.Clip(l.dimensions), "rule")
		l.members["message"], l.members["rule"] = "sqsonce: limit", r.Name
		for _, c := range ruleCounts {
			l.seldom(c.metric, int(*c.of(&r)))
		}
		if len(l.metrics) > 0 {
			m.write(ctx, l)
		}
	}
}

// counted returns what the rules have counted since the last call. Rules of one name count together, and so
// do those beyond cut.MostNames.
func (m *Metrics) counted() (since []limit.RuleStats) {
	m.limits.Lock()
	defer m.limits.Unlock()
	var now []limit.RuleStats
	for _, l := range m.limiters {
		for _, r := range l.Stats() {
			name := m.ruleNames.Of(r.Name)
			i := slices.IndexFunc(now, func(other limit.RuleStats) bool { return other.Name == name })
			if i < 0 {
				now, i = append(now, limit.RuleStats{Name: name}), len(now)
			}
			addRule(&now[i], r, 1)
		}
	}
	for i, r := range now {
		if i < len(m.last) {
			addRule(&r, m.last[i], -1)
		}
		since = append(since, r)
	}
	m.last = now
	return since
}

func addRule(sum *limit.RuleStats, r limit.RuleStats, sign int64) {
	for _, c := range ruleCounts {
		*c.of(sum) += sign * *c.of(&r)
	}
}
