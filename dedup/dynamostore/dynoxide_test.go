package dynamostore

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/storetest"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

// onDynoxide is the environment variable with the URL of the emulator that the tests of this package run on.
const onDynoxide = "DYNAMOSTORE_TEST_ENDPOINT"

// emulated is the connection to the emulator, used by one bubble at a time; nil: the tests run on DynamoDB in memory.
var emulated *testserver.Line

func TestMain(m *testing.M) {
	if url := os.Getenv(onDynoxide); url != "" {
		emulated = testserver.NewLine(url)
	}
	testserver.Main(m)
}

// notOnDynoxide are tests that fail on dynoxide 1.2.1, or need what only the server in memory has.
var notOnDynoxide = map[string]string{
	"TestThrottledInsertsAreBatchedAgain": "its faults are of single statements of a batch, which only the server in memory has",
}

// inMemoryOnly are the tests with a server of their own.
const inMemoryOnly = "^(TestOnDynoxide|TestConformanceOnDynoxide|TestSchedules|TestSchedulesSeeBrokenConditions|TestConnectionsThatDiedInAFreeze)$"

var statusLine = regexp.MustCompile(`^ *--- (PASS|FAIL|SKIP): (\S+)`)

// Every test of this package also runs on dynoxide, an implementation of the API that has no code in common with the server
// in memory, in the same bubbles and with the same faults. The tests run again, in a process of their own, one at a time.
func TestOnDynoxide(t *testing.T) {
	t.Parallel()
	if emulated != nil {
		t.Skip("this is the run on dynoxide")
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.parallel=1", "-test.skip="+inMemoryOnly)
	cmd.Env = append(os.Environ(), onDynoxide+"="+testserver.Dynoxide.Shared(t).URL)
	out, runErr := cmd.CombinedOutput()
	statuses := map[string]string{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		if m := statusLine.FindStringSubmatch(lines.Text()); m != nil {
			statuses[m[2]] = m[1]
		}
	}
	failed := 0
	for name, status := range statuses {
		if status != "FAIL" || hasFailedChild(statuses, name) {
			continue
		}
		failed++
		if notOnDynoxide[name] == "" {
			t.Errorf("%s fails on dynoxide", name)
		}
	}
	for name, reason := range notOnDynoxide {
		if statuses[name] != "FAIL" {
			t.Errorf("%s does not fail on dynoxide (%q), but is listed to: %s", name, statuses[name], reason)
		}
	}
	if len(statuses) < 100 || (runErr == nil) != (failed == 0) {
		t.Errorf("%d statuses, %d failures, and the process ended with %v", len(statuses), failed, runErr)
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
}

// hasFailedChild reports whether a test failed because of its subtests.
func hasFailedChild(statuses map[string]string, name string) bool {
	for other, status := range statuses {
		if status == "FAIL" && strings.HasPrefix(other, name+"/") {
			return true
		}
	}
	return false
}

// The conformance suite on dynoxide, by sockets and in real time.
func TestConformanceOnDynoxide(t *testing.T) {
	t.Parallel()
	b := &bed{T: t}
	client := b.clientOf(http.DefaultTransport, testserver.Dynoxide.Shared(t).URL)
	storetest.Run(t, storetest.Harness{
		New: func(t *testing.T) dedup.Store {
			table := "dedup-" + rand.Text()
			if err := CreateTable(t.Context(), client, table); err != nil {
				t.Fatal(err)
			}
			s, err := New(client, table)
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
		RealTime: true,
		Lease:    2 * time.Second,
		Grace:    4 * time.Second, // the takeover margin, a Date's second, and the delay of a busy machine
	})
}
