// Package fleet asks running workers how they are: each has a status.Handler.
package fleet

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/statusreport"
)

// The bounds of what a worker, or whoever answers in its place, can do to the one who asks.
const (
	timeout      = 2 * time.Second // of one request with its answer, and of one look-up of a host
	atOnce       = 128             // requests for counters, and look-ups: 512 processes that are silent hold up the others for 8 s
	longAtOnce   = 16              // requests whose answers may be long
	maxProcesses = 512             // asked in all
	maxStats     = 1 << 20         // bytes of an answer
	maxRunning   = 8 << 20         // the same: 1,000 handlers with keys and groups
	maxListed    = 1000            // workers, or handlers, of one process
	maxFigure    = 1e20
	mostBanners  = 20
)

// Worker is what a process said, or why it did not.
type Worker struct {
	URL    string               // of its status.Handler, as it was asked
	Report *statusreport.Report // nil: see Err
	Err    error
	At     time.Time // when it answered
}

// Running is the handlers that run in a process, or why they are not known.
type Running struct {
	URL    string                      // as in Worker
	Report *statusreport.RunningReport // nil: see Err
	Err    error
}

// Fleet is the processes with the workers.
type Fleet struct {
	Client  *http.Client // default: a new one, with http.DefaultTransport
	Targets []string     // a URL each, or dns:HOST:PORT: every address of the host
	// Resolve returns the addresses of a host. Default: those of the resolver of the system.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
}

// Stats asks every process for its counters, 128 at a time, for 2 s each. Hosts are resolved each time: containers come and go. One
// that is away, slow or answers with something else is an entry with Err. The order is that of the targets, then of the addresses.
//
// A URL is asked once however often it is named. A process that answers at several addresses, such as one of IPv4 and one of IPv6,
// is listed with the first of them: the same process is one with the same name and, to the nanosecond, the same start.
func (f *Fleet) Stats(ctx context.Context) []Worker {
	workers := f.resolve(ctx)
	host.InParallel(len(workers), atOnce, func(i int) {
		w := &workers[i]
		if w.Err != nil {
			return
		}
		var r statusreport.Report
		if w.Err = f.get(ctx, w.URL, "stats", maxStats, &r); w.Err == nil {
			w.Err = checkReport(&r)
		}
		if w.Err == nil {
			w.Report, w.At = &r, time.Now()
		}
	})
	return distinct(workers)
}

// Banners are a line for each consumer that is paused or limited, each once.
func Banners(workers []Worker) (all []string) {
	for _, w := range workers {
		if w.Report == nil {
			continue
		}
		for _, c := range w.Report.Controls {
			if text := c.Banner(); text != "" && !slices.Contains(all, text) && len(all) < mostBanners {
				all = append(all, text)
			}
		}
	}
	return all
}

// Running asks those of the processes that have answered for the handlers that run in them.
func (f *Fleet) Running(ctx context.Context, workers []Worker) []Running {
	var all []Running
	for _, w := range workers {
		if w.Report != nil {
			all = append(all, Running{URL: w.URL})
		}
	}
	host.InParallel(len(all), longAtOnce, func(i int) {
		var r statusreport.RunningReport
		if all[i].Err = f.get(ctx, all[i].URL, "running", maxRunning, &r); all[i].Err == nil {
			all[i].Err = checkRunning(&r)
		}
		if all[i].Err == nil {
			all[i].Report = &r
		}
	})
	return all
}

// process is the same in each answer of one process.
type process struct {
	name    string
	started int64
}

func (w *Worker) process() process { return process{w.Report.Name, w.Report.Started.UnixNano()} }

// distinct leaves out those that were asked at another address before.
func distinct(workers []Worker) []Worker {
	seen := map[process]bool{}
	kept := workers[:0]
	for _, w := range workers {
		if w.Report != nil {
			if seen[w.process()] {
				continue
			}
			seen[w.process()] = true
		}
		kept = append(kept, w)
	}
	return kept
}

// Names of a worker's counters and gauges in statusreport.Stats. One that a worker does not report is not known, and not zero.
const (
	Received      = "received"
	Done          = "done"
	Failed        = "failed"
	LeasesLost    = "leases_lost"
	Stuck         = "stuck"
	InFlight      = "in_flight"
	RunningNow    = "running"
	Held          = "held"
	Aside         = "aside"
	InDoubt       = "in_doubt"
	Suspect       = "suspect"
	Concurrency   = "concurrency"
	OldestRunning = "oldest_running_seconds"
)

// Trouble is how many of a worker's held messages are aside, in doubt or suspect, in words. "": none is, or it does not say.
func Trouble(s statusreport.Stats) string {
	var all []string
	for _, name := range []string{Aside, InDoubt, Suspect} {
		if n := s[name]; n > 0 {
			all = append(all, fmt.Sprintf("%.0f %s", n, strings.ReplaceAll(name, "_", " ")))
		}
	}
	return strings.Join(all, ", ")
}

// Of is a worker of a process.
type Of struct {
	URL    string // Worker.URL
	Worker int    // its index in Worker.Report.Workers
}

// Rate is what a worker does in a second.
type Rate struct{ Received, Done, Failed float64 }

// Rates returns what the workers did between two reads. There is none for a process that has restarted in between, for the first
// read of one, and where its counters or its clock went back. One URL for several processes, as a load balancer has, answers with
// another process each time, and has none either.
func Rates(before, after []Worker) map[Of]Rate {
	type worker struct {
		process process
		url     string // of its queue
		nth     int    // of the workers of that queue
	}
	type read struct {
		stats   statusreport.Stats
		at, now time.Time
	}
	each := func(all []Worker, f func(Of, worker, read)) {
		for _, w := range all {
			if w.Report == nil {
				continue
			}
			nth := map[string]int{}
			for i, of := range w.Report.Workers {
				f(Of{w.URL, i}, worker{w.process(), of.URL, nth[of.URL]}, read{of.Stats, w.At, w.Report.Now})
				nth[of.URL]++
			}
		}
	}
	old := map[worker]read{}
	each(before, func(_ Of, w worker, r read) { old[w] = r })
	rates := map[Of]Rate{}
	each(after, func(of Of, w worker, r read) {
		o, ok := old[w]
		// The process's own clock has no jitter of the network. A step of that clock is no time that has passed.
		passed := r.now.Sub(o.now)
		if step := passed - r.at.Sub(o.at); !ok || passed <= 0 || step.Abs() > 2*timeout {
			return
		}
		perSecond := func(name string) float64 {
			was, had := o.stats[name]
			is, has := r.stats[name]
			if !had || !has {
				return -1
			}
			return (is - was) / passed.Seconds()
		}
		if rate := (Rate{perSecond(Received), perSecond(Done), perSecond(Failed)}); min(rate.Received, rate.Done, rate.Failed) >= 0 {
			rates[of] = rate
		}
	})
	return rates
}
