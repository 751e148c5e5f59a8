package lambda

import (
	"context"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/deadletter"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// sendTimeout bounds a send to the dead-letter queue, including the SDK's own retries.
const sendTimeout = 10 * time.Second

// mayBeDeadLettered reports whether a message whose handler returned err is, or may be, for the dead-letter queue. It asks
// nobody: the rest is for settle.
//
// Of a FIFO message that was not rejected only its own failure counts. A handler that was cancelled at the margin may have
// succeeded with more time.
func (v *invocation) mayBeDeadLettered(m *sqsonce.Message, err error) bool {
	outcome := host.OutcomeOf(err)
	if problem := v.deadLetterProblem(m.QueueARN); problem != "" {
		if outcome == host.Rejected {
			v.logNoDLQ.Do(func() {
				v.log.ErrorContext(v.ctx, "lambda: message rejected, but "+problem+": it is delivered again", keyMessage, m.ID)
			})
		}
		return false
	}
	return outcome == host.Rejected || outcome == host.Failed && v.ctx.Err() == nil && host.IsFIFO(m.QueueARN)
}

// isLastReceive reports whether SQS would move a message to the dead-letter queue at its next receive: without the reason, and
// with it the messages behind it in its group that share its receives, none of which was ever started.
func (v *invocation) isLastReceive(m *sqsonce.Message) bool {
	most := v.attributes(v.sendCtx).maxReceives
	return most > 0 && m.ReceiveCount >= most
}

// deadLetter sends a message to the dead-letter queue and reports whether SQS has confirmed it. Only then may
// Lambda delete the message: after a crash in between it is in both queues, and not in none.
//
// The send is cancelled when the results are closed. SQS may have accepted the message all the same; it is then reported as
// failed and delivered again. After a send that SQS did not answer in time the invocation sends no more: each would keep the
// answer waiting as long.
func (v *invocation) deadLetter(f failure) bool {
	if v.overdue.Load() || !f.slot.is(settling) {
		return false
	}
	m := &f.slot.message
	ctx, cancel := context.WithTimeout(v.sendCtx, sendTimeout)
	defer cancel()
	dropped, err := deadletter.Send(ctx, v.client, v.opts.DeadLetterQueue, m, settle.KeptKey(f.ctx), f.err)
	if len(dropped) > 0 {
		v.log.WarnContext(v.ctx, "lambda: attributes dropped: the dead-lettered message would exceed a limit with them", keyMessage, m.ID, "attributes", dropped)
	}
	if err != nil {
		if ctx.Err() != nil {
			v.overdue.Store(true)
		}
		v.log.ErrorContext(v.ctx, "lambda: message not sent to the dead-letter queue", keyMessage, m.ID, keyError, err)
		return false
	}
	attrs := append([]any{keyMessage, m.ID, keyGroup, m.Group, keyCount, m.ReceiveCount}, host.ErrorAttrs(f.err)...)
	v.log.WarnContext(v.ctx, "lambda: message sent to the dead-letter queue", attrs...)
	return true
}

// deadLetterProblem returns why a message of that queue cannot be sent to a dead-letter queue, or "".
func (v *invocation) deadLetterProblem(sourceARN string) string {
	switch {
	case v.opts.Client == nil:
		return "there is no Options.Client"
	case v.opts.DeadLetterQueue == "":
		return "there is no Options.DeadLetterQueue"
	}
	// If the function's queue is the dead-letter queue, for example because of a wrong mapping, it would receive each rejected
	// message again without end.
	if q, err := host.ParseQueueARN(sourceARN); err != nil || strings.HasSuffix(v.opts.DeadLetterQueue, "/"+q.Account+"/"+q.Name) {
		return "the function's queue is Options.DeadLetterQueue itself"
	}
	return ""
}
