package lambda

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/question"
	"github.com/sqsonce/sqsonce/internal/settle"
)

const (
	// askHolds is how long an answer holds for all invocations of the process. So they ask once a second at most.
	askHolds = time.Second
	// mostRuns is how often a message runs in one invocation: again after 1, 2, 4, 8 and 16 s.
	mostRuns = 6
)

// askWhetherDown asks the question of an error with which a handler's message was unavailable. Where it fails no further message of the
// invocation is started: it would only lose its time. Where it passes, or there is none, the others go on. A question that has no answer
// when the handlers' time is over says nothing. Protocol, section 17.
func (v *invocation) askWhetherDown(f failure) {
	q, asks := question.Of(f.err)
	if !asks {
		return
	}
	var failure time.Time // zero: a second of the handlers' time, for each of many messages, would gain nothing
	if len(f.chain) > 1 || f.message.ReceiveCount > 1 {
		failure = time.Now()
	}
	a, _ := v.questions.LoadOrStore(q.ID, &asked{})
	switch answer, known := v.ask(a.(*asked), q, failure); {
	case !known:
	case answer == nil:
		f.slot.own.Store(true)
	case v.down.CompareAndSwap(false, true):
		v.log.WarnContext(v.ctx, "lambda: the store or a dependency of the handlers is down: the rest of the batch is delivered again", keyError, answer)
	}
}

// isOwn reports that nothing says that other messages are unavailable too: the question of an error passed, or nobody can be asked. What
// is misconfigured every message needs.
func (v *invocation) isOwn(f failure) bool {
	_, asks := question.Of(f.err)
	if asks {
		return f.slot.own.Load()
	}
	return !v.down.Load() && !errors.Is(f.err, sqsonce.ErrMisconfigured)
}

// mayTryAgain reports whether a message was postponed, or did not run although its question passed. It asks nobody: the rest is for
// tryAgain.
func (v *invocation) mayTryAgain(f failure) bool {
	ran, _ := settle.HasRun(f.ctx)
	postponed := f.outcome() == sqsonce.OutcomePostponed
	return v.opts.Client != nil && (postponed || !ran && f.slot.own.Load())
}

// tryAgain has a message run once more in this invocation where it is at its last receive: SQS would move it, unrun, and the question
// may have passed because an outage has just ended, or because only a part of the calls fails. A postponed one runs when its time has
// come. It has half of the invocation's time.
func (v *invocation) tryAgain(f failure) bool {
	pause := time.Second << (f.slot.runs - 1)
	if o := sqsonce.OutcomeOf(f.err); o.Postpone {
		pause = max(pause, o.After)
	}
	if !v.mayTryAgain(f) || f.slot.runs == mostRuns || !v.isLastReceive(f.chain[0]) ||
		v.times.limited() && time.Until(v.times.at(handlersStop))-pause < v.remaining/2 || !f.slot.change(settling, unstarted) {
		return false
	}
	v.log.DebugContext(v.contextOf(f.slot), "lambda: message at its last receive runs again in this invocation", f.about()...)
	v.tell(f.ctx, false, f.slot)
	time.AfterFunc(pause, func() { v.goOn(f.chain) })
	return true
}

// asked is a question that the invocations of a process share, with its latest answer.
type asked struct {
	mu      sync.Mutex
	running bool          // a call; it may go on after its time
	under   chan struct{} // closed when those who wait for an answer may look again; nil: none is expected
	begun   time.Time     // the latest call
	at      time.Time     // of the answer; zero: there is none
	answer  error
}

var errHangs = errors.New("lambda: the store did not answer the question in its time")

// ask returns the answer to a question, for a failure at a time; zero: any answer does. A question that began before it, and passed, says
// nothing of it: what it asks for may have gone down since. The message waits for the next one. known is false where the handlers' time is
// over before. Its calls do not overlap.
func (v *invocation) ask(a *asked, q question.Question, failure time.Time) (answer error, known bool) {
	for v.ctx.Err() == nil {
		a.mu.Lock()
		under := a.under
		switch {
		case under != nil:
			a.mu.Unlock()
			select {
			case <-under:
			case <-v.ctx.Done():
			}
			continue
		case a.running:
			a.mu.Unlock()
			return errHangs, true
		case !a.at.IsZero() && time.Since(a.at) < askHolds:
			answer, old, held := a.answer, a.begun.Before(failure), askHolds-time.Since(a.at)
			a.mu.Unlock()
			if old && answer == nil {
				host.Wait(v.ctx, held)
				continue
			}
			return answer, true
		}
		if wait := askHolds - time.Since(a.begun); wait > 0 { // the call before had no answer
			a.mu.Unlock()
			host.Wait(v.ctx, wait)
			continue
		}
		a.running, a.under, a.begun = true, make(chan struct{}), time.Now()
		a.mu.Unlock()
		return v.call(a, q)
	}
	return nil, false
}

// call makes the call of a question, and tells its answer to those who wait for it. A call that the end of this invocation has ended
// has no answer: another invocation makes its own.
func (v *invocation) call(a *asked, q question.Question) (answer error, known bool) {
	ctx, cancel := context.WithTimeout(v.ctx, q.Within())
	defer cancel()
	var err error
	returned := await(ctx, &v.abandoned, func() {
		host.Run(func() error { return q.Ask(ctx) }, func(failed error) {
			err = failed
			a.mu.Lock()
			defer a.mu.Unlock()
			a.running = false
		})
	})
	if answer = errHangs; returned {
		answer = err
	}
	known = v.ctx.Err() == nil
	a.mu.Lock()
	defer a.mu.Unlock()
	if known {
		a.answer, a.at = answer, time.Now()
	}
	close(a.under)
	a.under = nil
	return answer, known
}
