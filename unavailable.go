package sqsonce

import (
	"context"
	"errors"
	"fmt"

	"github.com/sqsonce/sqsonce/internal/question"
)

// ErrUnavailable says that something is down that messages need: the store of the records, or a dependency of the handler. A
// delivery that fails with it does not count as an attempt: hosts keep the message and run it again later, and it does not reach
// the dead-letter queue because of it. See [Unavailable].
var ErrUnavailable = errors.New("sqsonce: unavailable")

// ErrMisconfigured says that no retry helps until you change something: the table is missing, access is denied, the
// credentials are refused. It matches [ErrUnavailable] too: every message needs what is misconfigured.
var ErrMisconfigured error = misconfigured{}

type misconfigured struct{}

func (misconfigured) Error() string { return "sqsonce: misconfigured" }

func (misconfigured) Is(target error) bool { return target == ErrUnavailable }

// Unavailable returns an error that matches [ErrUnavailable], with err as the reason. Return it when a dependency of your handler is
// down, such as the payment provider. The host cannot ask that dependency, so it takes the error for a claim: a message with another
// outcome refutes it. After three claims in a row a worker receives one message a second, until one of them has another outcome. Where
// a cheap call tells whether the dependency works, use [UnavailableUntil].
func Unavailable(err error) error { return &unavailableError{err} }

// UnavailableUntil is [Unavailable] with a question: ask returns nil when what failed works again. The host calls ask at once. While
// ask fails the host receives nothing and runs nothing, and asks again after 1 s, doubling to 10 s. When ask returns nil although the
// handler has failed, only this message is set aside, and the others go on.
//
// ask should do for no message what the handler does for one: a call of the same service with the same credentials, and a write
// where the handler writes. It has 10 s. Its calls do not overlap, and a worker makes at most one a second. A panic of ask counts as
// a failure. Without ask the error is that of Unavailable. Give each dependency a function of its own: closures of one function literal,
// and one method of two values, count as one question, and the newest one answers for both.
func UnavailableUntil(err error, ask func(context.Context) error) error {
	err = Unavailable(err)
	if ask == nil {
		return err
	}
	return question.With(err, question.ByFunction(ask))
}

type unavailableError struct{ err error }

func (e *unavailableError) Error() string {
	if e.err == nil {
		return ErrUnavailable.Error()
	}
	return fmt.Sprintf("%v: %v", ErrUnavailable, e.err)
}

func (e *unavailableError) Is(target error) bool { return target == ErrUnavailable }

func (e *unavailableError) Unwrap() error { return e.err }
