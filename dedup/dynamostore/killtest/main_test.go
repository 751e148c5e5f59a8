// Package killtest_test kills real processes with SIGKILL in the middle of everything they do to a record, and checks
// the histories.
//
// The parent has the queues, the table and the ledger in which handlers write what they do. Its children are this test
// binary, run again: each is two workers, one with a Once and one with an Inbox. The parent sees every request of a
// child to DynamoDB before it has its effect, and after it, and kills the child there.
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
