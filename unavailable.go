package sqsonce

import (
	"errors"
	"fmt"
)

// ErrUnavailable says that something is away that every message needs: the store of the records, or a dependency of the
// handler. A delivery that fails with it is not a try of its message: hosts keep the message and run it again when they
// can, and it does not reach the dead-letter queue because of it. See [Unavailable].
var ErrUnavailable = errors.New("sqsonce: unavailable")

// ErrMisconfigured says that no retry helps until somebody changes something: the table is missing, access is denied, the
// credentials are refused. It matches [ErrUnavailable] too: every message needs what is misconfigured.
var ErrMisconfigured error = misconfigured{}

type misconfigured struct{}

func (misconfigured) Error() string { return "sqsonce: misconfigured" }

func (misconfigured) Is(target error) bool { return target == ErrUnavailable }

// Unavailable returns an error that matches [ErrUnavailable], with err as the reason. dedup returns it when its store could
// not be asked. Handlers may return it for a dependency of their own that every message needs, such as the payment
// provider. What only some messages need (a tenant's database) is a [RetryAfter].
func Unavailable(err error) error { return &unavailableError{err} }

type unavailableError struct{ err error }

func (e *unavailableError) Error() string {
	if e.err == nil {
		return ErrUnavailable.Error()
	}
	return fmt.Sprintf("%v: %v", ErrUnavailable, e.err)
}

func (e *unavailableError) Is(target error) bool { return target == ErrUnavailable }

func (e *unavailableError) Unwrap() error { return e.err }
