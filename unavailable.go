package sqsonce

import (
	"context"
	"errors"
	"fmt"

	"github.com/sqsonce/sqsonce/internal/question"
)

// ErrUnavailable says that something that messages need is down: the store of the records, or a dependency of the
// handler. A delivery that fails with it does not count as an attempt. Hosts keep the message and run it again later,
// and the outage does not move the message to the dead-letter queue. See [Unavailable].
var ErrUnavailable = errors.New("sqsonce: unavailable")

// ErrMisconfigured says that retries don't help until you change something: the table is missing, access is denied, the
// credentials are refused. It matches [ErrUnavailable] too, because every message needs the misconfigured part.
var ErrMisconfigured error = misconfigured{}

type misconfigured struct{}

func (misconfigured) Error() string { return "sqsonce: misconfigured" }

func (misconfigured) Is(target error) bool { return target == ErrUnavailable }

// Unavailable returns an error that matches [ErrUnavailable], with err as the reason. Return it when a dependency of
// your handler is down, such as the payment provider. The host can't ask that dependency, so it treats the error as a
// claim, which a message with another outcome refutes. After three claims in a row a worker receives one message a
// second, until one of them has another outcome. If a cheap call can check the dependency, use [UnavailableUntil].
func Unavailable(err error) error { return &unavailableError{err} }

// UnavailableUntil is [Unavailable] with a question: ask returns nil when the dependency works again. The host calls
// ask at once. While ask fails, the host receives and runs no messages, and asks again after 1 s, doubling to 10 s. If
// ask returns nil although the handler has failed, the host sets only this message aside, and the others go on.
//
// ask should do the same as the handler, but for no message: a call of the same service with the same credentials, and
// a write if the handler writes. It has 10 s. Its calls don't overlap, and a worker makes at most one a second. A panic
// of ask counts as a failure. If ask is nil, the error is that of Unavailable. Give each dependency a function of its
// own. Closures of one function literal, and one method of two values, count as one question, and the newest one
// answers for both.
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
