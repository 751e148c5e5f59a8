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

// onDynoxide names the variable that makes the tests of this package run on the emulator at the URL.
const onDynoxide = "DYNAMOSTORE_TEST_ENDPOINT"

// emulated leads to the emulator; nil: the tests run on DynamoDB in memory. Bubbles share it, one at a time.
var emulated *testserver.Line

func TestMain(m *testing.M) {
	if url := os.Getenv(onDynoxide); url != "" {
		emulated = testserver.NewLine(url)
	}
	testserver.Main(m)
}

// notOnDynoxide are tests of ours that fail on dynoxide 1.2.1, or need what only the server in memory has.
var notOnDynoxide = map[string]string{
	"TestWriteUnits": "an error says nothing of the units that it cost; the server in memory records them",
}

// inMemoryOnly are the tests that have a server of their own.
const inMemoryOnly = "^(TestOnDynoxide|TestConformanceOnDynoxide|TestSchedules|TestSchedulesSeeBrokenConditions|TestBrokenConditionsHaveNoOrder|TestConnectionsThatDiedInAFreeze)$"

var verdictLine = regexp.MustCompile(`^ *--- (PASS|FAIL|SKIP): (\S+)`)

// Every test of this package also runs on dynoxide, an implementation of the API that shares no line with ours, in the
// same bubbles and with the same faults: the tests run once more, in a process of their own, one at a time.
func TestOnDynoxide(t *testing.T) {
	t.Parallel()
	if emulated != nil {
		t.Skip("this is the run on dynoxide")
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.parallel=1", "-test.skip="+inMemoryOnly)
	cmd.Env = append(os.Environ(), onDynoxide+"="+testserver.Dynoxide.Shared(t).URL)
	out, runErr := cmd.CombinedOutput()
	verdicts := map[string]string{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		if m := verdictLine.FindStringSubmatch(lines.Text()); m != nil {
			verdicts[m[2]] = m[1]
		}
	}
	failed := 0
	for name, verdict := range verdicts {
		if verdict != "FAIL" || hasFailedChild(verdicts, name) {
			continue
		}
		failed++
		if notOnDynoxide[name] == "" {
			t.Errorf("%s fails on dynoxide", name)
		}
	}
	for name, reason := range notOnDynoxide {
		if verdicts[name] != "FAIL" {
			t.Errorf("%s does not fail on dynoxide (%q), but is listed to: %s", name, verdicts[name], reason)
		}
	}
	if len(verdicts) < 100 || (runErr == nil) != (failed == 0) {
		t.Errorf("%d verdicts, %d failures, and the process ended with %v", len(verdicts), failed, runErr)
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
}

// hasFailedChild tells a test that failed by itself from one that failed by its subtests.
func hasFailedChild(verdicts map[string]string, name string) bool {
	for other, verdict := range verdicts {
		if verdict == "FAIL" && strings.HasPrefix(other, name+"/") {
			return true
		}
	}
	return false
}

// The suite of every store on dynoxide as it is: by sockets, in real time.
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
		Grace:    4 * time.Second, // the guard, a Date's second, and what a busy machine takes
	})
}
