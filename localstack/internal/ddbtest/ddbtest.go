// Package ddbtest is a conformance suite of DynamoDB: what AWS documents of tables, calls of one item, expressions,
// batches, transactions, PartiQL, indexes, capacity and streams, as cases that call any implementation of the API through the AWS
// SDK.
//
//	func TestMine(t *testing.T) {
//		ddbtest.Run(t, ddbtest.Backend{New: func(t *testing.T) ddbtest.Account { return ddbtest.Account{Client: mine(t)} }})
//	}
//
// Cases compare error codes, and error texts only where AWS documents them.
package ddbtest

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/sqsonce/sqsonce/internal/suite"
)

// Backend is an implementation under test.
type Backend struct {
	// New returns an account. Cases may share one, since each creates tables with random names. It runs inside the case's
	// bubble. t.Cleanup must close servers and idle connections. Required.
	New func(t *testing.T) Account
	// RealTime says that the backend has a clock of its own. The cases run without a bubble, several at once, and those that
	// need ten minutes are reported as skipped.
	RealTime bool
	// Prefix begins the name of every table. Default: "".
	Prefix string
	// Known are the cases that the backend is known to fail, with the reason. One that passes, or that does not exist, is a
	// failure: so the list stays true.
	Known map[string]string
}

// Account is what a case calls.
type Account struct {
	// Client must send each request once (aws.NopRetryer). Required.
	Client *dynamodb.Client
	// Streams must send each request once. Default: the cases of streams are reported as skipped.
	Streams *dynamodbstreams.Client
	// SweepTTL deletes the items whose time to live has ended. Default: the cases that need it are reported as skipped.
	SweepTTL func() error
}

// atOnce is how many cases run at the same time in real time.
const atOnce = 16

// Run runs every case as a subtest.
func Run(t *testing.T, b Backend) {
	t.Helper()
	var all []suite.Case
	for _, c := range cases() {
		all = append(all, b.suiteCase(c))
	}
	suite.Run(t, all, suite.Options{Known: b.Known, Bubble: !b.RealTime, AtOnce: atOnce})
}

// suiteCase gives the case an account of its own.
func (b Backend) suiteCase(c testCase) suite.Case {
	out := suite.Case{Name: c.name, Run: func(t *testing.T) {
		x := &exam{t: t, ctx: t.Context(), account: b.New(t), prefix: b.Prefix}
		if c.keys != "" {
			x.use(strings.Fields(c.keys)...)
		}
		c.run(x)
	}}
	if c.minutes && b.RealTime {
		out.Skip = "needs ten minutes of the backend's clock"
	}
	return out
}

// testCase is one rule of DynamoDB.
type testCase struct {
	name    string
	minutes bool   // lets ten minutes pass on the backend's clock
	keys    string // of the table that it uses: see use. "": it makes its own
	run     func(x *exam)
}

func cases() []testCase {
	return slices.Concat(
		tableCases, updateTableCases, settingCases, tagCases, backupCases, ttlCases, putCases, getCases, updateCases, deleteCases, returnCases,
		conditionCases(), functionCases(), refusedConditionCases(), placeholderCases(), reservedCases,
		updateExpressionCases(), refusedUpdateCases(), projectionCases,
		keyCases, nestedKeyCases, numberCases(), valueCases, sizeCases, nameCases,
		batchWriteCases, batchGetCases, transactWriteCases, reasonCases, tokenCases, transactGetCases, orderCases, envelopeCases,
		statementCases, refusedStatementCases(), batchStatementCases,
		streamCases(), queryCases, refusedQueryCases, pageCases, scanCases, startKeyCases, indexCases, indexRuleCases, capacityCases, transactCapacityCases, wireCases(),
	)
}
