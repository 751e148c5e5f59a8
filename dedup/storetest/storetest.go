// Package storetest is the conformance suite of [dedup.Store]: a case for every sentence of its contract.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, storetest.Harness{
//			New: func(t *testing.T) dedup.Store { return memstore.New() },
//		})
//	}
//
// Each case gets a store of its own and, unless the harness says otherwise, a synctest bubble, in which time passes at
// once. Requests that arrive twice or late, as delayed copies of a packet do, are expressed as a second call with the
// same claim or lease: to a store the two are the same.
package storetest

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
)

// Harness says how to test a store.
type Harness struct {
	// New returns an empty store. It runs inside the case's bubble; servers and idle connections must be closed by
	// t.Cleanup. Required.
	New func(t *testing.T) dedup.Store
	// Advance lets d pass on the store's clock and on the caller's. Default: time.Sleep, which in a bubble takes no
	// time.
	Advance func(d time.Duration)
	// Lease is the unit in which the cases count. Default: 1 min. A server with a clock of its own: 2 s or more, since
	// expiry times may have whole seconds.
	Lease time.Duration
	// Grace is how long after a lease's end the store may still refuse to give it to another. Default: 5 s.
	Grace time.Duration
	// RealTime says that the store's server keeps its own clock. The cases run without a bubble and all at once, since they
	// wait more than they work: New must give each a store, or a table, of its own. Those that need more than an hour of
	// the store's clock are reported as skipped.
	RealTime bool
	// Known are the cases that the store is known to fail, with the reason. One that passes, or that does not exist, is
	// a failure: the list never rots.
	Known map[string]string
}

// Run runs every case as a subtest.
func Run(t *testing.T, h Harness) {
	t.Helper()
	h = h.withDefaults()
	all := cases()
	for _, name := range h.unknown(all) {
		t.Errorf("Harness.Known: no case %q", name)
	}
	if h.RealTime {
		h.runAll(t, all)
		return
	}
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			if err := h.verdict(c.name, h.run(t, c)); err != nil {
				t.Error(err)
			}
		})
	}
}

// runAll starts every case and then reports each as a subtest. Parallel subtests would be as few as the processors.
func (h Harness) runAll(t *testing.T, all []testCase) {
	outcomes := make([]chan error, len(all))
	for i, c := range all {
		outcomes[i] = make(chan error, 1)
		if c.hours {
			continue
		}
		go func() {
			defer close(outcomes[i]) // also where New has called t.Fatal, which ends this goroutine
			outcomes[i] <- h.examine(t, c)
		}()
	}
	for i, c := range all {
		t.Run(c.name, func(t *testing.T) {
			if c.hours {
				t.Skip("needs more than an hour of the store's clock")
			}
			outcome, ok := <-outcomes[i]
			if !ok {
				t.Fatal("there is no store")
			}
			if err := h.verdict(c.name, outcome); err != nil {
				t.Error(err)
			}
		})
	}
}

// verdict says whether a case's outcome is a failure of the test.
func (h Harness) verdict(name string, err error) error {
	reason, known := h.Known[name]
	switch {
	case !known:
		return err
	case err == nil:
		return fmt.Errorf("passes, but is listed as known to fail: %s", reason)
	}
	return nil
}

// unknown returns the names in Known that are no case's.
func (h Harness) unknown(all []testCase) []string {
	names := slices.Sorted(maps.Keys(h.Known))
	return slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(all, func(c testCase) bool { return c.name == name })
	})
}

func (h Harness) withDefaults() Harness {
	if h.Advance == nil {
		h.Advance = time.Sleep
	}
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
	hours bool // passes more than an hour of the store's clock
	run   func(x *exam)
}

func cases() []testCase {
	return slices.Concat(acquireCases, leaseCases, completeCases, releaseCases, retryCases, fenceCases, keyCases)
}

// run gives the case a store and a bubble of its own, and returns why it failed.
func (h Harness) run(t *testing.T, c testCase) (err error) {
	synctest.Test(t, func(t *testing.T) { err = h.examine(t, c) })
	return err
}

func (h Harness) examine(t *testing.T, c testCase) (err error) {
	defer func() {
		if v := recover(); v != nil {
			f, ok := v.(failure)
			if !ok {
				panic(v)
			}
			err = f
		}
	}()
	c.run(&exam{Store: h.New(t), Harness: h, ctx: t.Context()})
	return nil
}
