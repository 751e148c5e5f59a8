package fleet

import (
	"time"

	"github.com/sqsonce/sqsonce/internal/statusreport"
)

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
