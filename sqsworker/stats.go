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
	Received    int64 `help:"Messages received, second copies included."`
	Done        int64 `help:"Handlers that returned nil."`
	Skipped     int64 `help:"Handlers that returned Skip: messages that needed no effect."`
	Failed      int64 `help:"Handlers that failed. An event in progress elsewhere is not a failure."`
	Retried     int64 `help:"Deliveries given back, held, or run again in this process, after their handler had run."`
	Rejected    int64 `help:"Messages sent to the dead-letter queue."`
	Unavailable int64 `help:"Handlers that returned ErrUnavailable: not a failure of their messages."`
	Postponed   int64 `help:"Handlers that returned Postpone: not a failure of their messages."`
	LeasesLost  int64 `help:"Messages that another consumer may have had while they were in flight here."`
	Stuck       int64 `help:"Handlers that did not return within StopGrace after their context was cancelled."`

	// The following numbers are those of now, as of the worker's last decision. Running, Waiting, Held, Rejecting, Deleting and
	// Releasing add up to InFlight. Held messages don't count in Options.MaxInFlight.
	InFlight  int64 `help:"Messages received and not yet deleted, given back, lost or abandoned by the stop."`
	Running   int64 `help:"Messages whose handlers run, stuck ones included, unless the stop has abandoned them."`
	Waiting   int64 `help:"Messages that wait for a slot, or for the end of another message of their group."`
	Held      int64 `help:"Messages held in flight without a slot until they run again."`
	Aside     int64 `help:"Held messages whose needs are unavailable while others are handled."`
	Suspect   int64 `help:"Held messages that were running in a process that crashed, and run apart from others soon."`
	Delayed   int64 `help:"Postponed messages that this worker has given back until their turn."`
	InDoubt   int64 `help:"Held messages whose store or dependency is unavailable, while the worker does not know whether it is down for all."`
	Rejecting int64 `help:"Messages on their way to the dead-letter queue."`
	Deleting  int64 `help:"Messages that are done and whose deletes are not confirmed."`
	Releasing int64 `help:"Messages given back, which is not confirmed."`
	Receiving int64 `help:"Receives under way."`

	// The limits in force, 0 before Run begins to receive. See [Worker.SetConcurrency].
	Concurrency int64 `help:"The limit of running, which may be above it for a while after it was lowered. 0 before the worker begins to receive."`
	MaxInFlight int64 `help:"The limit of in_flight. 0 before the worker begins to receive."`

	Intake Intake // whether the worker starts receives now, or "" while Run does not receive at all

	Drained   int64 `help:"Handlers that returned during the stop."`
	Released  int64 `help:"Messages given back without having been started."`
	Abandoned int64 `help:"Messages that the stop left hidden until their visibility timeout ends."`
	Undeleted int64 `help:"Messages that are done but were not deleted. SQS may deliver them again."`

	Extended    int64 `help:"Extensions of messages that SQS confirmed in time."`
	NotExtended int64 `help:"Extensions of messages that failed, or were confirmed too late."`
	Damaged     int64 `help:"Messages received with another body than was sent."`
	Repeated    int64 `help:"Messages deleted without a run, since this worker had handled them before."`

	Receives   int64 `help:"ReceiveMessage calls."`
	Unanswered int64 `help:"ReceiveMessage calls without an answer. Their messages return after the visibility timeout."`
	Deletes    int64 `help:"DeleteMessageBatch calls."`
	Extensions int64 `help:"ChangeMessageVisibilityBatch calls, those that give messages back included."`

	LastPoll      time.Time     `help:"When a receive last succeeded. 0: never."`
	OldestRunning time.Duration `help:"How long the oldest running handler has run. 0: none runs."`
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
	now := Stats{
		InFlight: int64(l.capacity.used.messages - l.polling.asked + l.parked.messages), Receiving: int64(l.polling.active),
		Running: n(running), Waiting: n(following) + n(ready), Held: n(held), Rejecting: n(rejecting), Deleting: n(deleting), Releasing: n(releasing),
		Delayed:     int64(l.behind.delayed),
		Concurrency: int64(l.opts.Concurrency), MaxInFlight: int64(l.opts.MaxInFlight),
	}
	for why, count := range l.heldAs {
		if why.stat != nil {
			*why.stat(&now) = count
		}
	}
	l.counters.turn.mu.Lock()
	defer l.counters.turn.mu.Unlock()
	l.counters.turn.now = now
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
	s.Postponed = of(sqsonce.OutcomePostponed)
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
