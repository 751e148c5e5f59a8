// Package storetest is the conformance suite of [dedup.Store], with a case for every sentence of its contract.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, storetest.Harness{
//			New: func(t *testing.T) dedup.Store { return memstore.New() },
//		})
//	}
//
// Each case gets a store of its own and, by default, a synctest bubble, in which time passes at once. A second call with the
// same claim or lease stands for a request that arrives twice or late, like a delayed copy of a packet, because a store can't
// distinguish the two.
package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/suite"
)

// Harness describes how to test a store.
type Harness struct {
	// New returns an empty store. It runs inside the case's bubble. t.Cleanup must close servers and idle connections.
	// Required.
	New func(t *testing.T) dedup.Store
	// These functions return a store whose server can't be reached, and a store whose table is missing or whose access is
	// denied. If one is nil, because the store lacks that state, its case is reported as skipped.
	Away, Misconfigured func(t *testing.T) dedup.Store
	// Attributes gives access to whole records. If it is nil, its cases are reported as skipped.
	Attributes *Attributes
	// Unlisted returns a store whose server answers every operation with an error that the store does not know: a code that
	// the test invents. If it is nil, because the store lacks that state, the case is reported as skipped.
	Unlisted func(t *testing.T) dedup.Store
	// ReadOnly returns an empty store that answers reads and refuses every write. If it is nil, because the store has no such
	// state, the case is reported as skipped.
	ReadOnly func(t *testing.T) dedup.Store
	// NoRecord are kinds of another program's data, which the store can find under a key. Each function writes its kind. If the map is
	// empty, because only the store writes there, the case is reported as skipped.
	NoRecord map[string]func(ctx context.Context, s dedup.Store, key string) error
	// Inbox guards the handler with an inbox of the store. Where the message's body is "refused" the server refuses a write of the
	// handler's transaction. If it is nil, because the store has no inbox, its cases are reported as skipped.
	Inbox func(s dedup.Store, consumer string, h sqsonce.Handler, optFns ...func(*dedup.Options)) (sqsonce.Handler, error)
	// Lease is the length of the leases of the cases. The times that the cases let pass are multiples of it.
	// Default: 1 minute. Limits: in real time 2 s or more, since a store may round expiry times to seconds, and longer than the
	// store waits for an answer before it sends a request again.
	Lease time.Duration
	// Grace is how long after a lease's end the store may still refuse a takeover.
	// Default: 5 s.
	Grace time.Duration
	// RealTime says that the store's server has a clock of its own. The cases then run without a bubble and at the same time,
	// since they wait more than they work. So New must give each case a store, or a table, of its own.
	RealTime bool
	// Age moves the times in all records of the store d into the past, as if they had been written so much earlier. If it is nil,
	// cases that need more than an hour of the store's clock are reported as skipped in real time.
	Age func(ctx context.Context, s dedup.Store, d time.Duration) error
}

// atOnce is how many cases run at the same time in real time.
const atOnce = 64

// Run runs every case as a subtest.
func Run(t *testing.T, h Harness) {
	t.Helper()
	h = h.withDefaults()
	var all []suite.Case
	for _, c := range cases() {
		all = append(all, h.suiteCase(c))
	}
	suite.Run(t, all, suite.Options{Bubble: !h.RealTime, AtOnce: atOnce})
}

func (h Harness) withDefaults() Harness {
	if h.Lease == 0 {
		h.Lease = time.Minute
	}
	if h.Grace == 0 {
		h.Grace = 5 * time.Second
	}
	return h
}

// testCase is one sentence of the contract.
type testCase struct {
	name  string
	hours bool // lets more than an hour pass on the store's clock
	on    state
	run   func(x *exam)
}

// state is which of a harness's stores a case runs on.
type state int

const (
	usable state = iota
	away
	misconfigured
	unlisted
	readOnly
)

func (h Harness) store(s state) func(*testing.T) dedup.Store {
	switch s {
	case away:
		return h.Away
	case misconfigured:
		return h.Misconfigured
	case unlisted:
		return h.Unlisted
	case readOnly:
		return h.ReadOnly
	}
	return h.New
}

func cases() []testCase {
	return slices.Concat(acquireCases, renewCases, completeCases, rerenewCases, retryCases, fenceCases, ownerCases, keyCases, reopenCases, keepCases, listCases, unavailableCases, attributeCases)
}

// suiteCase gives the case a store of its own.
func (h Harness) suiteCase(c testCase) suite.Case {
	out := suite.Case{Name: c.name, Run: func(t *testing.T) {
		x := &exam{Store: h.store(c.on)(t), Harness: h, ctx: t.Context(), advance: time.Sleep}
		if c.hours && h.RealTime {
			x.advance = x.ageOrWait
		}
		c.run(x)
	}}
	if h.store(c.on) == nil {
		out.Skip = "the harness has no store in this state"
	}
	if c.hours && h.RealTime && h.Age == nil {
		out.Skip = "needs more than an hour of the store's clock"
	}
	return out
}
