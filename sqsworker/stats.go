package sqsworker

import (
	"sync"
	"sync/atomic"
	"time"
)

// Stats counts what a worker has done since Run began. After Run it is the report of the stop.
type Stats struct {
	Received    int64 // messages received, second copies included
	Done        int64 // handlers that returned nil
	Failed      int64 // handlers that failed; an event in progress elsewhere is not a failure
	Retried     int64 // deliveries given back, held, or run again in this process, after their handler had run
	Rejected    int64 // messages sent to the dead-letter queue
	Unavailable int64 // handlers that returned sqsonce.ErrUnavailable: not a failure of their messages
	LeasesLost  int64 // messages that another consumer may have had while they were in flight here
	Stuck       int64 // now: handlers that did not return within StopGrace after their context was cancelled
	Running     int64 // now: handlers, stuck ones included
	Held        int64 // now: messages kept in flight without a slot until they are tried again

	Intake Intake // now: whether receives are started; "" while Run does not receive at all

	Drained   int64 // handlers that returned during the stop
	Released  int64 // messages given back without having been started
	Abandoned int64 // messages that the stop left hidden until their visibility timeout ends
	Undeleted int64 // messages done whose delete is not confirmed

	Receives   int64 // ReceiveMessage calls
	Unanswered int64 // of these, without an answer: messages that they hid come back after the visibility timeout
	Deletes    int64 // DeleteMessageBatch calls
	Extensions int64 // ChangeMessageVisibilityBatch calls, those that give messages back included

	LastPoll      time.Time     // when a receive last succeeded; zero: never
	OldestRunning time.Duration // how long the oldest running handler has run; 0: none runs
}

type counters struct {
	received, done, failed, retried, rejected, leasesLost, stuck atomic.Int64
	unavailable                                                  atomic.Int64
	drained, released, abandoned, undeleted                      atomic.Int64
	receives, unanswered, deletes, extensions                    atomic.Int64
	lastPoll                                                     atomic.Pointer[time.Time]
	running                                                      runningHandlers
	held                                                         atomic.Int64
}

// Stats returns the counters. It may be called at any time, from any goroutine.
func (w *Worker) Stats() Stats {
	c := &w.counters
	s := Stats{
		Received: c.received.Load(), Done: c.done.Load(), Failed: c.failed.Load(), Retried: c.retried.Load(),
		Rejected: c.rejected.Load(), Unavailable: c.unavailable.Load(), LeasesLost: c.leasesLost.Load(), Stuck: c.stuck.Load(),
		Drained: c.drained.Load(), Released: c.released.Load(), Abandoned: c.abandoned.Load(), Undeleted: c.undeleted.Load(),
		Receives: c.receives.Load(), Unanswered: c.unanswered.Load(), Deletes: c.deletes.Load(), Extensions: c.extensions.Load(),
	}
	if p := c.lastPoll.Load(); p != nil {
		s.LastPoll = *p
	}
	s.Running, s.OldestRunning = c.running.report()
	s.Held, s.Intake = c.held.Load(), w.intake()
	return s
}

// runningHandlers is the set of handlers that run, with the time when each started. A delivery has one handler at a time.
type runningHandlers struct {
	mu    sync.Mutex
	since map[*delivery]time.Time
}

func (r *runningHandlers) add(d *delivery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.since == nil {
		r.since = map[*delivery]time.Time{}
	}
	r.since[d] = time.Now()
}

func (r *runningHandlers) remove(d *delivery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.since, d)
}

// report returns how many handlers run, and how long the oldest has run.
func (r *runningHandlers) report() (n int64, oldest time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, start := range r.since {
		oldest = max(oldest, time.Since(start))
	}
	return int64(len(r.since)), oldest
}
