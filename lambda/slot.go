package lambda

import (
	"sync/atomic"
	"time"
)

// state of a record. The zero value is a failure, as is every other but succeeded: what nobody has touched, or was
// left half way, is reported.
type state uint32

const (
	unstarted state = iota
	running
	succeeded
	failed
	skipped   // not started before the results were closed
	abandoned // still running then
)

// slot is the result of one record.
//
// A handler that ignores its context may return while the response is being made or long after. Each change is a
// compare-and-swap from the state that must come before, so of the handler's return and the closing of the results
// one wins and the other learns it. The plain fields are written before the swap to failed, by the goroutine that makes
// it, and read only where that swap was seen: what an abandoned handler writes there nobody reads.
type slot struct {
	state atomic.Uint32

	err   error
	retry time.Time // when it should be delivered again; zero: when its visibility timeout ends
}

func (s *slot) change(from, to state) bool { return s.state.CompareAndSwap(uint32(from), uint32(to)) }

func (s *slot) is(want state) bool { return s.state.Load() == uint32(want) }

// close ends the slot, if nothing has yet, and returns its last state.
func (s *slot) close() state {
	if s.change(unstarted, skipped) {
		return skipped
	}
	if s.change(running, abandoned) {
		return abandoned
	}
	return state(s.state.Load())
}
