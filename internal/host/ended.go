package host

import "errors"

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
