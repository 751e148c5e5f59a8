package sqsworker

import (
	"strings"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/internal/host"
)

// minDeletes is how many deletes may be under way at once with few receivers. So many may hang before others wait. With more
// receivers there are as many deletes, because each carries ten messages in one round trip, as a receive does. More of them
// would open more connections, and wait there. Slow ones need more, see batchQueue.limit.
const minDeletes = 16

// delete deletes a message that is done. The heartbeat extends it until SQS has confirmed that.
func (l *loop) delete(d *delivery) {
	l.setState(d, deleting)
	d.failures = 0
	l.deletes.add(d)
	if d.group != nil && len(d.group.followers) > 0 {
		l.deletes.urgent = true
	}
}

// deletion is one entry of a call.
type deletion struct {
	d      *delivery
	handle string // the delivery may have another one when the answer comes
}

// deleteCall is one call of DeleteMessageBatch.
type deleteCall struct {
	deletions []deletion
	start     time.Time
	overdue   *timer // until the answer
	late      bool   // the answer is overdue: the messages are deleted again meanwhile
}

// deletesAnswered is the answer to one call.
type deletesAnswered struct {
	*deleteCall
	results results
	err     error     // of the whole call
	date    time.Time // of the answer, by SQS's clock; zero: it has none
}

// sendDeletes deletes up to ten messages in one call. Its context is not cancelled by a stop: if it were, the messages
// would be handled twice.
func (l *loop) sendDeletes(batch []*delivery) {
	c := &deleteCall{start: l.now(), deletions: make([]deletion, 0, len(batch))}
	in := &sqs.DeleteMessageBatchInput{QueueUrl: &l.queueURL, Entries: make([]sqstypes.DeleteMessageBatchRequestEntry, 0, len(batch))}
	for _, d := range batch {
		// After the visibility timeout a delete proves nothing: a standard queue answers with success and may keep the
		// message.
		if !d.lease.live(c.start) {
			l.deletes.inCalls--
			l.loseLease(d, "visibility timeout passed before the delete", nil)
			continue
		}
		i := len(c.deletions)
		c.deletions = append(c.deletions, deletion{d, d.lease.handle})
		in.Entries = append(in.Entries, sqstypes.DeleteMessageBatchRequestEntry{Id: host.EntryID(i), ReceiptHandle: &c.deletions[i].handle})
		d.inDelete++
	}
	if len(c.deletions) == 0 {
		return
	}
	l.counters.deletes.Add(1)
	l.deletes.calls++
	c.overdue = l.after(max(callTimeout, 2*l.deletes.took), func() { l.deletesOverdue(c) })
	l.call(func() event {
		ctx, done := l.hooks.begin(l.deleteEnds.After(l.callCtx, maxPatience), Call{
			QueueURL: l.queueURL, Purpose: "delete", Entries: len(c.deletions),
			Messages: messagesOf(&l.hooks, c.deletions, func(del deletion) *delivery { return del.d }),
		})
		out, err := l.client.DeleteMessageBatch(ctx, in, singleAttempt)
		results := newResults(len(c.deletions), err)
		var date time.Time
		if err == nil {
			date, _ = awsmiddleware.GetServerTime(out.ResultMetadata) // else zero
			for _, e := range out.Successful {
				results.succeeded(e.Id)
			}
			results.failed(out.Failed, func(i int) string { return c.deletions[i].handle })
		}
		done(results.callResult(err))
		return deletesAnswered{c, results, err, date}
	})
}

// deletesOverdue has the messages of a call deleted by another one. The answer still counts if it comes.
func (l *loop) deletesOverdue(c *deleteCall) {
	c.late = true
	l.deletesEnded(c)
	l.slowDown(&l.deletes, c.start)
	for _, del := range c.deletions {
		if del.d.state == deleting {
			l.retry(&l.deletes, del.d)
		}
	}
}

func (l *loop) deletesEnded(c *deleteCall) {
	l.deletes.calls--
	l.deletes.inCalls -= len(c.deletions)
}

func (l *loop) deletesAnswered(e deletesAnswered) {
	now := l.now()
	l.clock.learn(e.start, now, e.date)
	l.schedule.cancel(e.overdue)
	if !e.late {
		l.deletesEnded(e.deleteCall)
	}
	l.changeFailed(e.err, e.start, &l.signatures.deletes)
	if e.err == nil {
		l.deletes.answered(now.Sub(e.start))
		l.deletes.slow.succeed()
	} else {
		l.slowDown(&l.deletes, e.start)
	}
	for i, del := range e.deletions {
		l.deleteAnswered(del.d, del.handle, e.results[i], e.late)
	}
}

// deleteAnswered is the answer for one message. If it is late, the message waits for another delete already, or is in it.
func (l *loop) deleteAnswered(d *delivery, handle string, err error, late bool) {
	d.inDelete--
	d.unsure = d.unsure || err != nil && isOutcomeUnknown(err)
	switch {
	case d.state != deleting:
		// The lease was lost while the call was under way: the message is in finished already, as undeleted. Or another
		// delete was answered first.
	case err == nil && handle == d.lease.handle:
		l.noteProgress()
		if !d.rejected {
			l.finishDeleted(d)
		}
		l.remove(d)
	case handle == d.lease.handle && (isHandleDead(err) || d.lease.refused && !d.mayBeDeleted()):
		l.loseLease(d, "receipt handle refused", err)
	case late:
	default:
		// If the handles differ, the message was received again while the call was under way. The answer for the old one
		// proves nothing.
		if err != nil && d.failures == 0 {
			l.log.WarnContext(d.context(), "sqsworker: delete failed", d.about(keyError, err)...)
		}
		l.retry(&l.deletes, d)
	}
}

// mayBeDeleted says that SQS may have deleted the message, without an answer until now.
func (d *delivery) mayBeDeleted() bool { return d.inDelete > 0 || d.unsure }

// finished is a set of the IDs of the last messages that are done. SQS may deliver such a message again, because its delete
// was not confirmed, or because one of its servers missed the receive or the delete. It is then deleted without a run. A
// message that is sent again, or redriven from a dead-letter queue, has a new ID.
//
// 10,000 IDs of 36 bytes need about 1.1 MB: the copies of the IDs 0.5 MB, the map 0.4 MB, the ring 0.2 MB. The records of
// package dedup cover older messages, and other processes.
type finished struct {
	undeleted map[string]bool // by ID; false: the delete is confirmed
	ring      []string        // the IDs in the order they were added; "": free
	next      int             // in ring
}

const maxFinished = 10_000

func (f *finished) has(id string) bool { _, ok := f.undeleted[id]; return ok }

// add returns whether the message was in the set as undeleted before.
func (f *finished) add(id string, undeleted bool) (before bool) {
	if before, ok := f.undeleted[id]; ok {
		f.undeleted[id] = undeleted
		return before
	}
	if f.undeleted == nil {
		f.undeleted, f.ring = map[string]bool{}, make([]string, maxFinished)
	}
	delete(f.undeleted, f.ring[f.next])
	id = strings.Clone(id) // it may be a part of a larger string, which would be kept too
	f.undeleted[id], f.ring[f.next] = undeleted, id
	f.next = (f.next + 1) % len(f.ring)
	return false
}

// finishUndeleted adds a message that is done and cannot be deleted with the handle that is known.
func (l *loop) finishUndeleted(d *delivery) {
	if !l.finished.add(d.m.ID, true) {
		l.counters.undeleted.Add(1)
	}
}

// finishDeleted adds a message whose delete is confirmed.
func (l *loop) finishDeleted(d *delivery) {
	if l.finished.add(d.m.ID, false) {
		l.counters.undeleted.Add(-1)
	}
}
