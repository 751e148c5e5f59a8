package otelsqs

import (
	"cmp"
	"slices"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/sqsonce/sqsonce/internal/cut"
	"github.com/sqsonce/sqsonce/limit"
)

// Limiter is an option of [limit.New]. Its metrics are by rule, never by key. Beyond 100 rules of a process the others are reported
// together, as _OTHER.
func (t *Telemetry) Limiter(o *limit.Options) {
	o.Hooks = append(o.Hooks, limit.Hooks{Attach: t.attachLimiter})
}

// limitGauges are the gauges that read a limiter's Stats.
type limitGauges struct {
	counts []limitCount // since New, and of now
	down   metric.Float64ObservableGauge
	rules  cut.Names
}

// limitCount is a number of a rule that has a sum, and its field.
type limitCount struct {
	instrument metric.Int64Observable
	of         func(*limit.RuleStats) *int64
	gauge      bool // of those that live
}

func newLimitGauges(b *builder) *limitGauges {
	g := &limitGauges{}
	count := func(name, unit, description string, of func(*limit.RuleStats) *int64) {
		g.counts = append(g.counts, limitCount{b.observed("sqsonce.limit."+name, unit, description), of, false})
	}
	now := func(name, unit, description string, of func(*limit.RuleStats) *int64) {
		g.counts = append(g.counts, limitCount{b.upDown("sqsonce.limit."+name, unit, description), of, true})
	}
	count("started", "{delivery}", "Deliveries that the rule has let through.", func(s *limit.RuleStats) *int64 { return &s.Started })
	count("postponed", "{delivery}", "Deliveries that the rule has postponed.", func(s *limit.RuleStats) *int64 { return &s.Postponed })
	count("owed", "{delivery}", "Deliveries that ran above the limit, because they could not wait.", func(s *limit.RuleStats) *int64 { return &s.Owed })
	count("no_group", "{delivery}", "Deliveries that the rule did not limit, because they had no message group.", func(s *limit.RuleStats) *int64 { return &s.NoGroup })
	count("forgotten", "{key}", "Keys that were forgotten while they were at their limit.", func(s *limit.RuleStats) *int64 { return &s.Forgotten })
	count("calls", "{call}", "Calls of the Counter.", func(s *limit.RuleStats) *int64 { return &s.Calls })
	count("outages", "{outage}", "How often the Counter went down.", func(s *limit.RuleStats) *int64 { return &s.Outages })
	now("waiting", "{message}", "Messages that wait for their turn in the process.", func(s *limit.RuleStats) *int64 { return &s.Waiting })
	now("running", "{handler}", "Handlers that run under the rule.", func(s *limit.RuleStats) *int64 { return &s.Running })
	now("keys", "{key}", "Keys that are remembered.", func(s *limit.RuleStats) *int64 { return &s.Keys })
	now("keys.paused", "{key}", "Keys that are paused.", func(s *limit.RuleStats) *int64 { return &s.Paused })
	now("keys.down", "{key}", "Keys for which the Counter fails while it answers for others.", func(s *limit.RuleStats) *int64 { return &s.KeysDown })
	g.down = b.age("sqsonce.limit.down", "How long the Counter has not answered.")
	return g
}

type limiters = ofQueue[*limit.Limiter, []limit.RuleStats]

// attachLimiter has a limiter's Stats reported when metrics are collected. A limiter has no queue.
func (t *Telemetry) attachLimiter(l *limit.Limiter) (detach func()) {
	g := t.limit
	instruments := []metric.Observable{g.down}
	for _, c := range g.counts {
		instruments = append(instruments, c.instrument)
	}
	count := func(sum *[]limit.RuleStats, s []limit.RuleStats) {
		all := slices.Clone(*sum) // a report may have the old one
		g.add(&all, s, false)
		*sum = all
	}
	return t.limiters.attach(t.meter, "", l, func(all *limiters, o metric.Observer) { g.report(all, o, &t.sets) }, count, instruments...)
}

// add adds the counts of rules to those of the same name, and of limiters that live also the numbers of now.
func (g *limitGauges) add(sum *[]limit.RuleStats, rules []limit.RuleStats, live bool) {
	for _, r := range rules {
		i := slices.IndexFunc(*sum, func(s limit.RuleStats) bool { return s.Name == r.Name })
		if i < 0 {
			i = len(*sum)
			*sum = append(*sum, limit.RuleStats{Name: r.Name})
		}
		s := &(*sum)[i]
		for _, c := range g.counts {
			if live || !c.gauge {
				*c.of(s) += *c.of(&r)
			}
		}
		if live {
			s.Down = max(s.Down, r.Down)
		}
	}
}

// report reports the rules of all limiters: numbers are sums, an outage is the longest one.
func (g *limitGauges) report(all *limiters, o metric.Observer, sets *sets) {
	live, ended := all.all()
	sum := slices.Clone(ended)
	for l := range live {
		g.add(&sum, l.Stats(), true)
	}
	slices.SortFunc(sum, func(a, b limit.RuleStats) int { return cmp.Compare(a.Name, b.Name) })
	var named, others []limit.RuleStats
	for _, s := range sum {
		if name := g.rules.Of(s.Name); name != s.Name {
			s.Name = name
			g.add(&others, []limit.RuleStats{s}, true)
			continue
		}
		named = append(named, s)
	}
	for _, s := range slices.Concat(named, others) {
		rule := sets.get(attributes{keyRule.String(s.Name)}).observe
		for _, c := range g.counts {
			if len(live) > 0 || !c.gauge {
				o.ObserveInt64(c.instrument, *c.of(&s), rule...)
			}
		}
		if len(live) > 0 {
			o.ObserveFloat64(g.down, s.Down.Round(time.Millisecond).Seconds(), rule...)
		}
	}
}
