package sqsonce

import (
	"errors"
	"fmt"
	"time"
)

// Outcome is the meaning of a handler's error for its message.
type Outcome struct {
	Kind OutcomeKind
	// Retry, Reject or Postpone is true if the error is or wraps a [RetryAfter], a [Reject] or a [Postpone]. At most one of
	// them is: if an error holds several, or a [Skip], the outermost decides. They are also set if another Kind decides.
	Retry, Reject, Postpone bool
	After                   time.Duration // the delay of the RetryAfter or Postpone
	Err                     error         // the reason of the RetryAfter, Reject or Postpone, or nil
}

// OutcomeKind says how a host treats a message.
type OutcomeKind uint8

// The meanings of a handler's error. Each receive of a message counts towards the queue's maxReceiveCount, whatever the outcome
// was. After OutcomeUnavailable the message waits longer, and all messages wait while the dependency is down for them.
const (
	OutcomeDone        OutcomeKind = iota // nil: the message is deleted
	OutcomeSkipped                        // Skip, without an effect: the message is deleted, and the event never runs again
	OutcomeFailed                         // delivered again, after the delay of RetryAfter if it asks for one, else by the host's backoff
	OutcomeInProgress                     // ErrInProgress, another delivery runs: delivered again after its lease at the earliest
	OutcomeRejected                       // sent to the dead-letter queue with the reason, and deleted when that is confirmed
	OutcomeLeaseLost                      // ErrLeaseLost, another delivery may own the event: the host leaves the message alone
	OutcomeUnavailable                    // ErrUnavailable, a dependency of every message is down: delivered again later

	// The kinds that a host assigns itself, and [OutcomeOf] never returns.
	OutcomeShutdown   // failed because the host ended its context: delivered again
	OutcomeAbandoned  // did not return in time: the host has stopped waiting for it
	OutcomeNotStarted // only counted: the host called no handler

	// OutcomePostponed is a handler's again: Postpone, this message runs later. It counts as no attempt.
	OutcomePostponed
)

var outcomeNames = [...]string{
	OutcomeDone: "done", OutcomeSkipped: "skipped", OutcomeFailed: "failed", OutcomeInProgress: "in_progress", OutcomeRejected: "rejected",
	OutcomeLeaseLost: "lease_lost", OutcomeUnavailable: "unavailable", OutcomeShutdown: "shutdown", OutcomeAbandoned: "abandoned",
	OutcomeNotStarted: "not_started", OutcomePostponed: "postponed",
}

// String returns the kind's name. The texts are stable, because metrics and alarms use them.
func (k OutcomeKind) String() string {
	if int(k) < len(outcomeNames) {
		return outcomeNames[k]
	}
	return fmt.Sprintf("outcome %d", uint8(k))
}

// OutcomeOf returns what to do with a message whose handler returned err. The hosts act on its result, and your own
// receive loop can do the same: see the example.
//
// A lost lease comes first, because not even a Reject may move a message that another delivery may own. An event in
// progress elsewhere comes before a Reject or a Skip too, because the other delivery decides about it. A Reject or Skip
// comes before an unavailable dependency, because the handler has decided. An unavailable dependency comes before a
// Postpone, because it concerns all messages.
//
// An error whose methods panic, as those of a nil pointer in a non-nil error do, is an ordinary failure.
func OutcomeOf(err error) (o Outcome) {
	defer func() {
		if recover() != nil {
			o = Outcome{Kind: OutcomeFailed}
		}
	}()
	o.Kind = OutcomeFailed
	_, skip := ask(&o, err)
	switch {
	case err == nil:
		o.Kind = OutcomeDone
	case errors.Is(err, ErrLeaseLost):
		o.Kind = OutcomeLeaseLost
	case errors.Is(err, ErrInProgress):
		o.Kind = OutcomeInProgress
	case o.Reject:
		o.Kind = OutcomeRejected
	case skip:
		o.Kind = OutcomeSkipped
	case errors.Is(err, ErrUnavailable):
		o.Kind = OutcomeUnavailable
	case o.Postpone:
		o.Kind = OutcomePostponed
	}
	return o
}

// ask sets the request of the outermost RetryAfter, Reject, Skip or Postpone of an error, and reports whether the error has
// one, and whether it is a Skip. An error that leaves the decision to the host, as every [*PanicError] does, has none.
func ask(o *Outcome, err error) (asked, skip bool) {
	// One walk and not four of errors.As: the first one found decides. The branches of errors.Join are searched in order.
	switch e := err.(type) {
	case *retryError:
		o.Retry, o.After, o.Err = true, e.after, e.err
		return true, false
	case *rejectError:
		o.Reject, o.Err = true, e.err
		return true, false
	case *skipError:
		return true, true
	case *postponeError:
		o.Postpone, o.After, o.Err = true, e.after, e.err
		return true, false
	case *PanicError:
		return false, false // a bug and not a decision, also where the panic's value is one of the four
	case interface{ Unwrap() error }:
		return ask(o, e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, branch := range e.Unwrap() {
			if asked, skip := ask(o, branch); asked {
				return true, skip
			}
		}
	}
	return false, false
}
