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

// stuckLoop is how long without a turn the worker's loop counts as dead. It turns every ten seconds when idle.
const stuckLoop = time.Minute

// Health returns a handler with two paths, for probes:
//
//   - /live is 200 unless the worker has ended or its loop has not turned for a minute: a restart would help. It does not
//     depend on SQS.
//   - /ready is 200 while the worker receives: running, not stopping, and a receive has succeeded within Wait + 1 min,
//     or none was needed because InFlight is used up.
//
// Any other answer of the two is 503. The body says why, as JSON: state, seconds since the last successful receive
// (-1: none yet), handlers running and the oldest one's seconds.
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
	return w.now().Sub(time.Unix(0, w.lastTurn.Load())) < stuckLoop
}

func (w *Worker) ready() bool {
	if w.state.Load() != stateRunning {
		return false
	}
	last := w.Stats().LastPoll
	return w.full.Load() || !last.IsZero() && w.now().Sub(last) < w.opts.Wait+time.Minute
}

func (w *Worker) probe(rw http.ResponseWriter, ok bool) {
	s := w.Stats()
	body := struct {
		State         string  `json:"state"`
		LastPoll      float64 `json:"last_poll_seconds"`
		Running       int64   `json:"running"`
		OldestRunning float64 `json:"oldest_running_seconds"`
		Stuck         int64   `json:"stuck"`
	}{stateNames[w.state.Load()], -1, s.Running, s.OldestRunning.Seconds(), s.Stuck}
	if !s.LastPoll.IsZero() {
		body.LastPoll = w.now().Sub(s.LastPoll).Seconds()
	}
	rw.Header().Set("Content-Type", "application/json")
	rw.Header().Set("Cache-Control", "no-store")
	if !ok {
		rw.WriteHeader(http.StatusServiceUnavailable)
	}
	// The probe may have gone; there is nobody else to tell.
	_ = json.NewEncoder(rw).Encode(body)
}
