//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// The first interrupt ends a redrive when what is under way has ended: nothing stays hidden, and the command that it prints, in a
// shell, does the rest without a second copy of anything.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		w := newWorld(t, "orders")
		for i := range 80 {
			w.send(w.dlq, "e"+strconv.Itoa(i), 0)
		}
		p := w.redrive("--all", "--canary=0", "--unknown", "--rate=10", "--hold=10s", "--yes", "--source", "arn:aws:sqs:us-east-1:000000000000:orders")
		w.eventually("some are sent", func() bool { return len(w.stack.MemSQS().Messages("orders")) > 0 })
		must.Do(t, p.Process.Signal(signal))
		code, errs := p.end(), p.err.String()
		sent := len(w.stack.MemSQS().Messages("orders"))
		if code != 4 || sent == 80 || w.hidden() != 0 || len(w.stack.MemSQS().Messages(w.dlq)) != 80-sent || !strings.HasPrefix(p.out.String(), "redriven\t"+strconv.Itoa(sent)) {
			t.Errorf("exit %d, %d sent, %d hidden: %s%s", code, sent, w.hidden(), p.out, errs)
		}
		_, command, found := strings.Cut(errs, "to go on: ")
		if !found {
			t.Fatalf("no command in %s", errs)
		}
		command, _, _ = strings.Cut(command, "\n")
		w.eventually("the same command again does the rest", func() bool { // the answer to a receive may be lost: then it says so
			again := w.start(exec.Command("sh", "-c", `sqsonce() { "$0" "$@"; }; `+command, os.Args[0]))
			code := again.end()
			left := len(w.stack.MemSQS().Messages(w.dlq))
			if code != 0 && code != 4 || (code == 0) != (left == 0) {
				t.Errorf("%s\nexit %d, %d left: %s%s", command, code, left, again.out, again.err)
			}
			return code != 4
		})
		if n := len(w.stack.MemSQS().Messages("orders")); n != 80 {
			t.Errorf("%d messages", n)
		}
	}
}

// The second interrupt does not wait.
func TestSecondInterrupt(t *testing.T) {
	t.Parallel()
	for signal, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		w := newWorld(t, "orders")
		w.send(w.dlq, "e", 0)
		w.stack.MemSQS().Set(fault.Plan{Rules: []fault.Rule{{Op: "SendMessageBatch", Prob: 1, Do: fault.Delay, Delay: time.Minute}}})
		journal := filepath.Join(t.TempDir(), "journal.jsonl")
		p := w.redrive("--all", "--canary=0", "--unknown", "--yes", "--journal", journal)
		w.eventually("the message is being sent", func() bool { // the line is there before the call
			lines, err := os.ReadFile(journal)
			return err == nil && strings.Contains(string(lines), `"send":`)
		})
		must.Do(t, p.Process.Signal(os.Interrupt))
		w.eventually("it says so", func() bool { return strings.Contains(p.err.String(), "interrupted") })
		must.Do(t, p.Process.Signal(signal))
		if code := p.end(); code != want || len(w.stack.MemSQS().Messages(w.dlq)) != 1 {
			t.Errorf("exit %d, want %d: %s", code, want, p.err)
		}
	}
}

// Who reads the result may go away: the redrive ends, and gives back what it has not sent.
func TestClosedPipe(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "orders")
	for i := range 80 {
		w.send(w.dlq, "e"+strconv.Itoa(i), 0)
	}
	r, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	cmd := exec.Command(os.Args[0], "dlq", "redrive", "--all", "--canary=0", "--unknown", "--json", "--yes")
	cmd.Stdout = out
	p := w.start(cmd)
	out.Close()
	if code := p.end(); code != 1 || w.hidden() != 0 || !strings.Contains(p.err.String(), "broken pipe") {
		t.Errorf("exit %d, %d hidden: %s", code, w.hidden(), p.err)
	}
	if n := len(w.stack.MemSQS().Messages("orders")) + len(w.stack.MemSQS().Messages(w.dlq)); n != 80 {
		t.Errorf("%d messages", n)
	}
}
