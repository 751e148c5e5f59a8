package lambda

import (
	"context"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/deadletter"
	"github.com/sqsonce/sqsonce/internal/host"
)

// sendTimeout bounds a send to the dead-letter queue, with the SDK's own retries.
const sendTimeout = 10 * time.Second

// reject sends the message to the dead-letter queue and reports whether that is confirmed. Only then may Lambda delete
// it: a crash in between leaves it in both queues rather than in none.
//
// The send ends when the results are closed. SQS may have taken it by then all the same; the message is reported as
// failed and comes back.
func (v *invocation) reject(s *slot, m *sqsonce.Message, reason error) bool {
	if why := v.cannotReject(m.QueueARN); why != "" {
		v.noDLQ.Do(func() {
			v.log.ErrorContext(v.ctx, "lambda: message rejected, but "+why+": it is delivered again", keyMessage, m.ID)
		})
		return false
	}
	if !s.is(running) {
		return false // abandoned: its message may be another invocation's by now
	}
	ctx, cancel := context.WithTimeout(v.sends, sendTimeout)
	defer cancel()
	var dropped []string
	err := v.conns.Do(ctx, func(ctx context.Context) (err error) {
		dropped, err = deadletter.Send(ctx, v.opts.Client, v.opts.DeadLetterQueue, m, reason)
		return err
	})
	if len(dropped) > 0 {
		v.log.WarnContext(v.ctx, "lambda: no room for attributes of the dead-lettered message", keyMessage, m.ID, "attributes", dropped)
	}
	if err != nil {
		v.log.ErrorContext(v.ctx, "lambda: message not sent to the dead-letter queue", keyMessage, m.ID, keyError, err)
		return false
	}
	v.log.WarnContext(v.ctx, "lambda: message sent to the dead-letter queue", keyMessage, m.ID, keyGroup, m.Group, keyCount, m.ReceiveCount, keyError, reason)
	return true
}

func (v *invocation) cannotReject(source string) string {
	switch {
	case v.opts.Client == nil:
		return "there is no Options.Client"
	case v.opts.DeadLetterQueue == "":
		return "there is no Options.DeadLetterQueue"
	}
	// A function whose queue is the dead-letter queue, as when it was put behind the wrong mapping, would send each
	// rejected message to itself for ever.
	if q, err := host.ParseQueueARN(source); err != nil || strings.HasSuffix(v.opts.DeadLetterQueue, "/"+q.Account+"/"+q.Name) {
		return "the function's queue is Options.DeadLetterQueue itself"
	}
	return ""
}
