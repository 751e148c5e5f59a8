// Package sqstest is a conformance suite of SQS, as its users meet it: a case for every rule of delivery, order,
// deduplication and failure that AWS documents, run through the AWS SDK against any server.
//
//	func TestSQS(t *testing.T) {
//		sqstest.Run(t, sqstest.Backend{
//			Virtual: true,
//			New: func(t *testing.T) *sqs.Client {
//				srv := memsqs.New()
//				t.Cleanup(srv.Close)
//				return sqs.New(sqs.Options{HTTPClient: &http.Client{Transport: srv}, ...})
//			},
//		})
//	}
//
// A backend lists the cases that it is known to fail, each with a reason. A listed case that passes is a failure: so the
// list stays true.
//
// # Sources
//
// Each case names what it rests on:
//
//   - API: the page API_<name> of the Amazon SQS API Reference,
//     https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/
//   - Guide: the page of that name in the Amazon SQS Developer Guide,
//     https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/
//   - Recorded: answers of AWS itself that the tests of LocalStack (tests/aws/services/sqs) keep as snapshots, or assert and are
//     marked as validated on AWS.
//
// Where AWS says nothing there is no case, unless its text allows one result only.
package sqstest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/internal/suite"
)

// Backend says how to test a server.
type Backend struct {
	// New returns a client of the server, which must send each request once (aws.NopRetryer). With Virtual it is called for
	// each case, inside the case's bubble, and must return a client of a server of its own, which t.Cleanup closes. Without
	// Virtual it is called once, and the cases share the server, each with queues of its own. Required.
	New func(t *testing.T) *sqs.Client
	// Virtual runs each case in a testing/synctest bubble, where time passes at once and exactly. The server must be in the
	// same process and use no sockets.
	Virtual bool
	// Prefix begins the name of every queue. At most 24 characters. Default: "".
	Prefix string
	// Patience is how long a case may let pass in real time; others are reported as skipped. It has no effect with Virtual.
	// Default: 3 s.
	Patience time.Duration
	// Only, if not nil, are the cases to run.
	Only []string
	// Known are the cases that the server is known to fail, with the reason. One that passes, or that does not exist, is a
	// failure.
	Known map[string]string
}

// atOnce is how many cases run at the same time on a shared server.
const atOnce = 24

// Run runs every case as a subtest.
func Run(t *testing.T, b Backend) {
	t.Helper()
	client := func(t *testing.T) *sqs.Client { return b.New(t) }
	if !b.Virtual {
		c := b.New(t)
		client = func(*testing.T) *sqs.Client { return c }
	}
	var all []suite.Case
	for _, c := range cases() {
		all = append(all, b.suiteCase(c, client))
	}
	suite.Run(t, all, suite.Options{Known: b.Known, Only: b.Only, Bubble: b.Virtual, AtOnce: atOnce})
}

func (b Backend) suiteCase(c testCase, client func(*testing.T) *sqs.Client) suite.Case {
	out := suite.Case{
		Name:   c.name,
		Serial: c.serial,
		Run:    func(t *testing.T) { b.examine(t.Context(), client(t), c) },
	}
	if b.tooLong(c) {
		out.Skip = fmt.Sprintf("%v pass on the server's clock, which cannot be set", c.passes)
	}
	return out
}

func (b Backend) tooLong(c testCase) bool {
	return !b.Virtual && c.passes > cmp.Or(b.Patience, 3*time.Second)
}

// testCase is one rule of SQS.
type testCase struct {
	name string
	// passes is how much time the case lets pass on the server's clock, without the waits of its long polls.
	passes time.Duration
	// serial is for a case that, on a server that breaks its rule, disturbs the cases that run beside it.
	serial bool
	run    func(x *exam)
}

func cases() []testCase {
	return slices.Concat(
		messageCases, attributeCases, contentCases, sizeCases, batchCases, batchErrorCases, visibilityCases, visibilityLimitCases, handleCases,
		deleteCases, pollCases, delayCases, queueCases, queueAttributeCases, purgeCases, retentionCases, redriveCases,
		redrivePolicyCases, moveCases, groupCases, groupLockCases, groupHandleCases, tokenCases, dedupCases, dedupScopeCases, attemptCases, fairCases, wireCases, recordedCases, recordedTextCases, recordedHandleCases,
	)
}

// caseTimeout ends a case on a server that does not answer. In a bubble it takes no time, and is longer than any case.
const caseTimeout = 100 * 24 * time.Hour

// examine runs a case, which ends by [suite.Failf] when it fails.
func (b Backend) examine(ctx context.Context, client *sqs.Client, c testCase) {
	timeout := caseTimeout
	if !b.Virtual {
		timeout = time.Minute + c.passes
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	x := &exam{Backend: b, ctx: ctx, c: client}
	defer x.cleanUp()
	c.run(x)
	if x.passed > c.passes {
		x.fatalf("lets %v pass, declares %v", x.passed, c.passes)
	}
}
