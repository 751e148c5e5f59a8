package sqsworker

import (
	"context"
	"errors"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/backoff"
)

// verdict is what a handler's return means for its message.
type verdict struct {
	kind   outcome
	err    error
	asked  time.Duration // by sqsonce.RetryAfter; negative: nothing was asked for
	delay  time.Duration // before others may receive the message
	ended  <-chan struct{}
	settle func(deadLettered bool)
	noSend bool // the dead-letter queue did not take the message
}

type outcome int

const (
	outcomeDone outcome = iota
	outcomeFailed
	outcomeInProgress
	outcomeReject
	outcomeLeaseLost
)

// judge runs beside the loop: Backoff is the user's, and what middleware left to settle may call its store.
func (w *Worker) judge(err error, count int, settle func(bool)) verdict {
	v := verdict{err: err, asked: -1, settle: settle}
	retry, reject := sqsonce.Verdict(err)
	switch {
	case err == nil:
		v.kind = outcomeDone
	case errors.Is(err, sqsonce.ErrLeaseLost):
		v.kind = outcomeLeaseLost // before the verdict: not even a Reject may move what another delivery may own
	case errors.Is(err, sqsonce.ErrInProgress):
		v.kind = outcomeInProgress
	case reject != nil:
		v.kind = outcomeReject
	default:
		v.kind = outcomeFailed
	}
	if retry != nil {
		v.asked = max(0, retry.After)
		v.delay, v.ended = v.asked, retry.Ended
	} else if err != nil {
		v.delay = w.backoff(count)
	}
	if v.kind != outcomeReject {
		settle(false)
	}
	return v
}

func (w *Worker) backoff(count int) (d time.Duration) {
	defer func() {
		if p := recover(); p != nil {
			w.log.Error("sqsworker: Options.Backoff panicked", keyError, p)
			d = backoff.Default(count)
		}
	}()
	return max(0, w.opts.Backoff(count))
}

func (l *loop) count(d *delivery, v verdict) {
	switch v.kind {
	case outcomeDone:
		l.counters.done.Add(1)
	case outcomeLeaseLost: // counted with the leases
	case outcomeInProgress:
		l.log.Debug("sqsworker: in progress elsewhere", keyMessage, d.m.ID, keyCount, d.lease.count)
	default:
		l.counters.failed.Add(1)
		l.log.Warn("sqsworker: handler failed", keyMessage, d.m.ID, keyGroup, d.m.Group, keyCount, d.lease.count,
			keyError, v.err)
	}
}

// failed lets the message be delivered again, here or anywhere.
func (l *loop) failed(d *delivery, v verdict) {
	ended := errors.Is(v.err, context.Canceled) || errors.Is(v.err, sqsonce.ErrShutdown)
	if l.stopping.cancelled && v.asked < 0 && ended {
		v.delay = 0 // it did not fail: we ended it
	}
	if d.group != nil {
		l.headFailed(d, v)
		return
	}
	l.counters.retried.Add(1)
	l.release(d, v.delay)
}

// inProgress brings a message back when another delivery of its event should have ended. SQS counts every receive, so a
// message that bounces while a long handler runs elsewhere could reach the dead-letter queue without having been run:
// where that is near, and on FIFO, it is kept here, under the heartbeat and without a slot. Where this process will know
// when the other one has ended it is kept too, while there is room.
func (l *loop) inProgress(d *delivery, v verdict) {
	half := l.opts.Visibility / 2
	switch {
	case d.group != nil && l.stopping.begun && !l.keepAtStop(d) && !l.followerAtLastReceive(d.group):
		l.releaseGroup(d.group, max(v.asked, 0))
	case !l.stopping.cancelled && (d.group != nil || l.atLastReceive(d)):
		d.runs = 0 // not a failure: it takes no local retry
		delay := half
		if v.asked >= 0 {
			delay = v.asked
		}
		l.hold(d, max(delay, time.Second), v.ended)
	case d.group != nil:
		l.releaseGroup(d.group, max(v.asked, 0))
	case v.ended != nil && d.offered && !l.stopping.begun:
		if !l.canKeep(d) {
			l.makeReady(d) // others took the room: now its handler waits
			return
		}
		l.hold(d, max(v.asked, time.Second), v.ended)
	default:
		delay := maxVisibility
		if shift := d.lease.count - 1; shift < 20 {
			delay = min(delay, half<<shift)
		}
		l.counters.retried.Add(1)
		l.release(d, max(delay, v.asked))
	}
}

// atLastReceive says that SQS moves the message to the dead-letter queue when it is received once more.
func (l *loop) atLastReceive(d *delivery) bool {
	return l.queue.maxReceives > 0 && d.lease.count >= l.queue.maxReceives
}
