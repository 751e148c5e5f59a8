package host

import (
	"errors"

	"github.com/sqsonce/sqsonce"
)

// Outcome is what a handler's return means to a host.
type Outcome int

// The outcomes.
const (
	Done        Outcome = iota // nil
	Failed                     // delivered again
	InProgress                 // another delivery of the event is at work: delivered again, and not a failure
	Rejected                   // to the dead-letter queue
	LeaseLost                  // another delivery may own the event: nothing is done for the message
	Unavailable                // something that every message needs is away: delivered again, and not a try
)

// OutcomeOf returns the outcome of a handler that returned err.
//
// A lost lease comes first: not even a Reject may move a message that another delivery may own. An event in progress
// elsewhere comes before a Reject too: the other delivery decides about it. A handler that rejects its message although
// something is unavailable has decided.
func OutcomeOf(err error) Outcome {
	_, reject := Asked(err)
	switch {
	case err == nil:
		return Done
	case errors.Is(err, sqsonce.ErrLeaseLost):
		return LeaseLost
	case errors.Is(err, sqsonce.ErrInProgress):
		return InProgress
	case reject != nil:
		return Rejected
	case errors.Is(err, sqsonce.ErrUnavailable):
		return Unavailable
	}
	return Failed
}

// Asked returns what the outermost [*sqsonce.RetryError] or [*sqsonce.RejectError] of an error asks for. At most one is
// not nil. Both are nil for an error that leaves the decision to the host, as every [*sqsonce.PanicError] does.
func Asked(err error) (retry *sqsonce.RetryError, reject *sqsonce.RejectError) {
	// One walk and not two of errors.As: the first one found decides. The branches of errors.Join are searched in order.
	switch e := err.(type) {
	case nil:
		return nil, nil
	case *sqsonce.RetryError:
		return e, nil
	case *sqsonce.RejectError:
		return nil, e
	case *sqsonce.PanicError:
		return nil, nil // a bug and not a decision, also where the panic's value is one of the two
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return Asked(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, branch := range e.Unwrap() {
			if retry, reject = Asked(branch); retry != nil || reject != nil {
				return retry, reject
			}
		}
	}
	return nil, nil
}

// WithEnded wraps err, which matches [sqsonce.ErrInProgress], with a channel that is closed when the delivery that is at
// work in this process has ended. Only for hosts that can hold the message: settle.Holding.
func WithEnded(err error, ended <-chan struct{}) error { return &endedError{err, ended} }

// Ended returns the channel of the outermost [WithEnded] in err, or nil.
func Ended(err error) <-chan struct{} {
	if e, ok := errors.AsType[*endedError](err); ok {
		return e.ended
	}
	return nil
}

type endedError struct {
	error
	ended <-chan struct{}
}

func (e *endedError) Unwrap() error { return e.error }
