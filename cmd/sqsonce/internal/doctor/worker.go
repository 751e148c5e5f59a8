package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/fleet"
	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/shown"
	"github.com/sqsonce/sqsonce/internal/statusreport"
)

func workerChecks() []check {
	return []check{{[]string{"W1", "W2", "W3", "W4"}, checkWorkers}}
}

// Names of statusreport.Stats that fleet has no use for.
const (
	unanswered     = "unanswered"
	messageIDKeys  = "key_sources_message_id"
	foreignWriters = "foreign_writers"
	connections    = "connections"
	allowed        = "server_connections"
	runsAtOnce     = "concurrency"
)

// betweenReads is the time between the two reads that show what grows.
const betweenReads = 2 * time.Second

// checkWorkers asks the workers twice. One that does not answer is no worker that is ready, as far as anybody can tell: a FAIL of W1.
func checkWorkers(ctx context.Context, e *examination) []Finding {
	f := &fleet.Fleet{Client: e.HTTP, Targets: e.Workers}
	ready, growing, settings, limits := report{id: "W1"}, report{id: "W2"}, report{id: "W3"}, report{id: "W4"}
	if err := f.Check(); err != nil {
		return []Finding{unseen(ready.id, err), unseen(growing.id, err), unseen(settings.id, err), unseen(limits.id, err)}
	}
	first := f.Stats(ctx)
	answered := 0
	for _, w := range first {
		if w.Err == nil {
			answered++
		}
	}
	if answered > 0 {
		select {
		case <-time.After(betweenReads):
		case <-ctx.Done():
		}
	}
	second := f.Stats(ctx)
	lookAtReadiness(&ready, second)
	lookAtGrowth(&growing, first, second)
	lookAtSettings(&settings, second, f.Running(ctx, second))
	lookAtLimits(ctx, e, &limits, second)
	return []Finding{
		ready.finding("%d of %d processes answer, with %d workers that are ready, and no handler is stuck", len(second), len(second), workersOf(second)),
		growing.finding("no receive without an answer and no lease lost within %s", betweenReads),
		settings.finding("no key is a message ID, no other program writes the records, no pool is too small or too large, and each message whose handler runs is hidden"),
		limits.finding("no queue's workers can have more than %d messages in flight, and no rule found messages without a group, or too few receives", mostInFlight),
	}
}

// stat returns a number of a process. One that it does not report is not seen, and not zero.
func (r *report) stat(stats map[string]float64, name, url string) float64 {
	n, known := stats[name]
	if !known {
		r.miss(fmt.Errorf("%s does not report %s", url, name))
	}
	return n
}

func workersOf(all []fleet.Worker) (n int) {
	for _, w := range all {
		if w.Report != nil {
			n += len(w.Report.Workers)
		}
	}
	return n
}

var errNoProcess = errors.New("no process was found")

// symptoms is what several processes have: the first of them are named.
type symptoms []string

func (s *symptoms) add(format string, args ...any) { *s = append(*s, fmt.Sprintf(format, args...)) }

func (s symptoms) String() string { return shown.Some(s) }

func lookAtReadiness(r *report, workers []fleet.Worker) {
	var away, unready, stuck symptoms
	for _, w := range workers {
		if w.Err != nil {
			away.add("%s (%v)", w.URL, w.Err)
			continue
		}
		for _, one := range w.Report.Workers {
			if one.NotReady != "" {
				unready.add("%s of %s (%s)", w.URL, one.Queue, one.NotReady)
			}
			if n := r.stat(one.Stats, fleet.Stuck, w.URL); n > 0 {
				stuck.add("%s of %s (%.0f)", w.URL, one.Queue, n)
			}
		}
	}
	if len(away) > 0 {
		r.fail("see whether the process runs, and serves its status.Handler at that URL", "no answer from %s", away)
	}
	if len(unready) > 0 {
		r.fail("the runbook's sections Worker stopped and Unavailable explain each reason", "not ready: %s", unready)
	}
	if len(stuck) > 0 {
		r.fail("the runbook, Stuck handler: a handler must return when its context ends; /running names its message; restart the process", "handlers are stuck: %s", stuck)
	}
	if len(workers) == 0 {
		r.miss(errNoProcess)
	}
}

// counter is one that should not grow, of one component of a process.
type counter struct{ url, of, what string }

// counters returns these of a process: by the names of its components, of which several workers have one queue.
func (r *report) counters(w fleet.Worker) map[counter]float64 {
	all := map[counter]float64{}
	for _, one := range w.Report.Workers {
		all[counter{w.URL, "worker of " + one.Queue, "receives without an answer"}] += r.stat(one.Stats, unanswered, w.URL)
		all[counter{w.URL, "worker of " + one.Queue, "leases lost"}] += r.stat(one.Stats, fleet.LeasesLost, w.URL)
	}
	for _, one := range w.Report.Consumers {
		all[counter{w.URL, "consumer " + one.Name, "record leases lost"}] += r.stat(one.Stats, fleet.LeasesLost, w.URL)
	}
	return all
}

func lookAtGrowth(r *report, first, second []fleet.Worker) {
	var grown symptoms
	for _, w := range second {
		if w.Err != nil {
			r.miss(fmt.Errorf("%s: %w", w.URL, w.Err))
			continue
		}
		i := slices.IndexFunc(first, func(o fleet.Worker) bool {
			return o.URL == w.URL && o.Report != nil && o.Report.Started.Equal(w.Report.Started) && o.Report.Name == w.Report.Name
		})
		if i < 0 {
			r.miss(fmt.Errorf("%s has answered once, or was another process the second time", w.URL))
			continue
		}
		before := r.counters(first[i])
		for c, now := range r.counters(w) {
			if by := now - before[c]; by > 0 {
				grown.add("%s, %s: %.0f %s", c.url, c.of, by, c.what)
			}
		}
	}
	if slices.Sort(grown); len(grown) > 0 {
		r.warn("the runbook, Lease lost and Unavailable: SQS or the store is slow or down, or a handler outlives its lease",
			"within %s: %s", betweenReads, grown)
	}
	if len(second) == 0 {
		r.miss(errNoProcess)
	}
}

func lookAtSettings(r *report, workers []fleet.Worker, running []fleet.Running) {
	var keys, foreign, pools, visible symptoms
	for _, w := range workers {
		if w.Err != nil {
			r.miss(fmt.Errorf("%s: %w", w.URL, w.Err))
			continue
		}
		for _, c := range w.Report.Consumers {
			if n := r.stat(c.Stats, messageIDKeys, w.URL); n > 0 {
				keys.add("%s, consumer %s (%.0f)", w.URL, c.Name, n)
			}
			if n := r.stat(c.Stats, foreignWriters, w.URL); n > 0 {
				foreign.add("%s, consumer %s (%.0f)", w.URL, c.Name, n)
			}
			most := r.stat(c.Stats, connections, w.URL)
			for _, one := range w.Report.Workers {
				if n := r.stat(one.Stats, runsAtOnce, w.URL); most > 0 && n > most {
					pools.add("%s, consumer %s has %.0f connections, worker of %s runs %.0f handlers", w.URL, c.Name, most, one.Queue, n)
				}
			}
		}
	}
	for _, p := range running {
		if p.Err != nil {
			r.miss(fmt.Errorf("%s: %w", p.URL, p.Err))
			continue
		}
		for _, h := range p.Report.Running {
			if h.Lease <= 0 && !h.Stuck { // W1 has what is stuck
				visible.add("%s, message %s of %s: its handler has run for %.0fs%s", p.URL, h.MessageID, h.Queue, h.Seconds, visibilityOf(workers, p.URL, h.Queue))
			}
		}
	}
	if len(keys) > 0 {
		r.warn("publish with an event ID (docs/messages.md): a redrive by AWS gives a message another ID, and its event would run again",
			"keys are message IDs: %s", keys)
	}
	if len(foreign) > 0 {
		r.warn("give each program its own consumer name: docs/troubleshooting.md, dedup.ErrForeignWriter", "another program writes the records: %s", foreign)
	}
	if len(pools) > 0 {
		r.warn("set SetMaxOpenConns above Concurrency, or lower Concurrency: docs/limits.md, Numbers that must fit", "the pool has fewer connections than the host runs handlers: %s", pools)
	}
	if large := largePools(workers); len(large) > 0 {
		r.warn("lower SetMaxOpenConns, raise max_connections, or use a pooler: docs/limits.md, Numbers that must fit",
			"the pools may open more connections than the server allows to all programs: %s", large)
	}
	if len(visible) > 0 {
		r.warn("the runbook, Lease lost: raise sqsworker.Options.VisibilityTimeout, or MaxExtension if a handler runs longer. The role needs sqs:ChangeMessageVisibility",
			"messages are visible again while their handlers run, and no extension was confirmed: %s", visible)
	}
	if len(workers) == 0 {
		r.miss(errNoProcess)
	}
}

// largePools adds the pools of the processes that run a consumer: they share a store. A process that does not know what its server
// allows is left out.
func largePools(workers []fleet.Worker) (large symptoms) {
	type pools struct {
		processes int
		may, most float64
	}
	all := map[string]pools{}
	for _, w := range workers {
		if w.Err != nil {
			continue
		}
		for _, c := range w.Report.Consumers {
			most, may := c.Stats[allowed], c.Stats[connections]
			if most == 0 {
				continue
			}
			if may == 0 { // no limit: a connection for each handler
				for _, one := range w.Report.Workers {
					may += one.Stats[runsAtOnce]
				}
			}
			p := all[c.Name]
			if p.processes++; p.processes == 1 || most < p.most {
				p.most = most
			}
			p.may += may
			all[c.Name] = p
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if p := all[name]; p.may > p.most {
			large.add("consumer %s may open %.0f in %d processes, the server allows %.0f", name, p.may, p.processes, p.most)
		}
	}
	return large
}

// visibilityOf says what the visibility timeout of a worker is, where that is known.
func visibilityOf(workers []fleet.Worker, url, queue string) string {
	for _, w := range workers {
		if w.URL != url || w.Report == nil {
			continue
		}
		i := slices.IndexFunc(w.Report.Workers, func(one statusreport.Worker) bool { return one.Queue == queue })
		if i >= 0 && w.Report.Workers[i].Options["visibility_timeout_seconds"] > 0 {
			return fmt.Sprintf(", the visibility timeout is %.0fs", w.Report.Workers[i].Options["visibility_timeout_seconds"])
		}
	}
	return ""
}
