package lambda

import (
	"context"
	"time"
)

const (
	leastMargin = 500 * time.Millisecond
	mostMargin  = 5 * time.Second
)

// When the parts of an invocation end, in sixteenths of the margin before its deadline: the table of doc.go.
const (
	handlersStop   = 16 // the handlers' contexts end, and no more messages are started
	handlersClosed = 8  // handlers that have not returned are abandoned
	sendsClosed    = 6  // so are sends to the dead-letter queue
	delaysEnd      = 4  // visibility changes end
	hooksEnd       = 3  // the context of Finish hooks ends
	answerEnd      = 2  // the answer waits no longer for them
)

// times are the instants of an invocation. Without a deadline only the lengths from one instant to the next are known.
type times struct {
	margin   time.Duration
	deadline time.Time // zero: there is none
}

func newTimes(ctx context.Context, option time.Duration, now time.Time) times {
	deadline, limited := ctx.Deadline()
	if !limited {
		return times{margin: leastMargin}
	}
	return times{margin(option, deadline.Sub(now)), deadline}
}

// margin is the time between the end of the handlers' contexts and the deadline. It grows with the time that remains, since
// a long timeout means a large batch. It has a lower bound, since a small function has only a fraction of a CPU.
func margin(option, remaining time.Duration) time.Duration {
	if option > 0 {
		return option
	}
	return min(max(remaining/20, leastMargin), mostMargin)
}

func (t times) limited() bool { return !t.deadline.IsZero() }

// at is one of the instants. There must be a deadline.
func (t times) at(sixteenths time.Duration) time.Time {
	return t.deadline.Add(-t.margin * sixteenths / 16)
}

// between is how long it is from one instant to a later one.
func (t times) between(from, to time.Duration) time.Duration { return t.margin * (from - to) / 16 }

// until returns ctx with the end of one of the instants, where there is a deadline.
func (t times) until(ctx context.Context, sixteenths time.Duration) (context.Context, context.CancelFunc) {
	if !t.limited() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, t.at(sixteenths))
}
