package otelsqs

import (
	"cmp"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/sqsonce/sqsonce/fifo/outbox"
)

// Relay is an option of [outbox.NewRelay]. The Telemetry keeps the relay. In a function its gauges show the last sweep of one
// instance, so base the alarms on the log line "outbox: swept".
func (t *Telemetry) Relay(o *outbox.Options) {
	o.Hooks = append(o.Hooks, outbox.Hooks{Attach: t.attachRelay})
}

// relayGauges are the gauges that read a relay's Stats and Backlog. The relays of several processes each see the whole outbox, so
// a value of the Backlog is a gauge. Use the largest value, not the sum.
type relayGauges struct {
	counts []relayCount

	undeleted               metric.Int64ObservableUpDownCounter
	groups, halted, skipped metric.Int64ObservableGauge
	age, overdue, sweepAge  metric.Float64ObservableGauge
}

// relayCount is a counter, and the field of the Stats that it has.
type relayCount struct {
	counter metric.Int64ObservableCounter
	of      func(*outbox.Stats) *int64
}

func newRelayGauges(b *builder) (g relayGauges) {
	count := func(name, unit, description string, of func(*outbox.Stats) *int64) {
		g.counts = append(g.counts, relayCount{b.observed("sqsonce.outbox."+name, unit, description), of})
	}
	count("moved", "{event}", "Due events that were added to the outbox.", func(s *outbox.Stats) *int64 { return &s.Moved })
	count("published", "{event}", "Events that SQS confirmed. A copy counts again.", func(s *outbox.Stats) *int64 { return &s.Published })
	count("deleted", "{event}", "Events that were deleted after that.", func(s *outbox.Stats) *int64 { return &s.Deleted })
	count("copies", "{event}", "Events that were sent again so long after an unanswered send that SQS may keep both.", func(s *outbox.Stats) *int64 { return &s.Copies })
	count("unknown", "{event}", "Events that were sent without an answer.", func(s *outbox.Stats) *int64 { return &s.Unknown })
	count("refused", "{event}", "Events that SQS refused. Each attempt counts.", func(s *outbox.Stats) *int64 { return &s.Refused })
	count("wrong_source", "{visit}", "Visits that ended at an event of another namespace.", func(s *outbox.Stats) *int64 { return &s.WrongSource })
	count("halted", "{visit}", "Visits that ended at a halted event.", func(s *outbox.Stats) *int64 { return &s.Halted })
	count("unsettled", "{read}", "Reads that could not confirm the events that follow.", func(s *outbox.Stats) *int64 { return &s.Unsettled })
	count("reads", "{read}", "Reads of a page of a group.", func(s *outbox.Stats) *int64 { return &s.Reads })
	count("stale", "{page}", "Pages of which a part was too old to be sent.", func(s *outbox.Stats) *int64 { return &s.Stale })
	count("probes", "{request}", "Requests for the event before the first visible one.", func(s *outbox.Stats) *int64 { return &s.Probes })
	count("rounds", "{round}", "Looks for all groups.", func(s *outbox.Stats) *int64 { return &s.Rounds })
	g.undeleted = b.upDown("sqsonce.outbox.undeleted", "{event}", "Events that SQS confirmed, and whose delete is still owed.")
	g.groups = b.gauge("sqsonce.outbox.groups", "{group}", "Groups with events, in the last whole sweep.")
	g.halted = b.gauge("sqsonce.outbox.groups.halted", "{group}", "Groups that wait for an operator behind an event that SQS refused, in the last whole sweep.")
	g.skipped = b.gauge("sqsonce.outbox.skipped", "{event}", "Events that SQS refused and their groups went on without, in the last whole sweep.")
	g.age = b.age("sqsonce.outbox.age", "Age of the oldest event that is not skipped, in the last whole sweep.")
	g.overdue = b.age("sqsonce.outbox.overdue", "How long the first event has been due that the last whole sweep could not add to the outbox.")
	g.sweepAge = b.age("sqsonce.outbox.sweep.age", "Time since a sweep last came to the end of the outbox.")
	return g
}

type relays = ofQueue[*outbox.Relay, outbox.Stats]

// attachRelay has a relay's Stats and Backlog reported when metrics are collected. A relay has no end.
func (t *Telemetry) attachRelay(r *outbox.Relay) {
	sets, g := &t.destinations.get(r.QueueURL()).sets, &t.relay
	instruments := []metric.Observable{g.undeleted, g.groups, g.halted, g.skipped, g.age, g.overdue, g.sweepAge}
	for _, c := range g.counts {
		instruments = append(instruments, c.counter)
	}
	t.relays.attach(t.meter, r.QueueURL(), r, func(all *relays, o metric.Observer) { g.report(all, o, sets) }, g.count, instruments...)
}

// count adds what a relay has counted.
func (g *relayGauges) count(sum *outbox.Stats, s outbox.Stats) {
	for _, c := range g.counts {
		*c.of(sum) += *c.of(&s)
	}
}

// report reports the relays of a queue: numbers are sums, since a process has one that sweeps for each outbox, and ages those of the
// oldest. Of a Backlog there are no values before the first whole sweep, nor after Run.
func (g *relayGauges) report(all *relays, o metric.Observer, sets *sets) {
	live, sum := all.all()
	var seen outbox.Backlog
	var sweepAge time.Duration
	running, swept := false, false
	for r := range live {
		s, b := r.Stats(), r.Backlog()
		g.count(&sum, s)
		sum.Undeleted += s.Undeleted
		if since := cmp.Or(s.Swept, s.Began); !since.IsZero() {
			running, sweepAge = true, max(sweepAge, time.Since(since))
		}
		if !s.Swept.IsZero() {
			swept = true
			seen.Groups += b.Groups
			seen.Halted += b.Halted
			seen.Skipped += b.Skipped
			seen.Oldest = max(seen.Oldest, b.Oldest)
			seen.Overdue = max(seen.Overdue, b.Overdue)
		}
	}
	whole := sets.get(attributes{}).observe
	for _, c := range g.counts {
		o.ObserveInt64(c.counter, *c.of(&sum), whole...)
	}
	o.ObserveInt64(g.undeleted, sum.Undeleted, whole...)
	if running {
		o.ObserveFloat64(g.sweepAge, sweepAge.Seconds(), whole...)
	}
	if swept {
		o.ObserveInt64(g.groups, int64(seen.Groups), whole...)
		o.ObserveInt64(g.halted, int64(seen.Halted), whole...)
		o.ObserveInt64(g.skipped, int64(seen.Skipped), whole...)
		o.ObserveFloat64(g.age, seen.Oldest.Seconds(), whole...)
		o.ObserveFloat64(g.overdue, seen.Overdue.Seconds(), whole...)
	}
}
