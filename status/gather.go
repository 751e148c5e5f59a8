package status

import (
	"reflect"
	"regexp"
	"slices"
	"time"

	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/statusreport"
	"github.com/sqsonce/sqsonce/internal/workerkit"
	"github.com/sqsonce/sqsonce/limit"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// maxRunning is how many handlers /running lists.
const maxRunning = 1000

// A component counts something, and isn't a worker.
type component struct {
	of, name string
	stats    func() any
}

type relayStats struct {
	outbox.Stats
	Backlog outbox.Backlog
}

func componentsOf(o Options) (all []component) {
	for name, c := range sorted(o.Consumers) {
		all = append(all, component{"consumer", name, func() any { return c.Stats() }})
	}
	for name, s := range sorted(o.Stores) {
		all = append(all, component{"store", name, func() any { return s.Counts() }})
	}
	for name, r := range sorted(o.Relays) {
		all = append(all, component{"relay", name, func() any { return relayStats{r.Stats(), r.Backlog()} }})
	}
	for name, p := range sorted(o.Publishers) {
		all = append(all, component{"publisher", name, func() any { return p.Stats() }})
	}
	return all
}

func (h *handler) live() statusreport.Probe  { return h.probe(workerkit.NotLive) }
func (h *handler) ready() statusreport.Probe { return h.probe(workerkit.NotReady) }

var account = regexp.MustCompile(`\b\d{12}\b`)

// shown is a text, without the account IDs of ARNs and URLs unless Options.Identifiers asks for them.
func (h *handler) shown(text string) string {
	if h.opts.Identifiers {
		return text
	}
	return account.ReplaceAllString(text, "*")
}

// probe asks the workers alone: whatever the others do, a probe answers.
func (h *handler) probe(why func(*sqsworker.Worker) string) statusreport.Probe {
	p := statusreport.Probe{V: statusreport.Version, OK: true, Workers: []statusreport.ProbeWorker{}}
	for _, w := range h.opts.Workers {
		reason := h.shown(why(w))
		p.OK = p.OK && reason == ""
		p.Workers = append(p.Workers, statusreport.ProbeWorker{Queue: host.QueueName(w.QueueURL()), State: w.State(), OK: reason == "", Reason: reason})
	}
	return p
}

func (h *handler) report() statusreport.Report {
	r := statusreport.Report{V: statusreport.Version, Name: h.opts.Name, Version: h.opts.Version, Started: h.started.UTC(), Now: time.Now().UTC()}
	for _, w := range h.opts.Workers {
		stats := w.Stats()
		one := statusreport.Worker{
			Queue: host.QueueName(w.QueueURL()), State: w.State(), NotLive: h.shown(workerkit.NotLive(w)), NotReady: h.shown(workerkit.NotReady(w)),
			Intake: string(stats.Intake), Options: optionsOf(w.Options()), Stats: statsOf(stats),
		}
		if h.opts.Identifiers {
			one.URL = w.QueueURL()
		}
		r.Workers = append(r.Workers, one)
	}
	for _, c := range h.components {
		counted := statusreport.Component{Name: h.shown(c.name), Stats: statsOf(c.stats())}
		switch c.of {
		case "consumer":
			r.Consumers = append(r.Consumers, counted)
		case "store":
			r.Stores = append(r.Stores, counted)
		case "relay":
			r.Relays = append(r.Relays, counted)
		case "publisher":
			r.Publishers = append(r.Publishers, counted)
		}
	}
	for name, l := range sorted(h.limits) {
		for _, rule := range l.Stats() {
			r.Limits = append(r.Limits, h.limit(name, rule))
		}
	}
	for name, c := range sorted(h.opts.Controls) {
		s := c.Status()
		one := statusreport.Control{
			Consumer: name, Paused: s.Paused, Concurrency: s.Concurrency, By: h.shown(s.By), Reason: h.shown(s.Reason), Until: s.Until.UTC(), Read: s.Read.UTC(),
			Text: h.shown(s.State.String()),
		}
		if s.Err != nil {
			one.Error = h.shown(s.Err.Error())
		}
		r.Controls = append(r.Controls, one)
	}
	return r
}

// limit is a rule of the limiter of that name.
func (h *handler) limit(name string, rule limit.RuleStats) statusreport.Limit {
	l := statusreport.Limit{
		Component: statusreport.Component{Name: h.shown(name + "/" + rule.Name), Stats: statsOf(rule)}, Plan: rule.Plan, Scope: "process",
	}
	if rule.Shared {
		l.Scope = "fleet"
	}
	if h.opts.Identifiers {
		for _, k := range rule.Longest {
			l.Longest = append(l.Longest, statusreport.LimitKey{Key: k.Key, Waiting: k.Waiting, Running: k.Running, Paused: k.Paused.Seconds()})
		}
	}
	return l
}

// optionsOf returns the options that are numbers. Where a negative one stands for none it is 0, and MaxAttempts where it depends on
// the queue.
func optionsOf(o sqsworker.Options) map[string]float64 {
	out := map[string]float64{}
	eachNumber("", reflect.ValueOf(o), func(f reflect.StructField, value float64) { out[nameOf(f)] = max(value, 0) })
	return out
}

// running has the oldest handlers of all workers, at most limit.
func (h *handler) running(limit int) statusreport.RunningReport {
	type running struct {
		host.RunningHandler
		queue string
	}
	var all []running
	r := statusreport.RunningReport{V: statusreport.Version, Now: time.Now().UTC(), Running: []statusreport.Running{}}
	for _, w := range h.opts.Workers {
		oldest, total := workerkit.Running(w, limit)
		r.Total += total
		for _, o := range oldest {
			all = append(all, running{o, host.QueueName(w.QueueURL())})
		}
	}
	slices.SortStableFunc(all, func(a, b running) int { return a.Since.Compare(b.Since) })
	for _, o := range all[:min(limit, len(all))] {
		one := statusreport.Running{
			Queue: o.queue, MessageID: o.MessageID, Receives: o.ReceiveCount, Seconds: max(0, r.Now.Sub(o.Since)).Seconds(),
			Lease: o.Lease.Seconds(), Stuck: o.Stuck,
		}
		if h.opts.Identifiers {
			one.Key, one.Group = o.Key(), o.Group
		}
		r.Running = append(r.Running, one)
	}
	return r
}
