// Package killtest_test kills real processes with SIGKILL at every step of a record's lifetime, and checks the histories.
//
// The parent has the queues, the table and the ledger to which the handlers report. Its children are processes of this test
// binary: each runs two workers, one with a Once and one with an Inbox. Every request of a child to DynamoDB passes the
// parent, which kills the child before or after the request's effect.
package killtest_test

import (
	"os"
	"testing"

	"github.com/sqsonce/sqsonce/internal/testserver"
)

func TestMain(m *testing.M) {
	if os.Getenv(envChild) != "" {
		runChild()
		return
	}
	testserver.Main(m)
}
