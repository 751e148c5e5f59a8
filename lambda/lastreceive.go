package lambda

import (
	"context"
	"slices"
	"time"

	"github.com/sqsonce/sqsonce"
)

// The messages of a FIFO group share their receives. After the last one, by the redrive policy, SQS moves them all to the
// dead-letter queue, whether they ran or not. So a failing head leaves its group while the messages behind it have a receive
// left, and in their last one no message takes all the time.

// isSpent reports whether a FIFO message that failed is for the dead-letter queue: in its last receive, or in the one before
// that if messages behind it would have their last one with it. That goes for the head of an invocation only. A message behind
// it may have had its first run just now. With two receives a first failure would be the last, so there it is the last receive.
//
// Nothing is spent where the redrive policy is not known, and no message that SQS has moved here from another queue: its receive
// count goes on from there.
func (v *invocation) isSpent(chain []int) bool {
	head, most := chain[0], v.attributes(v.sendCtx).maxReceives
	switch received := receiveCount(&v.records[head]); {
	case most == 0 || received < most-1, v.records[head].Attributes["DeadLetterQueueSourceArn"] != "":
		return false
	case received == most-1:
		return v.slots[head].head && most > 2 && v.anyReceived(chain[1:], most-1)
	}
	return true
}

func (v *invocation) anyReceived(records []int, times int) bool {
	return slices.ContainsFunc(records, func(i int) bool { return receiveCount(&v.records[i]) >= times })
}

// isLastReceive reports whether SQS moves a message to the dead-letter queue unless it succeeds now.
func (v *invocation) isLastReceive(record int) bool {
	if v.opts.Client == nil {
		return false
	}
	most := v.attributes(v.sendCtx).maxReceives
	return most > 0 && receiveCount(&v.records[record]) >= most
}

// limit returns the context of the handler for the first record of a chain, and a function to call when it has returned. The
// context ends after half of the time that is left where messages behind the record are in their last receive.
//
// SQS is asked for the policy when that half has passed: quick handlers cost no call. What a send to the dead-letter queue
// needs is then known before the margin, which may leave little time.
func (v *invocation) limit(ctx context.Context, chain []int) (limited context.Context, returned func()) {
	behind := chain[1:]
	if len(behind) == 0 || v.opts.Client == nil || !v.times.limited() {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	half := time.AfterFunc(time.Until(v.times.at(handlersStop))/2, func() {
		a := v.attributes(v.sendCtx)
		switch {
		case a.maxReceives == 0:
		case v.anyReceived(behind, a.maxReceives):
			cancel(sqsonce.ErrShutdown)
		case v.anyReceived(behind, a.maxReceives-1) && v.opts.DeadLetterQueue == "":
			_, _ = v.queueURL(v.sendCtx, a.deadLetterARN) // kept; the send asks again, and logs an error
		}
	})
	return ctx, func() { half.Stop() }
}
