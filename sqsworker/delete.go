package sqsworker

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

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
	var sent []*delivery
	for _, d := range batch {
		// With a handle whose time is over a delete proves nothing: a standard queue answers with success and may keep
		// the message.
		if !d.lease.live(now) {
			l.deletes.calls--
			l.lose(d, "visibility timeout passed before the delete", nil)
			continue
		}
		in.Entries = append(in.Entries, sqstypes.DeleteMessageBatchRequestEntry{
			Id: entryID(len(sent)), ReceiptHandle: aws.String(d.lease.handle),
		})
		sent = append(sent, d)
	}
	if len(sent) == 0 {
		return
	}
	l.counters.deletes.Add(1)
	l.call(func() func() {
		ctx, cancel := context.WithTimeout(l.callCtx, callTimeout)
		defer cancel()
		out, err := l.client.DeleteMessageBatch(ctx, in, once)
		var ok []*string
		var failed []sqstypes.BatchResultErrorEntry
		if err == nil {
			failed = out.Failed
			for i := range out.Successful {
				ok = append(ok, out.Successful[i].Id)
			}
		}
		results := entryResults(len(sent), ok, failed, err)
		return func() {
			if err != nil && isFatal(err) {
				l.fail(err)
			}
			l.deletes.calls -= len(sent)
			for i, d := range sent {
				l.deleted(d, *in.Entries[i].ReceiptHandle, results[i])
			}
		}
	})
}

func (l *loop) deleted(d *delivery, handle string, err error) {
	switch {
	case d.state != deleting:
		// The lease was lost while the call was under way: the message is remembered, whatever the answer says.
	case err == nil && handle == d.lease.handle:
		if !d.rejected {
			l.deletedForGood(d)
		}
		l.leave(d)
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
