package ops_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/ops"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

// lockerFolder is the environment variable that makes the test's program hold the lock of x.dlq in a folder, until it is killed.
const lockerFolder = "OPS_TEST_LOCK"

func TestMain(m *testing.M) {
	if folder := os.Getenv(lockerFolder); folder != "" {
		unlock, err := ops.Lock(arnPrefix+"jobs-dlq", folder)
		fmt.Println("locked:", err == nil)
		_, _ = io.Copy(io.Discard, os.Stdin) // until the test's process ends, should it not kill this one
		unlock()
		return
	}
	if err := flag.Set("rapid.checks", "50"); err != nil { // soak has more
		panic(err)
	}
	testserver.Main(m)
}

func needsLocks(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no lock of files on Windows")
	}
}

// refusedAsSecond reports whether a redrive is refused because of another one, before anything was received.
func (x *fixture) refusedAsSecond(journal string) bool {
	x.Helper()
	received := x.sqs.Messages(x.dlq)[0].ReceiveCount
	_, err := x.redriver().Redrive(context.Background(), noCanary, func(o *ops.RedriveOptions) { o.Journal = journal })
	r, refused := errors.AsType[*ops.RefusedError](err)
	if !refused {
		return false
	}
	if !errors.Is(err, ops.ErrTwoAtOnce) || r.Operation != "Redrive" || !strings.Contains(err.Error(), filepath.Dir(journal)) {
		x.Errorf("error %v", err)
	}
	if _, err := os.Stat(journal); !errors.Is(err, os.ErrNotExist) || x.sqs.Messages(x.dlq)[0].ReceiveCount != received {
		x.Errorf("the second one has begun: %v", err)
	}
	return true
}

// While a process redrives, no other one does with a journal in the same folder, whatever its name is. A process that is killed
// leaves no lock.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	needsLocks(t)
	folder := t.TempDir()
	program := must.Get(os.Executable())(t)
	other := exec.Command(program)
	other.Env = append(os.Environ(), lockerFolder+"="+folder)
	in, errIn := other.StdinPipe()
	out, errOut := other.StdoutPipe()
	must.Do(t, errors.Join(errIn, errOut, other.Start()))
	defer in.Close()
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "locked: true\n" {
		t.Fatalf("%q, %v", line, err)
	}
	bubble(t, setup{}, func(x *fixture) {
		x.fill(1)
		if !x.refusedAsSecond(filepath.Join(folder, "a")) {
			t.Error("not refused")
		}
	})
	must.Do(t, other.Process.Kill())
	_ = other.Wait()
	bubble(t, setup{}, func(x *fixture) {
		x.fill(1)
		x.redriveAll(x.redriver(), func(o *ops.RedriveOptions) { o.Journal = filepath.Join(folder, "b") })
		x.wantBodies(x.url, "g0-1")
	})
}

// Two redrives in one process are two as well. Those of other queues, in other folders, and without a journal are not refused,
// and none is when the first has ended.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	needsLocks(t)
	bubble(t, setup{}, func(x *fixture) {
		x.fill(3)
		folder := t.TempDir()
		with := func(journal string) func(*ops.RedriveOptions) {
			return func(o *ops.RedriveOptions) { o.Journal = journal }
		}
		goOn, done := make(chan struct{}), make(chan ops.Report)
		go func() {
			done <- x.redriveAll(x.redriver(), with(filepath.Join(folder, "first")), func(o *ops.RedriveOptions) {
				o.Filter = func(m *ops.Message) bool { <-goOn; return true }
			})
		}()
		synctest.Wait()
		if !x.refusedAsSecond(filepath.Join(folder, "second")) {
			t.Error("not refused")
		}
		for _, journal := range []string{"", filepath.Join(t.TempDir(), "third")} {
			if r, err := x.redriver().Redrive(context.Background(), noCanary, with(journal)); len(r.Results) != 0 || err != nil {
				t.Errorf("%d messages, which the first one has; %v", len(r.Results), err)
			}
		}
		jobs, dlq := x.url, x.dlq
		x.dlq = x.create("others-dlq", nil)
		x.url = x.create("others", x.redrive("others-dlq", 3))
		x.fill(1)
		x.redriveAll(x.redriver(), with(filepath.Join(folder, "fourth")))
		x.wantBodies(x.url, "g0-1")
		x.url, x.dlq = jobs, dlq
		close(goOn)
		if r := <-done; r.Count(ops.ActionRedriven) != 3 {
			t.Errorf("%d redriven", r.Count(ops.ActionRedriven))
		}
		x.redriveAll(x.redriver(), with(filepath.Join(folder, "second")))
		if files, _ := filepath.Glob(filepath.Join(folder, "*.lock")); len(files) != 2 {
			t.Errorf("%q", files)
		}
	})
}
