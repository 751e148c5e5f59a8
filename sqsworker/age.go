package sqsworker

import (
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// What was read of the queue is believed for a while: a redrive policy is attached, changed or removed, and a dead-letter queue is
// deleted, replaced or made again, while workers run.

// reads is the reads of the queue's attributes, its policy and its dead-letter queue, after the start.
type reads struct {
	next         *timer
	began        time.Time // the last one
	underWay     bool
	contradicted bool // since the last one began
	waitLogged   bool // that a group waits for the dead-letter queue
	deniedLogged bool
	absent       time.Time // when SQS first answered that the queue does not exist, and not otherwise since; zero: it exists
}

// absentFor is how long SQS must answer that the queue does not exist: it may say so for a moment of one that does.
const absentFor = 5 * time.Second

// absent says, of the answer to a call that began at start, that the queue does not exist by now two answers, absentFor apart.
func (l *loop) absent(err error, start time.Time) bool {
	switch {
	case err == nil && start.After(l.reads.absent):
		l.reads.absent = time.Time{}
	case !isMissing(err):
	case l.reads.absent.IsZero():
		l.reads.absent = l.now()
	default:
		return elapsed(l.now(), l.reads.absent) >= absentFor
	}
	return false
}

// contradicted has the queue read at once, but not sooner than askAgainAfter after the last time.
func (l *loop) contradicted() {
	l.reads.contradicted = true
	l.readAgainIn(l.nextRead(nil))
}

// nextRead is in how long the queue is read again, after a read that ended with err.
func (l *loop) nextRead(err error) time.Duration {
	after := host.Believed
	switch {
	case !l.reads.absent.IsZero():
		after = absentFor
	case l.reads.contradicted, len(l.awaiting()) > 0:
		after = askAgainAfter
	case l.queue.arn == "", l.queue.guessed && !l.reads.deniedLogged, err != nil && !isAccessDenied(err):
		after = readAgainAfter
	}
	return max(0, after-elapsed(l.now(), l.reads.began))
}

// readAgainIn has the queue read after d at the latest.
func (l *loop) readAgainIn(d time.Duration) {
	at := l.now().Add(d)
	if l.reads.underWay || l.stopping.begun || l.reads.next.pending() && !l.reads.next.at.After(at) {
		return
	}
	l.schedule.cancel(l.reads.next)
	l.reads.next = l.schedule.add(at, l.readAgain)
}

func (l *loop) readAgain() {
	if l.stopping.begun {
		return
	}
	l.reads.underWay, l.reads.contradicted, l.reads.began = true, false, l.now()
	known := l.queue
	l.call(func() event {
		q, err := l.readQueueAgain(l.callCtx, known)
		return queueRead{q, err}
	})
}

// queueRead is the answer to readAgain.
type queueRead struct {
	queue queue
	err   error
}

func (l *loop) queueRead(e queueRead) {
	l.reads.underWay = false
	// An answer to a read refutes none to a receive, which goes on to fail. A worker that is paused or full, or whose store is down,
	// does not receive.
	idle := l.polling.active == 0 && l.toReceive() == 0
	if (e.err != nil || idle) && l.absent(e.err, l.reads.began) {
		l.stopBecause(e.err)
		return
	}
	switch {
	case e.err == nil:
		l.reads.deniedLogged = false
		l.adopt(e.queue)
	case isAccessDenied(e.err) && l.queue.arn != "":
		if !l.reads.deniedLogged {
			l.reads.deniedLogged = true
			l.warnNotReadable(e.err)
		}
	default:
		l.log.Warn("sqsworker: queue attributes not read: the worker reads them again", keyError, e.err, keyDelay, readAgainAfter)
	}
	l.reviewAwaiting(e.err)
	l.readAgainIn(l.nextRead(e.err))
}

// adopt makes what was read that by which the worker goes.
func (l *loop) adopt(q queue) {
	if q.deadLetter != l.queue.deadLetter {
		l.deadLetters = deadLetters{}
	}
	if q.longestReturn != l.queue.longestReturn {
		l.handlerCtx = settle.WithLongestReturn(l.handlerCtx, q.longestReturn)
	}
	if !q.same(&l.queue) {
		l.log.Info("sqsworker: queue attributes read", "dlq", q.deadLetter, "max_receive_count", q.maxReceives)
	}
	known := l.queue.arn != ""
	if l.queue, l.maxAttempts = q, q.maxAttempts(l.opts.MaxAttempts); !known {
		l.wake() // what waits for the queue's ARN
	}
	for _, d := range l.orphans { // what waits behind them may have more receives
		l.giveBackBehind(d)
	}
}
