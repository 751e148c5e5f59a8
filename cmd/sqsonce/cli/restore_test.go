package cli

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// What a restore does with flags and answers: its question, its exit code, and what is in the queue.
func TestRestore(t *testing.T) {
	for _, test := range []struct {
		command  string
		answer   string // on a terminal; "": there is none
		asks     bool
		code     exitCode
		restored int // of three released and a completed one
		says     string
	}{
		{"restore ARCHIVE", "y", true, exitDone, 4, "4 of about 4 messages would be restored"},
		{"restore ARCHIVE", "n", true, exitRefused, 0, "nothing was changed"},
		{"restore ARCHIVE", "", false, exitRefused, 0, "--yes"},
		{"restore ARCHIVE --all --yes", "", false, exitDone, 4, "journal /"},
		{"restore ARCHIVE --state completed --yes", "", false, exitDone, 1, ""},
		{"restore ARCHIVE --key orders|e1 --yes", "", false, exitDone, 1, ""},
		{"restore ARCHIVE --class 000000", "y", false, exitDone, 0, "0 of about 4"},
		{"restore ARCHIVE --all --state completed", "y", false, exitUsage, 0, "--all"},
		{"restore ARCHIVE --yes --expect 4", "", false, exitDone, 4, ""},
		{"restore ARCHIVE --yes --expect 3", "", false, exitRefused, 0, "--expect is 3"},
		{"restore ARCHIVE --dry-run", "", false, exitDone, 0, "4 of about 4"},
		{"restore ARCHIVE --dry-run --journal j", "", false, exitUsage, 0, "--journal"},
		{"restore", "y", false, exitUsage, 0, "arg"},
		{"restore ARCHIVE.gz --yes", "", false, exitFailed, 0, "cannot be read"},
		{"restore ARCHIVE --consumer= --yes", "", false, exitDone, 4, ""},
		{"restore ARCHIVE --queue orders.fifo --yes", "", false, exitPart, 0, "4 selected messages were not restored"},
		{"restore ARCHIVE --queue orders.fifo", "y", false, exitPart, 0, "no message can be restored"},
		{"restore ARCHIVE --queue orders.fifo --other-queue --yes", "", false, exitPart, 0, "4 selected messages were not restored"},
	} {
		run(t, test.command+test.answer, func(w *world) {
			w.put("done", dedup.StateCompleted)
			w.send("orders-dlq", "done", "b")
			w.deadLetters(3)
			w.dlq("delete --archive ARCHIVE --all --yes --expect 4")
			before := len(w.audited())
			w.terminal, w.answer = test.answer != "", test.answer
			got := w.dlq(test.command)
			if got.code != test.code || !strings.Contains(got.err, test.says) || strings.Contains(got.err, asksYesNo) != test.asks {
				w.Errorf("exit %d, want %d with %q: %s%s", got.code, test.code, test.says, got.out, got.err)
			}
			if n := left(w) + len(w.stack.MemSQS().Messages("orders-dlq.fifo")); n != test.restored {
				w.Errorf("%d restored", n)
			}
			if n := len(w.audited()) - before; (n == 2) != strings.Contains(got.err, "journal "+w.folder) || n == 1 {
				w.Errorf("%d lines in the audit, and it prints %q", n, got.err)
			}
		})
	}
}

// An interrupt ends a restore in part; the command that it prints does the rest, and sends nothing twice.
func TestInterruptedRestore(t *testing.T) {
	bubble(t, func(w *world) {
		w.deadLetters(60)
		w.dlq("delete --archive ARCHIVE --all --yes --expect 60")
		w.stack.MemSQS().Set(fault.Plan{Rules: []fault.Rule{{Op: "SendMessageBatch", Do: fault.Delay, Delay: time.Second}}})
		ctx, cancel := context.WithCancelCause(context.Background())
		w.caller = func(context.Context) (string, error) {
			time.AfterFunc(2500*time.Millisecond, func() { cancel(errInterrupted) })
			return callerARN, nil
		}
		got := w.dlqIn(ctx, "restore ARCHIVE --yes")
		sent := left(w)
		command, _ := got.goOn()
		if got.code != exitPart || sent == 0 || sent == 60 || !strings.Contains(command, "--journal "+filepath.Join(w.folder, "sqsonce", "restore-orders-dlq-")) {
			t.Fatalf("%d sent: %+v", sent, got)
		}
		w.stack.MemSQS().Set(fault.Plan{})
		if got := w.run(words(command)...); got.code != exitDone || left(w) != 60 || !strings.HasPrefix(got.out, "restored\t60\t") {
			t.Errorf("%s: %d sent, %+v", command, left(w), got)
		}
		lines := w.audited()
		if i := slices.IndexFunc(lines, func(l auditLine) bool { return l.What == "dlq restore" }); len(lines)-i != 4 || lines[i+1].Error != "interrupted" || lines[i+3].Error != "" {
			t.Errorf("audit %+v", lines)
		}
	})
}
