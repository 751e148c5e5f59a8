// Package ddbtest is the conformance suite of DynamoDB: what AWS documents of tables, single-item calls, expressions,
// batches, transactions, PartiQL, indexes and capacity, as cases that any implementation of the API can be put through
// by the real SDK client.
//
//	func TestMine(t *testing.T) {
//		ddbtest.Run(t, ddbtest.Backend{New: func(t *testing.T) ddbtest.Account { return ddbtest.Account{Client: mine(t)} }})
//	}
//
// Error codes are compared, and texts only where AWS documents them.
package ddbtest

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Backend is an implementation under test.
type Backend struct {
	// New returns an account that nobody else uses while the case runs, or whose other users' tables have other names than
	// the suite's, which are random. It runs inside the case's bubble; servers and idle connections must be closed by
	// t.Cleanup. Required.
	New func(t *testing.T) Account
	// RealTime says that the backend keeps its own clock. The cases run without a bubble, several at once, and those that
	// need ten minutes are reported as skipped.
	RealTime bool
	// Known are the cases that the backend is known to fail, with the reason. One that passes, or that does not exist, is
	// a failure: the list never rots.
	Known map[string]string
}

// Account is what a case works with.
type Account struct {
	// Client must make one attempt a call. Required.
	Client *dynamodb.Client
	// SweepTTL deletes the items whose time to live is over, now. Default: the cases that need it are reported as skipped.
	SweepTTL func() error
}

// Run runs every case as a subtest.
func Run(t *testing.T, b Backend) {
	t.Helper()
	all := cases()
	for _, name := range b.unknown(all) {
		t.Errorf("Backend.Known: no case %q", name)
	}
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			if b.RealTime {
				t.Parallel()
			}
			if b.RealTime && c.minutes {
				t.Skip("needs ten minutes of the backend's clock")
			}
			o := b.run(t, c)
			if o.skip != "" {
				t.Skip(o.skip)
			}
			if err := b.verdict(c.name, o.err); err != nil {
				t.Error(err)
			}
		})
	}
}

// verdict says whether a case's outcome is a failure of the test.
func (b Backend) verdict(name string, err error) error {
	reason, known := b.Known[name]
	switch {
	case !known:
		return err
	case err == nil:
		return fmt.Errorf("passes, but is listed as known to fail: %s", reason)
	}
	return nil
}

// unknown returns the names in Known that are no case's.
func (b Backend) unknown(all []testCase) []string {
	names := slices.Sorted(maps.Keys(b.Known))
	return slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(all, func(c testCase) bool { return c.name == name })
	})
}

// testCase is one rule of DynamoDB.
type testCase struct {
	name    string
	minutes bool // passes ten minutes of the backend's clock
	run     func(x *exam)
}

func cases() []testCase {
	return slices.Concat(
		tableCases, ttlCases, putCases, getCases, updateCases, deleteCases, returnCases,
		conditionCases(), functionCases(), refusedConditionCases(), placeholderCases(), reservedCases,
		updateExpressionCases(), refusedUpdateCases(), projectionCases,
		keyCases, numberCases(), valueCases, sizeCases,
		batchWriteCases, batchGetCases, transactWriteCases, reasonCases, tokenCases, transactGetCases,
		statementCases, refusedStatementCases(), batchStatementCases,
		queryCases, scanCases, indexCases, capacityCases, transactCapacityCases, wireCases(),
	)
}

// outcome is how a case ended: it did not run, it failed, or neither.
type outcome struct {
	skip string
	err  error
}

// run gives the case an account of its own.
func (b Backend) run(t *testing.T, c testCase) (o outcome) {
	if b.RealTime {
		return b.examine(t, c)
	}
	synctest.Test(t, func(t *testing.T) { o = b.examine(t, c) })
	return o
}

func (b Backend) examine(t *testing.T, c testCase) (o outcome) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case failure:
			o.err = v
		case unsupported:
			o.skip = string(v)
		default:
			panic(v)
		}
	}()
	c.run(&exam{t: t, ctx: t.Context(), account: b.New(t)})
	return o
}
