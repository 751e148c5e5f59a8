package sqsworker

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/internal/host"
)

// leastDeleters is how many deletes may be under way at once with few receivers: so many may hang before others wait. With
// many there are as many deletes as receives: each takes ten messages and one way to SQS and back. More would only open
// more connections, and wait there.
const leastDeleters = 16

// delete removes a message that is done. It stays under the heartbeat until SQS has confirmed that.
func (l *loop) delete(d *delivery) {
	l.set(d, deleting)
	d.tries = 0
	l.deletes.put(d)
	if d.group != nil && len(d.group.queue) > 0 {
		l.deletes.rush = true
	}
}

// sendDeletes deletes up to ten messages in one call, on a context that a stop does not end: a delete that died with its
// worker's context would have the message handled twice.
func (l *loop) sendDeletes(batch []*delivery) {
	now := l.now()
	in := &sqs.DeleteMessageBatchInput{QueueUrl: &l.queueURL}
	in.Entries = make([]sqstypes.DeleteMessageBatchRequestEntry, 0, len(batch))
	handles := make([]string, 0, len(batch)) // copies: a message that is received again gets another one
	sent := batch[:0]
	for _, d := range batch {
		// With a handle whose time is over a delete proves nothing: a standard queue answers with success and may keep
		// the message.
		if !d.lease.live(now) {
			l.deletes.calls--
			l.lose(d, "visibility timeout passed before the delete", nil)
			continue
		}
		handles = append(handles, d.lease.handle)
		in.Entries = append(in.Entries, sqstypes.DeleteMessageBatchRequestEntry{
			Id: host.EntryID(len(sent)), ReceiptHandle: &handles[len(sent)],
		})
		d.sent = true
		sent = append(sent, d)
	}
	if len(sent) == 0 {
		return
	}
	l.counters.deletes.Add(1)
	l.deletes.open++
	l.call(func() event {
		ctx, cancel := context.WithTimeout(l.callCtx, callTimeout)
		defer cancel()
		out, err := l.client.DeleteMessageBatch(ctx, in, once)
		results := newResults(len(sent), err)
		if err == nil {
			for i := range out.Successful {
				results.succeeded(out.Successful[i].Id)
			}
			results.failed(out.Failed)
		}
		return deletesAnswered{sent, handles, results, err}
	})
}

// deletesAnswered is the answer to one call of DeleteMessageBatch.
type deletesAnswered struct {
	batch   []*delivery
	handles []string // as they were sent
	results results
	err     error // of the whole call
}

func (l *loop) deletesAnswered(e deletesAnswered) {
	if e.err != nil && isFatal(e.err) {
		l.fail(e.err)
	}
	l.deletes.open--
	l.deletes.calls -= len(e.batch)
	for i, d := range e.batch {
		l.deleted(d, e.handles[i], e.results[i])
	}
}

func (l *loop) deleted(d *delivery, handle string, err error) {
	d.sent = false
	switch {
	case d.state != deleting:
		// The lease was lost while the call was under way: the message is remembered, whatever the answer says.
	case err == nil && handle == d.lease.handle:
		if !d.rejected {
			l.deletedForGood(d)
		}
		l.leave(d)
	case d.lease.refused:
		l.lose(d, "receipt handle refused", err)
	case err == nil || handle != d.lease.handle:
		// The message was received again while the call was under way; the old handle's answer proves nothing.
		l.again(&l.deletes, d, deleting)
	case isHandleDead(err):
		l.lose(d, "receipt handle refused", err)
	default:
		if d.tries == 0 {
			l.log.Warn("sqsworker: delete failed", keyMessage, d.m.ID, keyError, err)
		}
		l.again(&l.deletes, d, deleting)
	}
}
