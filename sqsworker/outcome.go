package sqsworker

import (
	"context"
	"errors"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

// result is what a handler's return means for its message.
type result struct {
	outcome host.Outcome
	err     error
	asked   time.Duration // by sqsonce.RetryAfter; negative: nothing was asked for
	delay   time.Duration // before others may receive the message
	ended   <-chan struct{}
	settle  func(deadLettered bool)
	noSend  bool // the dead-letter queue did not take the message
}

// judge runs beside the loop: Backoff is the user's, and what middleware left to settle may call its store.
func (w *Worker) judge(err error, count int, settle func(bool)) result {
	r := result{outcome: host.OutcomeOf(err), err: err, asked: -1, settle: settle, ended: host.Ended(err)}
	if retry, _ := host.Asked(err); retry != nil {
		r.asked = max(0, retry.After)
		r.delay = r.asked
	} else if err != nil {
		r.delay = w.backoff(count)
	}
	if r.outcome != host.Rejected {
		settle(false)
	}
	return r
}

func (w *Worker) backoff(count int) (d time.Duration) {
	defer func() {
		if p := recover(); p != nil {
			w.log.Error("sqsworker: Options.Backoff panicked", keyError, p)
			d = host.DefaultBackoff(count)
		}
	}()
	return max(0, w.opts.Backoff(count))
}

func (l *loop) count(d *delivery, r result) {
	switch r.outcome {
	case host.Done:
		l.counters.done.Add(1)
	case host.LeaseLost: // counted with the leases
	case host.InProgress:
		l.log.Debug("sqsworker: in progress elsewhere", keyMessage, d.m.ID, keyCount, d.lease.count)
	default:
		l.counters.failed.Add(1)
		l.log.Warn("sqsworker: handler failed", keyMessage, d.m.ID, keyGroup, d.m.Group, keyCount, d.lease.count,
			keyError, r.err)
	}
}

// failed lets the message be delivered again, here or anywhere.
func (l *loop) failed(d *delivery, r result) {
	ended := errors.Is(r.err, context.Canceled) || errors.Is(r.err, sqsonce.ErrShutdown)
	if l.stopping.cancelled && r.asked < 0 && ended {
		r.delay = 0 // it did not fail: we ended it
	}
	if d.group != nil {
		l.headFailed(d, r)
		return
	}
	l.counters.retried.Add(1)
	l.release(d, r.delay)
}

// inProgress brings a message back when another delivery of its event should have ended. SQS counts every receive, so a
// message that bounces while a long handler runs elsewhere could reach the dead-letter queue without having been run:
// where that is near, and on FIFO, it is kept here, under the heartbeat and without a slot. Where this process will know
// when the other one has ended it is kept too, while there is room.
func (l *loop) inProgress(d *delivery, r result) {
	half := l.opts.Visibility / 2
	switch {
	case d.group != nil && l.stopping.begun && !l.keepAtStop(d) && !l.followerAtLastReceive(d.group):
		l.releaseGroup(d.group, max(r.asked, 0))
	case !l.stopping.cancelled && (d.group != nil || l.atLastReceive(d)):
		d.runs = 0 // not a failure: it takes no local retry
		delay := half
		if r.asked >= 0 {
			delay = r.asked
		}
		l.hold(d, max(delay, time.Second), r.ended)
	case d.group != nil:
		l.releaseGroup(d.group, max(r.asked, 0))
	case r.ended != nil && d.offered && !l.stopping.begun:
		if !l.canKeep(d) {
			l.makeReady(d) // others took the room: now its handler waits
			return
		}
		l.hold(d, max(r.asked, time.Second), r.ended)
	default:
		delay := maxVisibility
		if shift := d.lease.count - 1; shift < 20 {
			delay = min(delay, half<<shift)
		}
		l.counters.retried.Add(1)
		l.release(d, max(delay, r.asked))
	}
}

// atLastReceive says that SQS moves the message to the dead-letter queue when it is received once more.
func (l *loop) atLastReceive(d *delivery) bool {
	return l.queue.maxReceives > 0 && d.lease.count >= l.queue.maxReceives
}
