package sqsworker

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

// Stats counts the work of a worker since Run began. After Run it is the report of the stop.
type Stats struct {
	Received    int64 // messages received, second copies included
	Done        int64 // handlers that returned nil
	Skipped     int64 // handlers that returned sqsonce.Skip
	Failed      int64 // handlers that failed, without events in progress elsewhere
	Retried     int64 // deliveries given back, held, or run again in this process, after their handler had run
	Rejected    int64 // messages sent to the dead-letter queue
	Unavailable int64 // handlers that returned sqsonce.ErrUnavailable, which is not a failure of their messages
	LeasesLost  int64 // messages that another consumer may have had while they were in flight here
	Stuck       int64 // handlers that, now, have not returned within StopGrace after their context was cancelled

	// The following numbers are those of now, as of the worker's last decision. Running, Waiting, Held, Rejecting, Deleting and
	// Releasing add up to InFlight. Held messages don't count in Options.MaxInFlight.
	InFlight  int64 // messages received and not yet deleted, given back, lost or abandoned by the stop
	Running   int64 // messages whose handlers run, stuck ones included, unless the stop has abandoned them
	Waiting   int64 // messages that wait for a slot, or for the end of another message of their group
	Held      int64 // messages kept in flight without a slot until they run again
	Aside     int64 // of Held, messages whose dependency is unavailable, while other messages run
	Suspect   int64 // of Held, messages that were running in a process that crashed. They run apart from other messages soon
	InDoubt   int64 // of Held, messages whose dependency is unavailable, while it is not known whether other messages can run
	Rejecting int64 // messages on their way to the dead-letter queue
	Deleting  int64 // done messages whose deletes are not confirmed
	Releasing int64 // messages given back without a confirmation yet
	Receiving int64 // receives under way

	// The limits in force, 0 before Run begins to receive. See [Worker.SetConcurrency].
	Concurrency int64 // of Running, which may be above it for a while after it was lowered
	MaxInFlight int64 // Options.MaxInFlight

	Intake Intake // whether the worker starts receives now, or "" while Run does not receive at all

	Drained   int64 // handlers that returned during the stop
	Released  int64 // messages given back without having been started
	Abandoned int64 // messages that the stop left hidden until their visibility timeout ends
	Undeleted int64 // done messages whose delete is not confirmed and not repeated

	Extended    int64 // extensions of messages that SQS confirmed in time
	NotExtended int64 // extensions that failed, or were confirmed too late
	Damaged     int64 // messages received with a body that differs from the sent one
	Repeated    int64 // messages deleted without a run, because this worker had handled them before

	Receives   int64 // ReceiveMessage calls
	Unanswered int64 // ReceiveMessage calls without an answer. Messages that they hid come back after the visibility timeout
	Deletes    int64 // DeleteMessageBatch calls
	Extensions int64 // ChangeMessageVisibilityBatch calls, including those that give messages back

	LastPoll      time.Time     // when a receive last succeeded, zero before the first one
	OldestRunning time.Duration // how long the oldest running handler has run, 0 without a running handler
}

type counters struct {
	outcomes                                   [len(host.Outcomes)]atomic.Int64 // by kind
	received, retried, sent, leasesLost, stuck atomic.Int64
	drained, released, abandoned, undeleted    atomic.Int64
	receives, unanswered, deletes, extensions  atomic.Int64
	lastPoll                                   atomic.Pointer[time.Time]
	extended, notExtended, damaged, repeated   atomic.Int64
	running                                    runningHandlers
	turn                                       turn
}

// turn is the loop's messages in flight at the end of its last turn. All of it is read at once. Read one by one, a message
// that changes its state would be counted twice, or not at all.
type turn struct {
	mu  sync.Mutex
	now Stats // the fields that count messages and receives, and their limits
}

func (l *loop) noteTurn() {
	n := func(s state) int64 { return int64(l.counts[s]) }
	l.counters.turn.mu.Lock()
	defer l.counters.turn.mu.Unlock()
	l.counters.turn.now = Stats{
		InFlight: int64(l.capacity.used.messages - l.polling.asked + l.parked.messages), Receiving: int64(l.polling.active),
		Running: n(running), Waiting: n(following) + n(ready), Held: n(held), Aside: int64(l.heldAs[heldAside]), InDoubt: int64(l.heldAs[heldClaim]), Suspect: int64(l.heldAs[heldSuspect]), Rejecting: n(rejecting), Deleting: n(deleting), Releasing: n(releasing),
		Concurrency: int64(l.opts.Concurrency), MaxInFlight: int64(l.opts.MaxInFlight),
	}
}

func (t *turn) read() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.now
}

// QueueURL returns the URL of the queue.
func (w *Worker) QueueURL() string { return w.queueURL }

// Stats returns the counters. You may call it at any time, from any goroutine.
func (w *Worker) Stats() Stats {
	c := &w.counters
	s := c.turn.read()
	of := func(k sqsonce.OutcomeKind) int64 { return c.outcomes[k].Load() }
	s.Done, s.Skipped, s.Unavailable = of(sqsonce.OutcomeDone), of(sqsonce.OutcomeSkipped), of(sqsonce.OutcomeUnavailable)
	s.Failed = of(sqsonce.OutcomeFailed) + of(sqsonce.OutcomeRejected)
	s.Received, s.Retried, s.Rejected, s.LeasesLost, s.Stuck = c.received.Load(), c.retried.Load(), c.sent.Load(), c.leasesLost.Load(), c.stuck.Load()
	s.Drained, s.Released, s.Abandoned, s.Undeleted = c.drained.Load(), c.released.Load(), c.abandoned.Load(), c.undeleted.Load()
	s.Extended, s.NotExtended, s.Damaged, s.Repeated = c.extended.Load(), c.notExtended.Load(), c.damaged.Load(), c.repeated.Load()
	s.Receives, s.Unanswered, s.Deletes, s.Extensions = c.receives.Load(), c.unanswered.Load(), c.deletes.Load(), c.extensions.Load()
	if p := c.lastPoll.Load(); p != nil {
		s.LastPoll = *p
	}
	s.OldestRunning, s.Intake = c.running.oldest(w.now()), w.intake()
	return s
}
