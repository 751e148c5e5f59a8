package host

import (
	"runtime/debug"

	"github.com/sqsonce/sqsonce"
)

// Run calls f and hands its error to then, on the same goroutine and exactly once, however f ends: a panic becomes a
// [*sqsonce.PanicError], and so does [runtime.Goexit], after which the goroutine ends when then has returned.
//
// Every call of the user's code goes through it: a panic on a goroutine of its own would end the process, and with it
// everything in flight.
func Run(f func() error, then func(error)) {
	var err error
	returned := false
	defer func() {
		// recover returns nil after Goexit only: panic(nil) is a *runtime.PanicNilError.
		if v := recover(); !returned {
			err = &sqsonce.PanicError{Value: v, Stack: debug.Stack()}
		}
		then(err)
	}()
	err = f()
	returned = true
}
