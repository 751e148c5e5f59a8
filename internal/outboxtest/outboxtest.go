// Package outboxtest is the conformance suite of [outbox.Store]: a case for every sentence of its contract.
//
// Each case gets an outbox of its own and, by default, a synctest bubble, in which time passes at once.
package outboxtest

import (
	"slices"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/suite"
)

// Harness is a store to be examined.
type Harness struct {
	// New returns an empty outbox of its own and a function that commits events to it, in one transaction. It runs inside the
	// case's bubble. t.Cleanup must close servers and idle connections. Required.
	New func(t *testing.T) (s outbox.Store, commit func(t *testing.T, es ...fifo.Event))
	// Begin opens a transaction that has added the events and is not committed. The cases have one open transaction of a group
	// at a time. Leave it nil if the store doesn't have open transactions. The suite then reports its cases as skipped.
	Begin func(t *testing.T, s outbox.Store, es ...fifo.Event) (commit, rollback func())
	// Half commits a transaction that has reached only its last event so far, and finish lets it reach the others. Leave it nil
	// if the store doesn't have such transactions.
	Half func(t *testing.T, s outbox.Store, es ...fifo.Event) (finish func())
	// Break makes an event unreadable: of a later version, or damaged. Leave it nil if that can't be done.
	Break func(t *testing.T, s outbox.Store, e outbox.Entry)
	// Replace puts another event into the place of one that is there: the same Seq, another ID, as after a failover that has
	// lost the first. Leave it nil if the place is the event's identity in this store.
	Replace func(t *testing.T, s outbox.Store, e outbox.Entry, with fifo.Event)
	// Reopen returns a second store on the same outbox, as another process has it. Required.
	Reopen func(t *testing.T, s outbox.Store) outbox.Store
	// Source is the namespace that the events are written for.
	// Default: "orders".
	Source string
	// NoClaims says that Claim returns all groups and that Unclaim has no effect.
	NoClaims bool
	// RealTime says that the store's server has a clock of its own. The cases then run without a bubble, and at the same time.
	// Default: false.
	RealTime bool
	// Lease is how long the claims of the cases are.
	// Default: 1 minute, and 2 s in real time.
	Lease time.Duration
	// Known are the cases that the store is known to fail, with the reason. One that passes, or that does not exist, is a failure.
	Known map[string]string
}

// atOnce is how many cases run at the same time in real time.
const atOnce = 8

// Run runs every case as a subtest.
func Run(t *testing.T, h Harness) {
	t.Helper()
	h = h.withDefaults()
	var all []suite.Case
	for _, c := range cases() {
		all = append(all, h.suiteCase(c))
	}
	suite.Run(t, all, suite.Options{Known: h.Known, Bubble: !h.RealTime, AtOnce: atOnce})
}

func (h Harness) withDefaults() Harness {
	if h.Source == "" {
		h.Source = "orders"
	}
	if h.Lease == 0 && h.RealTime {
		h.Lease = 2 * time.Second
	}
	if h.Lease == 0 {
		h.Lease = time.Minute
	}
	return h
}

// testCase is one sentence of the contract.
type testCase struct {
	name  string
	needs need
	run   func(x *exam)
}

// need is the part of the harness that a case uses.
type need int

const (
	nothing need = iota
	begin
	half
	breaks
	replace
	claims
)

func (h Harness) lacks(n need) bool {
	switch n {
	case begin:
		return h.Begin == nil
	case half:
		return h.Half == nil
	case breaks:
		return h.Break == nil
	case replace:
		return h.Replace == nil
	case claims:
		return h.NoClaims
	}
	return false
}

func cases() []testCase {
	return slices.Concat(readCases, groupsCases, claimCases, deleteCases, parkCases, contextCases)
}

func (h Harness) suiteCase(c testCase) suite.Case {
	out := suite.Case{Name: c.name, Run: func(t *testing.T) {
		x := &exam{t: t, Harness: h, ctx: t.Context()}
		x.Store, x.commitTx = h.New(t)
		c.run(x)
	}}
	if h.lacks(c.needs) {
		out.Skip = "the harness has no means for it"
	}
	return out
}
