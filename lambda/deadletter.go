package lambda

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/deadletter"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/sdkhttp"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// sendTimeout is the most time of a send to the dead-letter queue: see timeToSend.
const sendTimeout = 10 * time.Second

// mayBeDeadLettered reports whether a message that failed is, or may be, for the dead-letter queue. It asks nobody: the rest is
// for settle.
//
// Of a FIFO message that was not rejected only its own failure counts, also one that was cut off. A handler that middleware
// did not call has not failed. One that is unavailable may keep those behind it from their last receive, unless all are.
func (v *invocation) mayBeDeadLettered(f failure) bool {
	if v.opts.Client == nil {
		return false
	}
	switch fifo := host.IsFIFO(f.message.QueueARN); sqsonce.OutcomeOf(f.err).Kind {
	case sqsonce.OutcomeRejected:
		return true
	case sqsonce.OutcomeFailed:
		return fifo && !settle.IsNotRun(f.err)
	case sqsonce.OutcomeUnavailable:
		return len(f.chain) > 1 && v.isOwn(f)
	}
	return false
}

// deadLetter sends a message to the dead-letter queue and reports whether SQS has confirmed it. Only then may
// Lambda delete the message: after a crash in between it is in both queues, and not in none.
//
// The send is cancelled when the results are closed. SQS may have accepted the message all the same; it is then reported as
// failed and delivered again. After a send that SQS did not answer within sendTimeout the invocation sends no more: each would keep the
// answer waiting as long. A send that had less time, by timeToSend, does not count.
func (v *invocation) deadLetter(f failure) bool {
	if v.overdue.Load() || !f.slot.is(settling) && !f.abandoned && !f.unstarted {
		return false
	}
	url := v.deadLetterURL(f)
	if url == "" {
		return false
	}
	sent, refused := v.sendTo(f, url)
	if !refused || v.opts.DeadLetterQueue != "" {
		return sent
	}
	v.contradicted()
	if another := v.deadLetterURL(f); another != "" && another != url {
		sent, _ = v.sendTo(f, another)
	}
	return sent
}

// sendTo sends a message to the dead-letter queue with that URL. refused says that SQS has answered that it does not take it.
func (v *invocation) sendTo(f failure, url string) (sent, refused bool) {
	m := f.message
	most := v.timeToSend(f)
	ctx, cancel := context.WithTimeout(v.sendCtx, most)
	defer cancel()
	dropped, err := deadletter.Send(ctx, v.client, url, m, settle.KeptKey(f.ctx), settle.RecordKey(f.ctx), v.reason(f))
	if len(dropped) > 0 {
		v.log.WarnContext(v.contextOf(f.slot), "lambda: attributes dropped: the dead-lettered message would exceed a limit with them", keyMessage, m.ID, "attributes", dropped)
	}
	if err != nil {
		if ctx.Err() == context.DeadlineExceeded && most == sendTimeout {
			v.overdue.Store(true)
		}
		v.log.ErrorContext(v.contextOf(f.slot), "lambda: message not sent to the dead-letter queue", keyMessage, m.ID, keyError, err)
		return false, sdkhttp.Answered(err)
	}
	v.log.WarnContext(v.contextOf(f.slot), "lambda: message sent to the dead-letter queue", f.about()...)
	return true, false
}

// reason is what is written of a failure into the dead-lettered message.
func (v *invocation) reason(f failure) error {
	err := host.Described(v.opts.ErrorText, f.err)
	if f.cut && sqsonce.OutcomeOf(f.err).Kind == sqsonce.OutcomeFailed {
		return fmt.Errorf("lambda: the handler's time ended: %w", err)
	}
	return err
}

// deadLetterURL returns the URL of the dead-letter queue: that of the options, else that of the queue's redrive policy. It is
// "" where there is none, or none that a message can be sent to: the log says why.
func (v *invocation) deadLetterURL(f failure) string {
	source, err := host.ParseQueueARN(f.message.QueueARN)
	if err != nil {
		return "" // check has refused the event
	}
	url := v.opts.DeadLetterQueue
	if url == "" {
		arn := v.attributes(v.sendCtx).deadLetterARN
		if arn == "" {
			v.logNoDeadLetterQueue(f, "set Options.DeadLetterQueue, or give the queue a redrive policy that the function can read")
			return ""
		}
		if url, err = v.queueURL(v.sendCtx, arn); err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				v.overdue.Store(true)
			}
			v.log.ErrorContext(v.contextOf(f.slot), "lambda: message not sent to the dead-letter queue: its URL is not known", keyMessage, f.message.ID, keyError, err)
			return ""
		}
	}
	// If the function's queue is the dead-letter queue, for example because of a wrong mapping, it would receive each rejected
	// message again without end.
	if strings.HasSuffix(url, "/"+source.Account+"/"+source.Name) {
		v.logNoDeadLetterQueue(f, "the function's queue is Options.DeadLetterQueue itself")
		return ""
	}
	return url
}

func (v *invocation) logNoDeadLetterQueue(f failure, reason string) {
	if f.expires { // there is a line of its own
		return
	}
	v.logNoDLQ.Do(func() {
		v.log.ErrorContext(v.contextOf(f.slot), "lambda: message rejected, but its dead-letter queue is unknown: SQS delivers the message again", keyMessage, f.message.ID, "reason", reason)
	})
}

// logWithoutClient logs the first error for which the host would need a client.
func (v *invocation) logWithoutClient(s *slot, err error) {
	if v.opts.Client != nil {
		return
	}
	reason := ""
	switch o := sqsonce.OutcomeOf(err); {
	case o.Kind == sqsonce.OutcomeRejected:
		reason = "it is rejected"
	case v.noClient:
		return
	case o.Kind == sqsonce.OutcomeInProgress:
		reason = "its event is in progress elsewhere"
	case o.Retry, o.Postpone:
		reason = "it is to be delivered again after a delay"
	default:
		return
	}
	v.logNoClient.Do(func() {
		v.log.ErrorContext(v.contextOf(s), "lambda: there is no Options.Client: the message is delivered again when its visibility timeout ends, and only the redrive policy moves it",
			keyMessage, s.message.ID, "reason", reason)
	})
}
