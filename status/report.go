package status

import (
	"slices"
	"time"

	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// Version is the v of the JSON that Handler answers with. Fields may be added to it; a reader ignores those that it does not know.
const Version = 1

// Probe is the JSON of /live and /ready.
type Probe struct {
	V       int           `json:"v"`
	OK      bool          `json:"ok"` // 200; else 503
	Workers []ProbeWorker `json:"workers"`
}

// ProbeWorker is a worker of a Probe.
type ProbeWorker struct {
	Queue  string `json:"queue"` // its name
	State  string `json:"state"`
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"` // why it is not
}

// Report is the JSON of /stats.
type Report struct {
	V       int       `json:"v"`
	Name    string    `json:"name"`
	Version string    `json:"version,omitempty"` // of the program
	Started time.Time `json:"started"`           // when Handler was called
	Now     time.Time `json:"now"`               // by the clock of this process

	Workers    []Worker    `json:"workers,omitempty"`
	Consumers  []Component `json:"consumers,omitempty"`  // dedup.Once, by consumer
	Stores     []Component `json:"stores,omitempty"`     // dynamostore.Store
	Relays     []Component `json:"relays,omitempty"`     // outbox.Relay
	Publishers []Component `json:"publishers,omitempty"` // fifo.Publisher
}

// Worker is a worker of one queue.
type Worker struct {
	Queue    string             `json:"queue"` // its name
	URL      string             `json:"url"`
	State    string             `json:"state"`               // new, running, stopping, ended
	NotLive  string             `json:"not_live,omitempty"`  // why /live is 503
	NotReady string             `json:"not_ready,omitempty"` // why /ready is 503
	Intake   string             `json:"intake"`              // open, full, paused; "" unless it is running
	Options  map[string]float64 `json:"options"`             // those in force; times in seconds, 0: none
	Stats    Stats              `json:"stats"`
}

// Component is anything else that counts.
type Component struct {
	Name  string `json:"name"`
	Stats Stats  `json:"stats"`
}

// Stats are counters and gauges by their names: those of [Fields], where each has its kind and what it means.
type Stats map[string]float64

// RunningReport is the JSON of /running.
type RunningReport struct {
	V       int       `json:"v"`
	Now     time.Time `json:"now"`
	Total   int       `json:"total"`   // handlers that run, also those that are not listed
	Running []Running `json:"running"` // the oldest first, at most 1,000
}

// Running is a handler that runs.
type Running struct {
	Queue     string  `json:"queue"`
	MessageID string  `json:"message_id"`
	Key       string  `json:"key,omitempty"`   // of the event, without the consumer; with Options.Identifiers only
	Group     string  `json:"group,omitempty"` // the same
	Receives  int     `json:"receives"`
	Seconds   float64 `json:"seconds"`       // since it began
	Lease     float64 `json:"lease_seconds"` // for so long SQS hides the message at least; 0 or less: no longer
	Stuck     bool    `json:"stuck"`
}

// maxRunning is how many handlers /running lists.
const maxRunning = 1000

// component is what counts, other than a worker.
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

func (h *handler) live() Probe  { return h.probe((*sqsworker.Worker).NotLive) }
func (h *handler) ready() Probe { return h.probe((*sqsworker.Worker).NotReady) }

// probe asks the workers alone: whatever the others do, a probe answers.
func (h *handler) probe(why func(*sqsworker.Worker) string) Probe {
	p := Probe{V: Version, OK: true, Workers: []ProbeWorker{}}
	for _, w := range h.opts.Workers {
		reason := why(w)
		p.OK = p.OK && reason == ""
		p.Workers = append(p.Workers, ProbeWorker{Queue: host.QueueName(w.QueueURL()), State: string(w.State()), OK: reason == "", Reason: reason})
	}
	return p
}

func (h *handler) report() Report {
	r := Report{V: Version, Name: h.opts.Name, Version: h.opts.Version, Started: h.started.UTC(), Now: time.Now().UTC()}
	for _, w := range h.opts.Workers {
		stats := w.Stats()
		r.Workers = append(r.Workers, Worker{
			Queue: host.QueueName(w.QueueURL()), URL: w.QueueURL(), State: string(w.State()), NotLive: w.NotLive(), NotReady: w.NotReady(),
			Intake: string(stats.Intake), Options: optionsOf(w.Options()), Stats: statsOf("worker", stats),
		})
	}
	for _, c := range h.components {
		counted := Component{Name: c.name, Stats: statsOf(c.of, c.stats())}
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
	return r
}

// optionsOf returns the options that are numbers. Where a negative one stands for none it is 0, and Tries where it depends on
// the queue.
func optionsOf(o sqsworker.Options) map[string]float64 {
	seconds := func(d time.Duration) float64 { return max(d, 0).Seconds() }
	return map[string]float64{
		"concurrency": float64(o.Concurrency), "in_flight": float64(o.MaxInFlight), "held": float64(o.MaxHeld), "bytes": float64(o.MaxBytes),
		"receivers": float64(o.MaxReceivers), "tries": float64(o.MaxAttempts), "wait_seconds": seconds(o.WaitTime),
		"visibility_seconds": seconds(o.VisibilityTimeout), "max_extension_seconds": seconds(o.MaxExtension),
		"delete_linger_seconds": seconds(o.DeleteLinger), "stop_timeout_seconds": seconds(o.StopTimeout),
		"stop_grace_seconds": seconds(o.StopGrace),
	}
}

// running has the oldest handlers of all workers, at most limit.
func (h *handler) running(limit int) RunningReport {
	type running struct {
		sqsworker.RunningHandler
		queue string
	}
	var all []running
	r := RunningReport{V: Version, Now: time.Now().UTC(), Running: []Running{}}
	for _, w := range h.opts.Workers {
		oldest, total := w.Running(limit)
		r.Total += total
		for _, o := range oldest {
			all = append(all, running{o, host.QueueName(w.QueueURL())})
		}
	}
	slices.SortStableFunc(all, func(a, b running) int { return a.Since.Compare(b.Since) })
	for _, o := range all[:min(limit, len(all))] {
		one := Running{
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
