package lambda

import (
	"context"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/deadletter"
	"github.com/sqsonce/sqsonce/internal/host"
)

// sendTimeout bounds a send to the dead-letter queue, including the SDK's own retries.
const sendTimeout = 10 * time.Second

// failedLastReceive reports whether a FIFO message has failed at its last receive and can be sent to the dead-letter queue by
// the host. SQS would move it at its next receive, without the reason, and with it the messages behind it in its group that
// share its receives, none of which was ever started.
//
// Only the message's own failure counts. A handler that was cancelled at the margin may have succeeded with more time.
func (v *invocation) failedLastReceive(m *sqsonce.Message, err error) bool {
	if host.OutcomeOf(err) != host.Failed || v.ctx.Err() != nil || !host.IsFIFO(m.QueueARN) || v.deadLetterProblem(m.QueueARN) != "" {
		return false
	}
	most := v.attributes().maxReceives
	return most > 0 && m.ReceiveCount >= most
}

// deadLetter sends a message to the dead-letter queue and reports whether SQS has confirmed it. Only then may
// Lambda delete the message: after a crash in between it is in both queues, and not in none.
//
// The send is cancelled when the results are closed. SQS may have accepted the message all the same; it is then reported as
// failed and delivered again.
func (v *invocation) deadLetter(s *slot, m *sqsonce.Message, key string, reason error) bool {
	if problem := v.deadLetterProblem(m.QueueARN); problem != "" {
		v.logNoDLQ.Do(func() {
			v.log.ErrorContext(v.ctx, "lambda: message rejected, but "+problem+": it is delivered again", keyMessage, m.ID)
		})
		return false
	}
	if !s.is(running) {
		return false // abandoned: another invocation may have received the message by now
	}
	ctx, cancel := context.WithTimeout(v.sendCtx, sendTimeout)
	defer cancel()
	dropped, err := deadletter.Send(ctx, v.client, v.opts.DeadLetterQueue, m, key, reason)
	if len(dropped) > 0 {
		v.log.WarnContext(v.ctx, "lambda: attributes dropped: the dead-lettered message would exceed a limit with them", keyMessage, m.ID, "attributes", dropped)
	}
	if err != nil {
		v.log.ErrorContext(v.ctx, "lambda: message not sent to the dead-letter queue", keyMessage, m.ID, keyError, err)
		return false
	}
	attrs := append([]any{keyMessage, m.ID, keyGroup, m.Group, keyCount, m.ReceiveCount}, host.ErrorAttrs(reason)...)
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
