package sqsworker

import (
	"errors"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/question"
)

// trouble is the state of the log lines about unavailable messages.
type trouble struct {
	crowded  time.Time // not more than crowd were unavailable last
	affected int       // messages that are unavailable, running ones included
	outcomes int       // that were unavailable and that no line has counted
	noted    bool
	warned   time.Time
	timer    *timer
}

const warnEvery = time.Minute

// troubleSoon is when a line says at the latest that a message was unavailable. Until then the answer to its question may be part of it.
const troubleSoon = question.Timeout + 2*time.Second

// countTrouble has a line count an outcome, also where its message gets through before anybody looks.
func (l *loop) countTrouble() {
	t := &l.needs.trouble
	if t.outcomes++; !t.timer.pending() {
		t.timer = l.after(troubleSoon, l.noteTrouble)
	}
}

// noteTrouble logs one line a minute while messages are unavailable, and one when none is any more, but not in a stop.
func (l *loop) noteTrouble() {
	t := &l.needs.trouble
	now := l.now()
	over := t.affected == 0 && l.needs.state != needsDown && l.needs.state != needsDoubted
	switch {
	case over && t.noted:
		t.noted, t.outcomes = false, 0
		if !l.stopping.begun { // the stop gives back what is unavailable still
			l.log.Info("sqsworker: available again")
		}
		return
	case over && t.outcomes == 0:
		return
	}
	if next := t.warned.Add(warnEvery); now.Before(next) {
		if !t.timer.pending() {
			t.timer = l.after(next.Sub(now), l.noteTrouble)
		}
		return
	}
	l.expireHeld()
	outcomes := t.outcomes
	t.warned, t.noted, t.outcomes = now, true, 0
	t.timer = l.after(warnEvery, l.noteTrouble)
	level := l.log.Warn
	if errors.Is(l.needs.err, sqsonce.ErrMisconfigured) {
		level = l.log.Error
	}
	level("sqsworker: unavailable: messages are held and run again",
		"down", l.needs.state == needsDown, "aside", l.heldAs[heldAside], "in_doubt", l.heldAs[heldClaim], "suspect", l.heldAs[heldSuspect], "outcomes", outcomes, keyError, l.needs.err)
}

func (l *loop) forgetUnavailable(d *delivery) {
	if d.unavailable > 0 {
		d.unavailable, d.refuted = 0, false
		t := &l.needs.trouble
		if t.affected--; t.noted && t.affected == 0 {
			l.after(0, l.noteTrouble) // when the loop's event has been handled
		}
	}
}
