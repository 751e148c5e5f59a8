package sqsonce

import (
	"errors"
	"fmt"
)

// Outcome is the meaning of a handler's error for its message.
type Outcome struct {
	Kind OutcomeKind
	// Retry is the RetryAfter that the error is or wraps, Reject the Reject, and Skip the Skip. At most one of them is
	// not nil: if an error holds several, the outermost decides. They are also set if another Kind decides.
	Retry  *RetryError
	Reject *RejectError
	Skip   *SkipError
}

// OutcomeKind says how a host treats a message.
type OutcomeKind uint8

// The meanings of a handler's error. Each receive of a message counts towards the queue's maxReceiveCount, whatever the outcome
// was. After OutcomeUnavailable the message waits longer, and all messages wait while the dependency is down for them.
const (
	OutcomeDone        OutcomeKind = iota // nil: the message is deleted
	OutcomeSkipped                        // Skip, without an effect: the message is deleted, and the event never runs again
	OutcomeFailed                         // delivered again, after Retry.After if it is set, else by the host's backoff
	OutcomeInProgress                     // ErrInProgress, another delivery runs: delivered again after its lease at the earliest
	OutcomeRejected                       // sent to the dead-letter queue with the reason, and deleted when that is confirmed
	OutcomeLeaseLost                      // ErrLeaseLost, another delivery may own the event: the host leaves the message alone
	OutcomeUnavailable                    // ErrUnavailable, a dependency of every message is down: delivered again later

	// The kinds that a host assigns itself, and [OutcomeOf] never returns.
	OutcomeShutdown   // failed because the host ended its context: delivered again
	OutcomeAbandoned  // did not return in time: the host has stopped waiting for it
	OutcomeNotStarted // only counted: the host called no handler
)

var outcomeNames = [...]string{
	OutcomeDone: "done", OutcomeSkipped: "skipped", OutcomeFailed: "failed", OutcomeInProgress: "in_progress", OutcomeRejected: "rejected",
	OutcomeLeaseLost: "lease_lost", OutcomeUnavailable: "unavailable", OutcomeShutdown: "shutdown", OutcomeAbandoned: "abandoned",
	OutcomeNotStarted: "not_started",
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
// comes before an unavailable dependency, because the handler has decided.
//
// An error whose methods panic, as those of a nil pointer in a non-nil error do, is an ordinary failure.
func OutcomeOf(err error) (o Outcome) {
	defer func() {
		if recover() != nil {
			o = Outcome{Kind: OutcomeFailed}
		}
	}()
	o.Kind = OutcomeFailed
	ask(&o, err)
	switch {
	case err == nil:
		o.Kind = OutcomeDone
	case errors.Is(err, ErrLeaseLost):
		o.Kind = OutcomeLeaseLost
	case errors.Is(err, ErrInProgress):
		o.Kind = OutcomeInProgress
	case o.Reject != nil:
		o.Kind = OutcomeRejected
	case o.Skip != nil:
		o.Kind = OutcomeSkipped
	case errors.Is(err, ErrUnavailable):
		o.Kind = OutcomeUnavailable
	}
	return o
}

// ask sets the request of the outermost [*RetryError], [*RejectError] or [*SkipError] of an error, and reports whether
// the error has one. An error that leaves the decision to the host, as every [*PanicError] does, has none.
func ask(o *Outcome, err error) bool {
	// One walk and not three of errors.As: the first one found decides. The branches of errors.Join are searched in order.
	switch e := err.(type) {
	case *RetryError:
		o.Retry = e
		return true
	case *RejectError:
		o.Reject = e
		return true
	case *SkipError:
		o.Skip = e
		return true
	case *PanicError:
		return false // a bug and not a decision, also where the panic's value is one of the three
	case interface{ Unwrap() error }:
		return ask(o, e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, branch := range e.Unwrap() {
			if ask(o, branch) {
				return true
			}
		}
	}
	return false
}
