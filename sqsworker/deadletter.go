package sqsworker

import (
	"context"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/deadletter"
)

// sendTimeout bounds a send to the dead-letter queue, with the SDK's own retries.
const sendTimeout = 10 * time.Second

// reject sends the message to the dead-letter queue and deletes it when that is confirmed, in this order: a crash in
// between leaves it in both queues rather than in none.
func (l *loop) reject(d *delivery, r result) {
	if !l.queue.hasDLQ() {
		l.noDLQ.Do(func() {
			l.log.Error("sqsworker: message rejected, but no dead-letter queue is known: it is delivered again",
				keyMessage, d.m.ID, keyError, errNoDLQ)
		})
		l.notSent(d, r)
		return
	}
	if !d.lease.live(l.now()) {
		l.lose(d, "visibility timeout passed before the dead-letter queue", nil)
		l.settle(r)
		return
	}
	l.set(d, rejecting)
	l.call(func() event {
		ctx, cancel := context.WithTimeout(l.callCtx, sendTimeout)
		defer cancel()
		err := l.sendToDeadLetter(ctx, d.m, r.err)
		r.settle(err == nil)
		return deadLettered{d, r, err}
	})
}

// deadLettered is the answer to a send to the dead-letter queue.
type deadLettered struct {
	d      *delivery
	result result // of the handler
	err    error  // of the send
}

func (l *loop) deadLettered(e deadLettered) {
	d := e.d
	if e.err != nil {
		l.log.Error("sqsworker: message not sent to the dead-letter queue", keyMessage, d.m.ID, keyError, e.err)
	} else {
		l.counters.rejected.Add(1)
	}
	switch {
	case d.lease.lost:
		if e.err == nil {
			l.remember(d)
		}
		l.leave(d)
	case e.err != nil:
		l.notSent(d, e.result)
	default:
		d.rejected = true
		l.delete(d)
	}
}

// notSent treats a rejected message as any other that failed.
func (l *loop) notSent(d *delivery, r result) {
	r.noSend = true
	l.settle(r)
	l.failed(d, r)
}

// settle tells middleware that the message is not in the dead-letter queue. It may call a store, so not on the loop; a
// second time does nothing.
func (l *loop) settle(r result) {
	l.call(func() event {
		r.settle(false)
		return nil
	})
}

// sendToDeadLetter sends a copy of the message with the reason.
func (l *loop) sendToDeadLetter(ctx context.Context, m *sqsonce.Message, reason error) error {
	dropped, err := deadletter.Send(ctx, l.client, l.queue.deadLetter, m, reason)
	for _, name := range dropped {
		l.log.Warn("sqsworker: no room for an attribute of the dead-lettered message", keyMessage, m.ID, keyAttribute, name)
	}
	return err
}
