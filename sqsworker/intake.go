package sqsworker

import (
	"context"
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
)

// Options.Intake says how many messages may be received. The worker asks for what a receive needs, off the loop, and receives no more.
// Protocol, section 21.

const (
	permitsLast = time.Second // a receive that brings fewer messages leaves the rest to the next ones for so long
	intakeAgain = time.Second // after a failure
	// leastIntake and mostIntake bound when Options.Intake is asked again that has granted nothing.
	leastIntake, mostIntake = 10 * time.Millisecond, time.Minute
)

// permits are what Options.Intake has granted.
type permits struct {
	n      int
	until  time.Time // they are left
	asking bool
	at     time.Time // it is asked again then
	idle   bool      // the last receive brought nothing
	failed time.Time // when a failure was logged last
}

// permitted is how many of n messages a receive may ask for. With 0 the worker asks for more.
func (l *loop) permitted(n int) int {
	p := &l.permits
	if l.opts.Intake == nil || n == 0 {
		return n
	}
	now := l.now()
	if p.idle {
		n = 1
	}
	switch {
	case p.n > 0 && now.Before(p.until):
		return min(n, p.n)
	case !p.asking && !now.Before(p.at):
		p.asking = true
		l.calls.Go(func() {
			ctx, cancel := context.WithTimeout(l.callCtx, callTimeout)
			defer cancel()
			answer := intakeAnswered{again: intakeAgain}
			answer.err = host.Contain(func() error {
				granted, again := l.opts.Intake(ctx, n)
				answer.granted, answer.again = max(0, min(granted, n)), again
				return nil
			})
			l.post(answer)
		})
	}
	return 0
}

// intakeAnswered is what Options.Intake has answered.
type intakeAnswered struct {
	granted int
	again   time.Duration
	err     error // it panicked
}

func (l *loop) intakeAnswered(e intakeAnswered) {
	p := &l.permits
	p.asking = false
	if e.err != nil && isDue(&p.failed, l.now(), time.Minute) {
		l.log.Error("sqsworker: Options.Intake failed: nothing is received meanwhile", host.ErrorAttrs(e.err)...)
	}
	if p.n, p.until = e.granted, l.now().Add(permitsLast); e.granted == 0 {
		again := min(max(e.again, leastIntake), mostIntake)
		p.at = l.now().Add(again)
		l.wakeAfter(again)
	}
}

// permitsUsed takes what a receive asks for.
func (l *loop) permitsUsed(n int) {
	if l.opts.Intake != nil {
		l.permits.n -= n
	}
}

// permitsLeft takes back what a receive has left.
func (l *loop) permitsLeft(asked, got int) {
	p := &l.permits
	if l.opts.Intake == nil {
		return
	}
	if !l.now().Before(p.until) {
		p.n = 0
	}
	p.n += asked - got
	p.until, p.idle = l.now().Add(permitsLast), got == 0
}
