package lambda

import (
	"context"
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/question"
)

// askTimeout bounds a question, unless the end of the handlers bounds it more.
const askTimeout = 10 * time.Second

// askWhetherDown asks the question of an error with which a handler's message was unavailable, once in an invocation. Where it fails no
// further message is started: it would only lose its time. Where it passes, or there is none, the others go on. Protocol, section 17.
func (v *invocation) askWhetherDown(err error) {
	q, asks := question.Of(err)
	if !asks {
		return
	}
	if _, asked := v.asked.LoadOrStore(q.ID, true); asked {
		return
	}
	ctx, cancel := context.WithTimeout(v.ctx, askTimeout)
	defer cancel()
	switch answer := host.Contain(func() error { return q.Ask(ctx) }); {
	case answer == nil, v.ctx.Err() != nil:
	case v.down.CompareAndSwap(false, true):
		v.log.WarnContext(v.ctx, "lambda: the store, or what the handlers need, is down: no further message of the batch is started", keyError, answer)
	}
}

// accusesNobody reports whether an unavailable message is the only one that is known to be: its question passed.
func (v *invocation) accusesNobody(err error) bool {
	_, asks := question.Of(err)
	return asks && !v.down.Load()
}

// delayUnavailable is how long a message is hidden that is unavailable, or was not started because of an outage.
func delayUnavailable(receiveCount int) time.Duration {
	return host.Double(firstUnavailable, maxUnavailable, 2*receiveCount-1)
}
