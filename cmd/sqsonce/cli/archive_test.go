package cli

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/ops"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// dlq runs a command of the dead-letter queue. ARCHIVE in its flags is a file in the world's folder.
func (w *world) dlq(command string) result { return w.dlqIn(context.Background(), command) }

func (w *world) dlqIn(ctx context.Context, command string) result {
	return w.runIn(ctx, w.dlqLine(command)...)
}

func (w *world) dlqLine(command string) []string {
	args := strings.Fields(strings.ReplaceAll(command, "ARCHIVE", w.archive()))
	return slices.Concat([]string{"dlq", args[0]}, redriveLine[2:], args[1:])
}

func (w *world) archive() string { return filepath.Join(w.folder, "a.jsonl") }

// archived returns the IDs of the messages in the archive.
func (w *world) archived() (ids []string) {
	w.Helper()
	file, err := os.Open(w.archive())
	if os.IsNotExist(err) {
		return nil
	}
	must.Do(w, err)
	defer file.Close()
	for m, err := range ops.ReadArchive(file) {
		must.Do(w, err)
		ids = append(ids, m.ID)
	}
	return ids
}

// What export and delete do with flags and answers: their question, exit code, what is in the archive, and what stays.
func TestExportAndDelete(t *testing.T) {
	const yesNo, name = asksYesNo, "Type orders-dlq to delete these 11 messages: "
	for _, test := range []struct {
		command        string
		messages       int    // besides a completed one
		answer         string // on a terminal; "": there is none
		question       string
		code           exitCode
		archived, left int
		says           string
	}{
		{"export ARCHIVE", 3, "", "", exitDone, 4, 4, "archive /"},
		{"export ARCHIVE --all", 3, "n", "", exitDone, 4, 4, ""},
		{"export ARCHIVE --completed", 3, "", "", exitUsage, 0, 4, "--completed"},
		{"export ARCHIVE --state completed", 3, "", "", exitDone, 1, 4, ""},
		{"export ARCHIVE --state completed --all", 3, "", "", exitUsage, 0, 4, "--all"},
		{"export ARCHIVE --dry-run", 3, "", "", exitDone, 0, 4, "4 of about 4 messages would be exported"},
		{"export ARCHIVE --expect 3", 3, "", "", exitRefused, 0, 4, "--expect is 3"},
		{"export", 3, "", "", exitUsage, 0, 4, "arg"},
		{"export ARCHIVE --drain", 3, "y", "", exitUsage, 0, 4, "which messages"},
		{"export ARCHIVE --drain --all", 3, "y", yesNo, exitDone, 4, 0, "4 of about 4 messages would be deleted"},
		{"export ARCHIVE --drain --all", 3, "n", yesNo, exitRefused, 0, 4, ""},
		{"export ARCHIVE --drain --all", 3, "", "", exitRefused, 0, 4, "--yes"},
		{"export ARCHIVE --drain --all --yes", 3, "", "", exitDone, 4, 0, ""},
		{"export ARCHIVE --drain --state released --yes", 3, "", "", exitDone, 3, 1, ""},
		{"export ARCHIVE --drain --all --yes --hold 1s", 3, "", "", exitUsage, 0, 4, "Hold"},
		{"export FOLDER --all", 3, "", "", exitFailed, 0, 4, "directory"},
		{"delete --all", 3, "y", "", exitUsage, 0, 4, "archive"},
		{"delete --archive ARCHIVE", 3, "y", "", exitUsage, 0, 4, "which messages"},
		{"delete --archive ARCHIVE --completed", 3, "y", yesNo, exitDone, 1, 3, ""},
		{"delete --archive ARCHIVE --completed --state released", 3, "y", "", exitUsage, 0, 4, "completed"},
		{"delete --archive ARCHIVE --completed --consumer=", 3, "y", "", exitUsage, 0, 4, "need --consumer"},
		{"delete --archive ARCHIVE --all", 9, "y", yesNo, exitDone, 10, 0, ""},
		{"delete --archive ARCHIVE --all", 10, "y", name, exitRefused, 0, 11, ""},
		{"delete --archive ARCHIVE --all", 10, "orders-dlq", name, exitDone, 11, 0, ""},
		{"delete --archive ARCHIVE --all --yes", 10, "y", "", exitRefused, 0, 11, "--expect 11"},
		{"delete --archive ARCHIVE --all --yes --expect 11", 10, "n", "", exitDone, 11, 0, ""},
		{"delete --archive ARCHIVE --all --yes", 3, "", "", exitRefused, 0, 4, "--expect 4"},
		{"delete --archive ARCHIVE --all --expect 4", 3, "", "", exitRefused, 0, 4, "--yes"},
		{"delete --archive ARCHIVE --all --yes --expect 3", 3, "", "", exitRefused, 0, 4, "--expect is 3, but the plan has 4"},
		{"delete --archive ARCHIVE --all --yes --expect 11", 10, "", "", exitDone, 11, 0, ""},
		{"delete --archive ARCHIVE --class 000000", 3, "", "", exitDone, 0, 4, "0 of about 4"},
		{"delete --archive ARCHIVE --class 000000 --yes --expect 1", 3, "", "", exitRefused, 0, 4, "--expect is 1"},
		{"delete --archive ARCHIVE --all --dry-run", 3, "", "", exitDone, 0, 4, "4 of about 4 messages would be deleted"},
	} {
		run(t, test.command+"/"+strconv.Itoa(test.messages)+test.answer, func(w *world) {
			w.put("done", dedup.StateCompleted)
			w.send("orders-dlq", "done", "b")
			w.deadLetters(test.messages)
			w.terminal, w.answer = test.answer != "", test.answer
			got := w.dlq(strings.ReplaceAll(test.command, "FOLDER", w.folder))
			if got.code != test.code || !strings.Contains(got.err, test.says) {
				w.Errorf("exit %d, want %d with %q: %s%s", got.code, test.code, test.says, got.out, got.err)
			}
			asked := strings.Contains(got.err, yesNo) || strings.Contains(got.err, name)
			if asked != (test.question != "") || !strings.Contains(got.err, test.question) {
				w.Errorf("asks %q, want %q", got.err, test.question)
			}
			if left := left(w); left != test.left || len(w.archived()) != test.archived || w.hidden("orders-dlq") != 0 {
				w.Errorf("%d are left, %d hidden, %d archived", left, w.hidden("orders-dlq"), len(w.archived()))
			}
			if lines := w.audited(); (len(lines) == 2) != (left(w) < test.messages+1) || len(lines) == 1 {
				w.Errorf("audit %+v", lines)
			}
		})
	}
}

// A class has one cause, and its messages several states: its ID alone does not let a y, or a --yes, delete all of them.
func TestDeleteClassOfSeveralStates(t *testing.T) {
	const both = "1 completed, 1 released. --state"
	for _, test := range []struct {
		command, answer string
		code            exitCode
		left            int
		says            string
	}{
		{"delete --archive ARCHIVE", "y", exitRefused, 2, both},
		{"delete --archive ARCHIVE", "orders-dlq", exitDone, 0, both},
		{"delete --archive ARCHIVE --yes --expect 2", "", exitDone, 0, both},
		{"delete --archive ARCHIVE --state completed", "y", exitDone, 1, asksYesNo},
		{"export ARCHIVE --drain --yes", "", exitRefused, 2, "--expect 2"},
		{"export ARCHIVE --drain --yes --expect 2", "", exitDone, 0, both},
		{"export ARCHIVE --drain --yes --state released", "", exitDone, 1, ""},
	} {
		run(t, test.command+test.answer, func(w *world) {
			for event, state := range map[string]dedup.RecordState{"done": dedup.StateCompleted, "failed": dedup.StateReleased} {
				w.put(event, state)
				w.send("orders-dlq", event, "b", sqsonce.AttrRejectReason, "declined")
			}
			class, _, _ := strings.Cut(w.dlq("ls").out, "\t")
			w.terminal, w.answer = test.answer != "", test.answer
			got := w.dlq(test.command + " --class " + class)
			if got.code != test.code || !strings.Contains(got.err, test.says) || left(w) != test.left || len(w.archived()) != 2-test.left {
				w.Errorf("%d left, want %d, exit %d with %q: %+v", left(w), test.left, test.code, test.says, got)
			}
		})
	}
}

func left(w *world) int {
	return len(w.stack.MemSQS().Messages("orders-dlq"))
}

// What comes between the plan and the answer is not deleted: the answer was not about it.
func TestDeleteOnlyPlanned(t *testing.T) {
	for _, command := range []string{"delete --archive ARCHIVE --all", "export ARCHIVE --drain --all"} {
		run(t, command, func(w *world) {
			ids := w.deadLetters(3)
			a := w.app("y")
			a.in = onRead{func() { w.send("orders-dlq", "late", "b") }, a.in}
			if code := a.run(context.Background(), w.dlqLine(command)); code != exitPart || !sameIDs(w.archived(), ids) || left(w) != 1 || w.hidden("orders-dlq") != 0 {
				w.Errorf("exit %d, archived %q, %d left", code, w.archived(), left(w))
			}
		})
	}
}

func sameIDs(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// app is a program whose user answers at a terminal.
func (w *world) app(answer string) *app {
	return &app{
		opts: w.opts, in: strings.NewReader(answer + "\n"), out: w.Output(), err: w.Output(), asks: true, connect: w.connect,
		getenv: func(name string) string {
			if name == "XDG_STATE_HOME" {
				return w.folder
			}
			return w.env[name]
		},
	}
}

// onRead calls something before the first read.
type onRead struct {
	f    func()
	from interface{ Read([]byte) (int, error) }
}

func (r onRead) Read(p []byte) (int, error) {
	r.f()
	return r.from.Read(p)
}

// What SQS does to a delete: its exit code, and that the command that it prints does the rest, with nothing lost.
func TestDeleteFails(t *testing.T) {
	refuse := func(op, code string, nth int) fault.Plan {
		return fault.Plan{Rules: []fault.Rule{{Op: op, Nth: nth, Times: 99, Do: fault.Error, Code: code}}}
	}
	for name, test := range map[string]struct {
		sqs     fault.Plan
		stop    bool
		code    exitCode
		says    string
		resumes bool
	}{
		"delete denied": {sqs: refuse("DeleteMessageBatch", "AccessDeniedException", 2), code: exitDenied, says: "sqs:DeleteMessage", resumes: true},
		"receive fails": {sqs: refuse("ReceiveMessage", "InvalidAddress", 10), code: exitFailed, says: "sqs:ReceiveMessage", resumes: true},
		"interrupted":   {sqs: fault.Plan{Rules: []fault.Rule{{Op: "DeleteMessageBatch", Do: fault.Delay, Delay: time.Second}}}, stop: true, code: exitPart, says: "interrupted", resumes: true},
		"a move task":   {sqs: refuse("ListMessageMoveTasks", "AccessDenied", 1), code: exitDenied},
	} {
		run(t, name, func(w *world) {
			ids := w.deadLetters(50)
			w.stack.MemSQS().Set(test.sqs)
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			if test.stop {
				start := time.Now()
				w.caller = func(context.Context) (string, error) { // just before the run
					time.AfterFunc(2500*time.Millisecond, func() { cancel(errInterrupted) })
					return time.Since(start).String(), nil
				}
			}
			got := w.dlqIn(ctx, "delete --archive ARCHIVE --all --yes --expect 50")
			w.stack.MemSQS().Set(fault.Plan{})
			if got.code != test.code || !strings.Contains(got.err, test.says) || w.hidden("orders-dlq") != 0 {
				w.Errorf("%d hidden: %+v", w.hidden("orders-dlq"), got)
			}
			command, resumes := got.goOn()
			if resumes != test.resumes {
				w.Fatalf("says how it goes on: %t: %s", resumes, got.err)
			}
			if !resumes {
				return
			}
			if n := left(w); n == 0 || n == 50 || !strings.Contains(command, "--expect "+strconv.Itoa(n)) {
				w.Errorf("%d left, and %s", n, command)
			}
			if got := w.run(words(command)...); got.code != exitDone || left(w) != 0 {
				w.Errorf("%s: %+v", command, got)
			}
			if !sameIDs(slices.Compact(slices.Sorted(slices.Values(w.archived()))), ids) {
				w.Errorf("%d in the archive", len(w.archived()))
			}
			if lines := w.audited(); len(lines) != 4 || lines[0].What != "dlq delete" || lines[1].Error == "" || lines[3].Error != "" || !strings.Contains(lines[0].Note, w.archive()) {
				w.Errorf("audit %+v", lines)
			}
		})
	}
}

// On FIFO SQS shows ten messages of a group: the others are said, and stay.
func TestDeleteBehind(t *testing.T) {
	bubble(t, func(w *world) {
		for i := range 12 {
			w.send("orders-dlq.fifo", strings.Repeat("e", i+1), "b")
		}
		args := []string{"dlq", "delete", "--queue", "orders.fifo", "--archive", w.archive(), "--all", "--yes", "--expect"}
		if got := w.run(append(args, "10")...); got.code != exitPart || !strings.Contains(got.err, "2 that the plan has not seen") {
			t.Errorf("%+v", got)
		}
		if got := w.run(append(args, "2")...); got.code != exitDone || len(w.archived()) != 12 {
			t.Errorf("%d archived, %+v", len(w.archived()), got)
		}
	})
}

// Where records cannot be read nothing is deleted by what they say, and an export says so.
func TestRecordsNotRead(t *testing.T) {
	for command, archived := range map[string]int{
		"delete --archive ARCHIVE --completed": 0, "delete --archive ARCHIVE --all": 0, "export ARCHIVE --drain --all": 0, "export ARCHIVE": 3,
	} {
		run(t, command, func(w *world) {
			w.deadLetters(3)
			w.terminal, w.answer = true, "y"
			w.stack.MemDynamoDB().Set(fault.Plan{Rules: []fault.Rule{{Op: "GetItem", Prob: 1, Do: fault.Error, Code: "InternalServerError"}}})
			got := w.dlq(command)
			if got.code != exitPart || !strings.Contains(got.err, "the records of 3 messages were not read") || left(w) != 3 || len(w.archived()) != archived {
				w.Errorf("%d left, %d archived: %+v", left(w), len(w.archived()), got)
			}
		})
	}
}

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
		{"restore ARCHIVE", "n", true, exitRefused, 0, ""},
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

// An interrupt ends a restore in part; the command that it prints does the rest, and sends each message once.
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
