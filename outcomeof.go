package sqsonce

import (
	"errors"
	"fmt"
)

// Outcome is what the error of a handler means for its message.
type Outcome struct {
	Kind OutcomeKind
	// Retry is the RetryAfter that the error is or wraps, Reject the Reject, and Skip the Skip; at most one is not nil: where an
	// error holds several, the outermost decides. They are there for every Kind that they do not decide too.
	Retry  *RetryError
	Reject *RejectError
	Skip   *SkipError
}

// OutcomeKind says what a host does with a message.
type OutcomeKind uint8

// What a handler's error can mean. A receive of a message counts towards the queue's maxReceiveCount, whatever became of it.
const (
	OutcomeDone        OutcomeKind = iota // nil: the message is deleted
	OutcomeSkipped                        // Skip, the handler has done nothing: deleted, and never run again
	OutcomeFailed                         // delivered again: after Retry.After where it is there, else by the host's backoff
	OutcomeInProgress                     // ErrInProgress, another delivery of the event is at work: delivered again, not before that one's lease is over
	OutcomeRejected                       // sent to the dead-letter queue with the reason, and deleted when that is confirmed
	OutcomeLeaseLost                      // ErrLeaseLost, another delivery may own the event: nothing is done for the message
	OutcomeUnavailable                    // ErrUnavailable, something that every message needs is away: delivered again, after a longer delay for all

	// What a host makes of a handler, and [OutcomeOf] never returns.
	OutcomeShutdown   // failed because the host ended its context: delivered again
	OutcomeAbandoned  // did not return in time: the host no longer waits for it
	OutcomeNotStarted // only counted: no handler was called
)

var outcomeNames = [...]string{
	OutcomeDone: "done", OutcomeSkipped: "skipped", OutcomeFailed: "failed", OutcomeInProgress: "in_progress", OutcomeRejected: "rejected",
	OutcomeLeaseLost: "lease_lost", OutcomeUnavailable: "unavailable", OutcomeShutdown: "shutdown", OutcomeAbandoned: "abandoned",
	OutcomeNotStarted: "not_started",
}

// String returns the kind's name. The texts are stable: metrics and alarms hold them.
func (k OutcomeKind) String() string {
	if int(k) < len(outcomeNames) {
		return outcomeNames[k]
	}
	return fmt.Sprintf("outcome %d", uint8(k))
}

// OutcomeOf says what to do with a message whose handler returned err. The hosts do what it says, and so can a loop of one's
// own: see the example.
//
// A lost lease comes first: not even a Reject may move a message that another delivery may own. An event in progress
// elsewhere comes before a Reject or a Skip too: the other delivery decides about it. A handler that rejects or skips its message
// although something is unavailable has decided.
//
// An error whose methods panic, as those of a nil pointer that is not a nil error do, is an ordinary failure.
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

// ask sets what the outermost [*RetryError], [*RejectError] or [*SkipError] of an error asks for, and reports whether there is one.
// There is none in an error that leaves the decision to the host, as every [*PanicError] does.
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
