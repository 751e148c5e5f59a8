package host

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/sqsonce/sqsonce"
)

// Run calls f and hands its error to then, on the same goroutine and exactly once, however f ends: a panic becomes a
// [*sqsonce.PanicError], and so does [runtime.Goexit], after which the goroutine ends when then has returned.
//
// Every call of the user's code goes through Run, [Recover] or [Contain]: a panic on a goroutine of its own would end the
// process, and with it everything in flight. The error that then gets is a [Usable] one.
func Run(f func() error, then func(error)) {
	var err error
	returned := false
	defer func() {
		// recover returns nil after Goexit only: panic(nil) is a *runtime.PanicNilError.
		if v := recover(); !returned {
			err = newPanicError(v)
		}
		then(Usable(err))
	}()
	err = f()
	returned = true
}

// Contain calls f on a goroutine of its own, which runtime.Goexit ends in place of the caller's, and returns f's error or the
// [*sqsonce.PanicError] of how it ended.
func Contain(f func() error) (err error) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		Run(f, func(failed error) { err = failed })
	}()
	<-ended
	return err
}

// Recover calls f, which is no handler and does not call runtime.Goexit. If it panics, Recover returns an error that wraps a
// [*sqsonce.PanicError], without the text of it, which says that a handler panicked.
func Recover(f func()) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panicked{Usable(newPanicError(v)).(*sqsonce.PanicError)}
		}
	}()
	f()
	return nil
}

type panicked struct{ err *sqsonce.PanicError }

func (p panicked) Error() string { return fmt.Sprintf("panicked: %v", p.err.Value) }

func (p panicked) Unwrap() error { return p.err }

func newPanicError(v any) *sqsonce.PanicError {
	return &sqsonce.PanicError{Value: v, Stack: debug.Stack()}
}

// Usable returns err, or a [*sqsonce.PanicError] for a typed nil, whose methods panic:
//
//	var e *fs.PathError
//	return e
func Usable(err error) error {
	if err == nil {
		return nil
	}
	v, stack := try(err)
	if v == nil {
		return err
	}
	// As text: the value may be another error whose methods panic. fmt recovers from a panic of its own calls.
	text := fmt.Sprintf("method of the error %T: %v", err, v)
	if p, ok := err.(*sqsonce.PanicError); ok && p != nil {
		text, stack = fmt.Sprintf("%v", p.Value), p.Stack
	}
	return &sqsonce.PanicError{Value: text, Stack: stack}
}

// try calls Error and searches the chain.
func try(err error) (panicked any, stack []byte) {
	defer func() {
		if panicked = recover(); panicked != nil {
			stack = debug.Stack()
		}
	}()
	_ = err.Error()
	_, _ = errors.AsType[*noError](err)
	return nil, nil
}

// noError matches nothing, so that a search of a chain goes to its end.
type noError struct{ error }
