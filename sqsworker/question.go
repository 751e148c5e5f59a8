package sqsworker

import (
	"context"
	"fmt"
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/question"
)

const (
	askFirst  = time.Second
	askMost   = 10 * time.Second
	disbelief = time.Hour

	answerHolds = time.Minute // for receives
)

// asked is a question, and its answers.
type asked struct {
	question.Question
	wanted      bool
	running     bool // the call; it may go on after its time
	begun       time.Time
	notBefore   time.Time
	timer       *timer    // of notBefore
	failures    int       // in a row; 0: it passes, or was not asked yet
	failed      time.Time // when the first of them was answered
	err         error
	passed      time.Time // when it last did
	disbelieved time.Time // until then its failure only sets messages aside
}

// failing reports whether a question fails that is believed.
func (n *needs) failing() bool {
	for _, a := range n.questions {
		if a.failures > 0 {
			return true
		}
	}
	return false
}

// unsure says that a question is asked whose answer is not known: one that has just passed will most often pass again, and messages
// that are aside may have it asked all the time.
func (n *needs) unsure(now time.Time) bool {
	return n.asking != nil && (n.asking.passed.IsZero() || elapsed(now, n.asking.passed) >= answerHolds)
}

func (n *needs) question(q question.Question) *asked {
	for _, a := range n.questions {
		if a.ID == q.ID {
			a.Question = q
			return a
		}
	}
	a := &asked{Question: q}
	n.questions = append(n.questions, a)
	return a
}

// ask has a question answered, soon.
func (l *loop) ask(q question.Question) {
	a := l.needs.question(q)
	if l.now().Before(a.disbelieved) {
		l.noteTrouble()
		return
	}
	a.wanted = true
	l.askNext()
}

// askNext begins a question that is wanted. They are asked one after the other.
func (l *loop) askNext() {
	for _, a := range l.needs.questions {
		switch {
		case l.needs.asking != nil || l.stopping.begun:
			return
		case !a.wanted || a.running:
		case l.now().Before(a.notBefore):
			if !a.timer.pending() {
				a.timer = l.after(a.notBefore.Sub(l.now()), l.askNext)
			}
		default:
			l.beginQuestion(a)
		}
	}
}

func (l *loop) beginQuestion(a *asked) {
	a.wanted, a.running, a.begun = false, true, l.now()
	l.needs.asking = a
	ask, within := a.Ask, a.Within()
	l.calls.Go(func() {
		ctx, cancel := context.WithTimeout(l.callCtx, within)
		defer cancel()
		err := host.Contain(func() error { return ask(ctx) })
		l.post(questionAnswered{a, err})
	})
	begun := a.begun
	l.after(within+time.Second, func() {
		if a.running && a.begun.Equal(begun) { // the question ignores its context
			l.questionFailed(a, fmt.Errorf("sqsworker: the store did not answer the question within %s", within+time.Second))
		}
	})
}

// questionAnswered is the answer to a question.
type questionAnswered struct {
	asked *asked
	err   error
}

func (l *loop) questionAnswered(e questionAnswered) {
	a := e.asked
	a.running = false
	if e.err != nil {
		l.questionFailed(a, e.err)
		return
	}
	l.questionEnded(a)
	a.failures, a.passed, a.notBefore = 0, l.now(), l.now().Add(askFirst)
	if l.needs.state == needsDown && !l.needs.failing() {
		l.letOthersComplete(l.needs.since)
		l.endOutage(needsUnproven)
	}
	l.noteTrouble()
	l.askNext()
}

func (l *loop) questionEnded(a *asked) {
	if l.needs.asking == a {
		l.needs.asking = nil
	}
}

func (l *loop) questionFailed(a *asked, err error) {
	now := l.now()
	l.questionEnded(a)
	if now.Before(a.disbelieved) {
		l.askNext()
		return
	}
	a.err, a.wanted = err, true
	if a.failures++; a.failures == 1 {
		a.failed = now
	}
	a.notBefore = now.Add(host.Double(askFirst, askMost, a.failures))
	if l.needs.state != needsDown {
		l.needs.err = err
		l.beginOutage(a)
	}
	l.noteTrouble()
	l.askNext()
}
