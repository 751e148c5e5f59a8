package lambda

import (
	"errors"
	"runtime/debug"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// handle runs the handler for a record and reports whether it succeeded in time.
func (v *invocation) handle(i int) (ok bool) {
	if !v.slots[i].change(unstarted, running) {
		return false // the results were closed meanwhile
	}
	m := &v.messages[i]
	convert(m, &v.records[i], v.killAt)
	ctx, settled := settle.New(v.ctx)
	host.Run(func() error { return v.handler(ctx, m) }, func(err error) { ok = v.conclude(i, err, settled) })
	return ok
}

// conclude turns what the handler left behind into its record's result. It reports whether that is a success and came
// in time.
func (v *invocation) conclude(i int, err error, settled func(deadLettered bool)) bool {
	s, m := &v.slots[i], &v.messages[i]
	sent := false
	if host.OutcomeOf(err) == host.Rejected {
		sent = v.reject(s, m, err)
	}
	v.settle(m, settled, sent)
	if err == nil || sent {
		if s.change(running, succeeded) {
			return true
		}
	} else {
		s.err, s.retry = err, v.retryAt(m, err)
		if s.change(running, failed) {
			v.logFailure(m, err)
			return false
		}
	}
	v.ghosts.Add(-1)
	v.log.WarnContext(v.ctx, "lambda: abandoned handler returned after the answer", keyMessage, m.ID, keyGroup, m.Group, keyError, err)
	return false
}

// settle runs what middleware left until the message's fate is decided. A panic there decides nothing and must not end
// the process.
func (v *invocation) settle(m *sqsonce.Message, settled func(bool), deadLettered bool) {
	defer func() {
		if p := recover(); p != nil {
			v.log.ErrorContext(v.ctx, "lambda: settling panicked", keyMessage, m.ID, keyError, p, keyStack, string(debug.Stack()))
		}
	}()
	settled(deadLettered)
}

// maxDelay keeps a delay inside SQS's 12 h after the receive, which the event does not tell: a batching window is at
// most 5 min, an invocation 15 min.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html
const maxDelay = 12*time.Hour - 30*time.Minute

// retryAt returns when a failed message should be delivered again; zero where its visibility timeout decides.
func (v *invocation) retryAt(m *sqsonce.Message, err error) time.Time {
	if v.opts.Client == nil || errors.Is(err, sqsonce.ErrLeaseLost) {
		return time.Time{} // a message whose lease was lost is not ours to touch
	}
	retry, _ := host.Asked(err)
	var d time.Duration
	switch {
	case errors.Is(err, sqsonce.ErrInProgress) && retry == nil:
		return time.Time{}
	case errors.Is(err, sqsonce.ErrInProgress):
		// SQS counts each receive. A holder that goes on renewing must not drive its duplicate to the dead-letter queue.
		d = host.Double(retry.After, maxDelay, m.ReceiveCount)
	case retry != nil:
		d = retry.After
	default:
		d = v.backoff(m.ReceiveCount)
	}
	return time.Now().Add(d)
}

func (v *invocation) backoff(receiveCount int) (d time.Duration) {
	defer func() {
		if p := recover(); p != nil {
			v.log.ErrorContext(v.ctx, "lambda: Options.Backoff panicked", keyError, p)
			d = host.DefaultBackoff(receiveCount)
		}
	}()
	return v.opts.Backoff(receiveCount)
}

func (v *invocation) logFailure(m *sqsonce.Message, err error) {
	attrs := []any{keyMessage, m.ID, keyGroup, m.Group, keyCount, m.ReceiveCount, keyError, err}
	if errors.Is(err, sqsonce.ErrInProgress) {
		v.log.DebugContext(v.ctx, "lambda: in progress elsewhere", attrs...)
		return
	}
	if p, ok := errors.AsType[*sqsonce.PanicError](err); ok {
		attrs = append(attrs, keyStack, string(p.Stack))
	}
	v.log.WarnContext(v.ctx, "lambda: handler failed", attrs...)
}
