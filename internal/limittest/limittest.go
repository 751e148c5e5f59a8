// Package limittest is the conformance suite of [limit.Counter], with a case for every sentence of its contract.
//
//	func TestCounter(t *testing.T) {
//		limittest.Run(t, limittest.Harness{New: func(t *testing.T) func() limit.Counter {
//			store := memstore.New()
//			return func() limit.Counter { return memstore.NewCounter(store) }
//		}})
//	}
//
// Each case gets a fleet of its own and, by default, a synctest bubble, in which time passes at once. An answer that a
// case doesn't use stands for an answer that was lost, and a second call for a request that arrives twice or late.
package limittest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/suite"
	"github.com/sqsonce/sqsonce/limit"
)

// Harness describes how to test a counter.
type Harness struct {
	// New returns a fleet without keys: each call of process returns the counter of one more process. New runs inside
	// the case's bubble. t.Cleanup must close servers and idle connections. Required.
	New func(t *testing.T) (process func() limit.Counter)
	// These functions return a counter whose server can't be reached, one whose table is missing or whose access is
	// denied, and one whose server refuses every write. If one is nil, its case is reported as skipped.
	Away, Misconfigured, ReadOnly func(t *testing.T) limit.Counter
	// Store returns the store of a counter. If it is nil, its cases are reported as skipped.
	Store func(c limit.Counter) dedup.Lister
	// Delete deletes the record of a key or slot, here with the limit/ before it, as an operator does. If it is nil,
	// its cases are reported as skipped.
	Delete func(ctx context.Context, c limit.Counter, record string) error
	// Writes returns the writes that a counter has made. If the server doesn't tell, set CountsWrites instead, and have the client or
	// driver call [CountWrite] for each write. With neither, the cases about cost are reported as skipped.
	Writes       func(c limit.Counter) float64
	CountsWrites bool
	// Step is the step of most cases. The times that they let pass are multiples of it.
	// Default: 1 minute. Limits: more than 3 times Grace, and in real time 2 s or more.
	Step time.Duration
	// Grace is how far a time that the counter says may be wrong, in either direction.
	// Default: 1 ms.
	Grace time.Duration
	// Takeover is how long after a lease's end a slot may still be taken.
	// Default: 5 s.
	Takeover time.Duration
	// RealTime says that the counter's server has a clock of its own. The cases then run without a bubble and at the
	// same time.
	RealTime bool
}

// atOnce is how many cases run at the same time in real time.
const atOnce = 16

// Run runs every case as a subtest.
func Run(t *testing.T, h Harness) {
	t.Helper()
	suite.Run(t, h.withDefaults().cases(), suite.Options{Bubble: !h.RealTime, AtOnce: atOnce})
}

func (h Harness) withDefaults() Harness {
	if h.Step == 0 {
		h.Step = time.Minute
	}
	if h.Grace == 0 {
		h.Grace = time.Millisecond
	}
	if h.Takeover == 0 {
		h.Takeover = 5 * time.Second
	}
	return h
}

// testCase is one sentence of the contract.
type testCase struct {
	name string
	on   state
	run  func(x *exam)
}

// state is the fleet, the counter or the means that a case needs.
type state int

const (
	usable state = iota
	away
	misconfigured
	readOnly
	deletes
	counted
	listed
)

func (h Harness) cases() (all []suite.Case) {
	for _, c := range slices.Concat(takeCases, pauseCases, lineCases, slotCases, errorCases, deleteCases, costCases) {
		all = append(all, h.suiteCase(c))
	}
	return all
}

// suiteCase gives the case a fleet of its own.
func (h Harness) suiteCase(c testCase) suite.Case {
	one := map[state]func(*testing.T) limit.Counter{away: h.Away, misconfigured: h.Misconfigured, readOnly: h.ReadOnly}
	out := suite.Case{Name: c.name, Run: func(t *testing.T) {
		x := &exam{Harness: h, ctx: t.Context()}
		if f := one[c.on]; f != nil {
			x.Counter = f(t)
		} else {
			x.process = h.New(t)
			if process := x.process; c.on == counted && h.CountsWrites {
				x.process = func() limit.Counter { return newWriter(process()) }
			}
			x.Counter = x.process()
		}
		c.run(x)
	}}
	_, single := one[c.on]
	switch {
	case c.on == counted && h.Writes == nil && !h.CountsWrites:
		out.Skip = "the harness counts no writes: nothing is known of the counter's cost"
	case single && one[c.on] == nil || c.on == deletes && h.Delete == nil || c.on == listed && h.Store == nil:
		out.Skip = "the harness has no means for it"
	}
	return out
}
