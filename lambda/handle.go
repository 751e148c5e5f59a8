package lambda

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// state of a record. Every state but succeeded is reported as a failure, the zero value too.
type state uint32

const (
	unstarted state = iota
	running
	succeeded
	failed
	skipped   // unstarted when the results were closed
	abandoned // running when the results were closed
)

// slot is the result of one record.
//
// A handler that ignores its context may return while the response is being made, or much later. So each change of the
// state is a compare-and-swap from the state before: of the handler's return and the closing of the results only one
// succeeds, and the other one sees that. The handler's goroutine writes err and retry before it swaps to failed. They are
// read only after that swap: nobody reads what an abandoned handler writes there.
type slot struct {
	state   atomic.Uint32
	message sqsonce.Message // filled when the handler starts

	err   error
	retry time.Time // when the message should be visible again; zero: at the end of its visibility timeout
}

func (s *slot) change(from, to state) bool { return s.state.CompareAndSwap(uint32(from), uint32(to)) }

func (s *slot) is(want state) bool { return s.state.Load() == uint32(want) }

// close makes the state final and returns it.
func (s *slot) close() state {
	if s.change(unstarted, skipped) {
		return skipped
	}
	if s.change(running, abandoned) {
		return abandoned
	}
	return state(s.state.Load())
}

// handle runs the handler for a record and reports whether it succeeded before the results were closed.
func (v *invocation) handle(i int) (ok bool) {
	s := &v.slots[i]
	if !s.change(unstarted, running) {
		return false // the results are closed
	}
	m := &s.message
	convert(m, &v.records[i], v.killAt)
	ctx, settled := settle.New(v.ctx)
	begun := time.Now()
	host.Run(func() error { return v.handler(ctx, m) }, func(err error) {
		if s.is(running) && (err == nil || v.ctx.Err() == nil) { // neither abandoned nor cut off
			v.runTimes.add(time.Since(begun))
		}
		ok = v.setResult(s, m, settle.KeptKey(ctx), err, settled)
	})
	return ok
}

// setResult settles a message after its handler and sets the result. It reports whether that is a success before the
// results were closed. key is that of settle.KeptKey.
func (v *invocation) setResult(s *slot, m *sqsonce.Message, key string, err error, settled func(deadLettered bool) error) bool {
	sent := (host.OutcomeOf(err) == host.Rejected || v.failedLastReceive(m, err)) && v.deadLetter(s, m, key, err)
	if e := settled(sent); e != nil {
		v.log.ErrorContext(v.ctx, "lambda: settling the message panicked", keyMessage, m.ID, keyError, e)
	}
	if err == nil || sent {
		if s.change(running, succeeded) {
			return true
		}
	} else {
		s.err, s.retry = err, v.retryAt(m, err)
		if s.change(running, failed) {
			v.logFailure(m, err)
			return false
		}
	}
	v.abandoned.Add(-1)
	v.log.WarnContext(v.ctx, "lambda: abandoned handler returned after the response", keyMessage, m.ID, keyGroup, m.Group, keyError, err)
	return false
}

func (v *invocation) logFailure(m *sqsonce.Message, err error) {
	attrs := append([]any{keyMessage, m.ID, keyGroup, m.Group, keyCount, m.ReceiveCount}, host.ErrorAttrs(err)...)
	if errors.Is(err, sqsonce.ErrInProgress) {
		v.log.DebugContext(v.ctx, "lambda: event is in progress elsewhere", attrs...)
		return
	}
	v.log.WarnContext(v.ctx, "lambda: handler failed", attrs...)
}
