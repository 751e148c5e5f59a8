package sqsworker

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	stateNew int32 = iota
	stateRunning
	stateStopping
	stateEnded
)

var states = [...]string{stateNew: "new", stateRunning: "running", stateStopping: "stopping", stateEnded: "ended"}

// State returns the worker's state. It is "new" until Run receives, "running", also while the worker is paused, "stopping"
// while it finishes the messages that it has received, and "ended". The texts are stable. You may call it at any time, from
// any goroutine.
func (w *Worker) State() string { return states[w.state.Load()] }

// blockedAfter is the time without a step of the loop after which the worker counts as dead. An idle loop makes a step
// every ten seconds, see maxSleep.
const blockedAfter = time.Minute

// Health returns a handler with two paths, for probes:
//
//   - /live is 200 unless a restart would help: the worker has ended, its main loop has been blocked for a minute, or as many
//     handlers as Concurrency are stuck (Stats.Stuck). A stuck handler gives its slot to another message, and keeps its locks
//     and memory. So the worker still handles messages, with ever more goroutines. /live does not depend on SQS.
//   - /ready is 200 while the worker makes progress. The worker must run, and not be stopping. A receive must have succeeded
//     within WaitTime + 1 min, or be unnecessary ([IntakePaused], or [IntakeFull] and a handler has returned or a delete was
//     confirmed within that time). And the last three outcomes must not all be unavailable ([sqsonce.ErrUnavailable]). A
//     paused worker is ready, also in an outage.
//
// Otherwise they are 503. The body is JSON. It has the reason of a 503, the state, the intake, and the seconds since the last
// receive (-1 before the first one). It counts the running and the stuck handlers, and has the seconds of the oldest one. The
// probes of Kubernetes:
//
//	livenessProbe:  {httpGet: {path: /live, port: 8080}}
//	readinessProbe: {httpGet: {path: /ready, port: 8080}}
func (w *Worker) Health() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/live", func(rw http.ResponseWriter, _ *http.Request) { w.probe(rw, w.whyNotLive()) })
	mux.HandleFunc("/ready", func(rw http.ResponseWriter, _ *http.Request) { w.probe(rw, w.whyNotReady()) })
	return mux
}

// whyNotLive returns the reason if /live of [Worker.Health] is 503, and "" if it is 200.
func (w *Worker) whyNotLive() string {
	switch state := w.state.Load(); {
	case state == stateNew:
		return ""
	case state == stateEnded:
		return "the worker has ended"
	case w.since(&w.lastStep) >= blockedAfter:
		return fmt.Sprintf("the main loop has been blocked for %s", blockedAfter)
	case w.counters.stuck.Load() >= w.control.concurrency.Load():
		return "as many handlers as Concurrency did not return after their contexts were cancelled"
	}
	return ""
}

// whyNotReady returns the reason if /ready of [Worker.Health] is 503, and "" if it is 200.
func (w *Worker) whyNotReady() string {
	patience := w.opts.WaitTime + time.Minute
	last := w.Stats().LastPoll
	why := w.whyNotLive()
	switch {
	case w.state.Load() == stateNew && w.waitsFor.Load() != nil:
		return *w.waitsFor.Load()
	case w.state.Load() != stateRunning:
		return "the worker does not run: " + w.State()
	case why != "":
		return why
	case w.control.closed(): // it runs no handler that could show that an outage has ended
		return ""
	case w.notReady.Load() != nil:
		return *w.notReady.Load()
	case w.full.Load() && w.since(&w.progress) >= patience:
		return fmt.Sprintf("the worker is full, and for %s no handler returned and no delete was confirmed", patience)
	case w.since(&w.noNeed) < patience:
		return ""
	case last.IsZero():
		return "no receive has succeeded yet"
	case w.now().Sub(last) >= patience:
		return fmt.Sprintf("no receive has succeeded for %s", patience)
	}
	return ""
}

func (w *Worker) since(t *atomic.Int64) time.Duration { return w.now().Sub(time.Unix(0, t.Load())) }

// noteFull follows a look at whether a receive is to be started.
func (l *loop) noteFull(full bool) {
	l.full.Store(full)
	if full || l.control.closed() {
		l.noNeed.Store(l.now().UnixNano())
	}
	if !full {
		l.noteProgress()
	}
}

func (l *loop) noteProgress() { l.progress.Store(l.now().UnixNano()) }

func (w *Worker) probe(rw http.ResponseWriter, reason string) {
	s := w.Stats()
	body := struct {
		Reason        string  `json:"reason,omitempty"`
		State         string  `json:"state"`
		Intake        Intake  `json:"intake"`
		LastPoll      float64 `json:"last_poll_seconds"`
		Running       int64   `json:"running"`
		OldestRunning float64 `json:"oldest_running_seconds"`
		Stuck         int64   `json:"stuck"`
	}{reason, w.State(), s.Intake, -1, s.Running, s.OldestRunning.Seconds(), s.Stuck}
	if !s.LastPoll.IsZero() {
		body.LastPoll = w.now().Sub(s.LastPoll).Seconds()
	}
	rw.Header().Set("Content-Type", "application/json")
	rw.Header().Set("Cache-Control", "no-store")
	if reason != "" {
		rw.WriteHeader(http.StatusServiceUnavailable)
	}
	// An error says that the probe has closed its connection; nobody is left to report it to.
	_ = json.NewEncoder(rw).Encode(body)
}
