package sqsworker

import (
	"encoding/json"
	"net/http"
	"time"
)

const (
	stateNew int32 = iota
	stateRunning
	stateStopping
	stateEnded
)

var stateNames = [...]string{"new", "running", "stopping", "ended"}

// blockedAfter is the time without a step of the loop after which the worker counts as dead. An idle loop makes a step
// every ten seconds, see maxSleep.
const blockedAfter = time.Minute

// Health returns a handler with two paths, for probes:
//
//   - /live is 200 unless the worker has ended, or its main loop has been blocked for a minute: a restart would help. It
//     does not depend on SQS.
//   - /ready is 200 while the worker receives: it runs and does not stop, within Wait + 1 min a receive has succeeded or
//     none was needed ([IntakeFull], or [IntakePaused]: whoever pauses a worker must not be told that it is broken), and
//     the last three outcomes were not all unavailable ([sqsonce.ErrUnavailable]).
//
// Otherwise they are 503. The body says why, as JSON: the state, the intake, the seconds since the last successful receive
// (-1: none yet), the handlers that run and the seconds of the oldest one, and the stuck ones.
func (w *Worker) Health() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/live", func(rw http.ResponseWriter, _ *http.Request) { w.probe(rw, w.live()) })
	mux.HandleFunc("/ready", func(rw http.ResponseWriter, _ *http.Request) { w.probe(rw, w.ready()) })
	return mux
}

func (w *Worker) live() bool {
	switch w.state.Load() {
	case stateNew:
		return true
	case stateEnded:
		return false
	}
	return w.now().Sub(time.Unix(0, w.lastStep.Load())) < blockedAfter
}

func (w *Worker) ready() bool {
	if w.state.Load() != stateRunning {
		return false
	}
	last := w.Stats().LastPoll
	if w.notReady.Load() {
		return false
	}
	recent := func(t time.Time) bool { return w.now().Sub(t) < w.opts.Wait+time.Minute }
	return recent(last) || recent(time.Unix(0, w.noNeed.Load()))
}

func (w *Worker) probe(rw http.ResponseWriter, ok bool) {
	s := w.Stats()
	body := struct {
		State         string  `json:"state"`
		Intake        Intake  `json:"intake"`
		LastPoll      float64 `json:"last_poll_seconds"`
		Running       int64   `json:"running"`
		OldestRunning float64 `json:"oldest_running_seconds"`
		Stuck         int64   `json:"stuck"`
	}{stateNames[w.state.Load()], s.Intake, -1, s.Running, s.OldestRunning.Seconds(), s.Stuck}
	if !s.LastPoll.IsZero() {
		body.LastPoll = w.now().Sub(s.LastPoll).Seconds()
	}
	rw.Header().Set("Content-Type", "application/json")
	rw.Header().Set("Cache-Control", "no-store")
	if !ok {
		rw.WriteHeader(http.StatusServiceUnavailable)
	}
	// An error says that the probe has closed its connection; nobody is left to report it to.
	_ = json.NewEncoder(rw).Encode(body)
}
