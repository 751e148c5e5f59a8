package sqsworker

import (
	"sync"
	"sync/atomic"
	"time"
)

// Stats counts what a worker has done since Run began. After Run it is the report of the stop.
type Stats struct {
	Received   int64 // messages received, second copies included
	Done       int64 // handlers that returned nil
	Failed     int64 // handlers that failed; an event in progress elsewhere is not a failure
	Retried    int64 // deliveries given back, or run again in this process, after their handler had run
	Rejected   int64 // messages sent to the dead-letter queue
	LeasesLost int64 // messages that could not be proven to be ours any more
	Stuck      int64 // now: handlers that did not return within StopGrace of the end of their context
	Running    int64 // now: handlers

	Drained   int64 // handlers that returned during the stop
	Released  int64 // messages given back without having been started
	Abandoned int64 // messages left to their visibility timeout by the stop
	Undeleted int64 // messages done whose delete was never confirmed

	Receives   int64 // ReceiveMessage calls
	Unanswered int64 // of these, without an answer: what they took comes back after the visibility timeout
	Deletes    int64 // DeleteMessageBatch calls
	Extensions int64 // ChangeMessageVisibilityBatch calls, those that give messages back included

	LastPoll      time.Time     // when a receive last succeeded; zero: never
	OldestRunning time.Duration // how long the oldest running handler has run; 0: none runs
}

type counters struct {
	received, done, failed, retried, rejected, leasesLost, stuck atomic.Int64
	drained, released, abandoned, undeleted                      atomic.Int64
	receives, unanswered, deletes, extensions                    atomic.Int64
	lastPoll                                                     atomic.Pointer[time.Time]
	running                                                      runningHandlers
}

// Stats returns the counters. It may be called at any time, from any goroutine.
func (w *Worker) Stats() Stats {
	c := &w.counters
	s := Stats{
		Received: c.received.Load(), Done: c.done.Load(), Failed: c.failed.Load(), Retried: c.retried.Load(),
		Rejected: c.rejected.Load(), LeasesLost: c.leasesLost.Load(), Stuck: c.stuck.Load(),
		Drained: c.drained.Load(), Released: c.released.Load(), Abandoned: c.abandoned.Load(), Undeleted: c.undeleted.Load(),
		Receives: c.receives.Load(), Unanswered: c.unanswered.Load(), Deletes: c.deletes.Load(), Extensions: c.extensions.Load(),
	}
	if p := c.lastPoll.Load(); p != nil {
		s.LastPoll = *p
	}
	s.Running, s.OldestRunning = c.running.report()
	return s
}

// runningHandlers knows the handlers that run, in the order they started.
type runningHandlers struct {
	mu             sync.Mutex
	n              int64
	oldest, newest *runningHandler
}

// runningHandler is a delivery's place among them. A delivery has one handler at a time.
type runningHandler struct {
	since        time.Time
	older, newer *runningHandler
}

func (r *runningHandlers) add(h *runningHandler) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*h = runningHandler{since: time.Now(), older: r.newest}
	if r.newest != nil {
		r.newest.newer = h
	} else {
		r.oldest = h
	}
	r.newest = h
	r.n++
}

func (r *runningHandlers) remove(h *runningHandler) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h.older != nil {
		h.older.newer = h.newer
	} else {
		r.oldest = h.newer
	}
	if h.newer != nil {
		h.newer.older = h.older
	} else {
		r.newest = h.older
	}
	h.older, h.newer = nil, nil // a delivery that is done keeps no other
	r.n--
}

func (r *runningHandlers) report() (n int64, oldest time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.oldest != nil {
		oldest = time.Since(r.oldest.since)
	}
	return r.n, oldest
}
