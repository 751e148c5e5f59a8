package cli

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/ops"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

const noted = " --note refunded"

// replayLine is a replay. ID, ARCHIVE and FENCE in it are replaced.
func (w *world) replayLine(id, key, line string) []string {
	w.Helper()
	r, err := w.store.Inspect(context.Background(), key)
	if !errors.Is(err, dedup.ErrNotFound) {
		must.Do(w, err)
	}
	words := strings.NewReplacer("ID", id, "ARCHIVE", w.archive(), "FENCE", strconv.FormatInt(r.Fence, 10)).Replace(line)
	return append(append([]string{"replay"}, redriveLine[2:]...), strings.Fields(words)...)
}

// counted runs a consumer of "orders", and counts its runs.
func (w *world) counted() *atomic.Int32 {
	runs := &atomic.Int32{}
	w.consume("orders", func(context.Context, *sqsonce.Message) error { runs.Add(1); return nil })
	return runs
}

// What a replay does with flags, states and answers: its question, its exit code, and whether the event has run.
func TestReplay(t *testing.T) {
	for _, test := range []struct {
		flags    string
		state    dedup.RecordState // of the event
		answer   string            // on a terminal; "": there is none; KEY: the key
		question string
		code     exitCode
		runs     int32
		says     string
	}{
		{"ID" + noted + " --again FENCE", dedup.StateCompleted, "KEY", asksKey, exitDone, 1, "its effect is made once more"},
		{"ID" + noted + " --again FENCE", dedup.StateCompleted, "y", asksKey, exitRefused, 0, ""},
		{"ID" + noted + " --again FENCE --yes", dedup.StateCompleted, "y", asksKey, exitRefused, 0, ""},
		{"ID" + noted + " --again FENCE --yes", dedup.StateCompleted, "", "", exitDone, 1, ""},
		{"ID" + noted + " --again FENCE", dedup.StateCompleted, "", "", exitRefused, 0, "--yes"},
		{"ID" + noted + " --again FENCE --dry-run", dedup.StateCompleted, "KEY", "", exitDone, 0, "is repeated"},
		{"ID" + noted + " --again FENCE --yes --wait 0", dedup.StateCompleted, "", "", exitDone, 1, ""},
		{"ID" + noted + " --again FENCE --yes --committed", dedup.StateCompleted, "", "", exitDone, 1, ""},
		{"ID" + noted, dedup.StateCompleted, "KEY", "", exitRefused, 0, "--again FENCE\n"},
		{"ID" + noted + " --yes", dedup.StateCompleted, "", "", exitRefused, 0, "--again FENCE\n"},
		{"ID" + noted + " --again 17 --yes", dedup.StateCompleted, "", "", exitRefused, 0, "has run again since"},
		{"ID" + noted + " --again 99999999999999 --yes", dedup.StateCompleted, "", "", exitRefused, 0, "--again FENCE\n"},
		{"ID" + noted + " --again FENCE --yes", dedup.StateReleased, "", "", exitRefused, 0, "redrive it"},
		{"ID" + noted + " --yes", ops.StateUnknown, "", "", exitRefused, 0, "no record under this key"},
		{"ID" + noted + " --again FENCE --yes", dedup.StateCrashed, "", "", exitRefused, 0, "crashed"},
		{"ID" + noted + " --again FENCE --yes", dedup.StateRunning, "", "", exitRefused, 0, "wait"},
		{"ID" + noted + " --again FENCE --yes", dedup.StateForeign, "", "", exitRefused, 0, "program"},
		{"ID --again FENCE", dedup.StateCompleted, "KEY", "", exitUsage, 0, "note"},
		{"ID --again FENCE --note=", dedup.StateCompleted, "KEY", "", exitUsage, 0, "--note is empty"},
		{noted + " --again FENCE", dedup.StateCompleted, "KEY", "", exitUsage, 0, "which message"},
		{"ID ID" + noted, dedup.StateCompleted, "KEY", "", exitUsage, 0, "arg"},
		{"ID" + noted + " --archive ARCHIVE --id ID", dedup.StateCompleted, "KEY", "", exitUsage, 0, "which message"},
		{"--archive ARCHIVE" + noted, dedup.StateCompleted, "KEY", "", exitUsage, 0, "id"},
		{"ID --consumer=" + noted, dedup.StateCompleted, "KEY", "", exitUsage, 0, "--consumer"},
		{"ID --wait 1ms --yes --again FENCE" + noted, dedup.StateCompleted, "", "", exitUsage, 0, "Timeout"},
		{"nothing" + noted, dedup.StateCompleted, "KEY", "", exitFailed, 0, "not among"},
		{"--archive ARCHIVE --id ID" + noted + " --again FENCE", dedup.StateCompleted, "KEY", asksKey, exitDone, 1, ""},
		{"--archive ARCHIVE --id ID" + noted, dedup.StateCompleted, "KEY", "", exitRefused, 0, "--again FENCE\n"},
		{"--archive ARCHIVE --id nothing" + noted, dedup.StateCompleted, "KEY", "", exitFailed, 0, "is not in"},
		{"--archive ARCHIVE.gz --id ID" + noted, dedup.StateCompleted, "KEY", "", exitFailed, 0, "cannot be read"},
	} {
		run(t, test.flags+"/"+string(test.state)+test.answer, func(w *world) {
			id, key := w.send("orders-dlq", "e", "b"), w.put("e", test.state)
			runs := w.counted()
			if strings.Contains(test.flags, "ARCHIVE --id") {
				w.dlq("export ARCHIVE")
			}
			line := w.replayLine(id, key, test.flags)
			fence := w.replayLine(id, key, "FENCE")
			w.terminal, w.answer = test.answer != "", strings.ReplaceAll(test.answer, "KEY", key)
			got := w.run(line...)
			time.Sleep(10 * time.Second)
			says := strings.ReplaceAll(test.says, "FENCE", fence[len(fence)-1])
			if got.code != test.code || runs.Load() != test.runs || !strings.Contains(got.err, says) {
				w.Errorf("exit %d, %d runs, want %d, %d with %q: %s%s", got.code, runs.Load(), test.code, test.runs, says, got.out, got.err)
			}
			asked := strings.Contains(got.err, asksYesNo) || strings.Contains(got.err, asksKey)
			if asked != (test.question != "") || !strings.Contains(got.err, test.question) {
				w.Errorf("asks %q, want %q", got.err, test.question)
			}
			gone := test.runs == 1 && !strings.Contains(test.flags, "--archive")
			if (left(w) == 0) != gone || w.hidden("orders-dlq") != 0 {
				w.Errorf("%d left, %d hidden", left(w), w.hidden("orders-dlq"))
			}
			lines := w.audited()
			if test.runs == 1 && (len(lines) != 2 || lines[0].What != "replay" || lines[0].Note != "refunded" || lines[0].Before != "completed" || lines[0].Key != key) {
				w.Errorf("audit %+v", lines)
			}
			if strings.Contains(test.says, "FENCE") { // the command that was printed does it
				w.terminal = false
				if got := w.run(append(w.againLine(got.err), "--yes")...); got.code != exitDone || runs.Load() != 1 {
					w.Errorf("%d runs: %+v", runs.Load(), got)
				}
			}
		})
	}
}

// againLine returns the command that a refusal names.
func (w *world) againLine(text string) []string {
	w.Helper()
	_, command, found := strings.Cut(text, "once more:\n  sqsonce ")
	if !found {
		w.Fatalf("no command in %s", text)
	}
	command, _, _ = strings.Cut(command, "\n")
	return words(command)
}

// An interrupt in the 65 s sends nothing; the command that is printed goes on, and the event runs once more, once.
func TestInterruptedReplay(t *testing.T) {
	for name, bars := range map[string]bool{"terminal": true, "pipe": false} {
		run(t, name, func(w *world) {
			id, key := w.send("orders-dlq", "e", "b"), w.put("e", dedup.StateCompleted)
			runs := w.counted()
			ctx, cancel := context.WithCancelCause(context.Background())
			w.caller = func(context.Context) (string, error) {
				time.AfterFunc(30*time.Second, func() { cancel(errInterrupted) })
				return callerARN, nil
			}
			w.bars = bars
			got := w.runIn(ctx, w.replayLine(id, key, "ID"+noted+" --again FENCE --yes")...)
			command, found := got.goOn()
			if got.code != exitPart || runs.Load() != 0 || left(w) != 1 || w.hidden("orders-dlq") != 0 || !found || !strings.Contains(command, "--again ") {
				w.Fatalf("%d runs, %d left, %d hidden: %+v", runs.Load(), left(w), w.hidden("orders-dlq"), got)
			}
			got = w.run(words(command)...)
			if got.code != exitDone || runs.Load() != 1 || left(w) != 0 || !strings.Contains(got.err, "that goes on") {
				w.Errorf("%d runs: %+v", runs.Load(), got)
			}
			rewritten := strings.Count(got.err, "\r\x1b[K")
			lines := strings.Count(got.err, "until the copy is sent")
			if bars != (rewritten > 30) || !bars && (rewritten != 0 || lines != 2) {
				w.Errorf("%d times rewritten, %d lines: %q", rewritten, lines, got.err)
			}
			w.send("orders-dlq", "e", "b")
			if got := w.run(words(command)...); got.code == exitDone || runs.Load() != 1 {
				w.Errorf("%d runs: %+v", runs.Load(), got)
			}
		})
	}
}

// What fails on the way: its exit code, and whether the same command is named.
func TestReplayFails(t *testing.T) {
	refuse := func(op, code string) fault.Plan {
		return fault.Plan{Rules: []fault.Rule{{Op: op, Prob: 1, Do: fault.Error, Code: code}}}
	}
	for name, test := range map[string]struct {
		sqs, dynamo fault.Plan
		fails       bool
		code        exitCode
		says        string
		resumes     bool
	}{
		"reopen denied":    {dynamo: refuse("UpdateItem", "AccessDeniedException"), code: exitDenied, says: "dynamodb:UpdateItem", resumes: true},
		"reopen fails":     {dynamo: refuse("UpdateItem", "InternalServerError"), code: exitFailed, says: "unknown whether", resumes: true},
		"send denied":      {sqs: refuse("SendMessageBatch", "AccessDeniedException"), code: exitDenied, says: "sqs:SendMessage", resumes: true},
		"send fails":       {sqs: refuse("SendMessageBatch", "InvalidAddress"), code: exitPart, says: "reopened", resumes: true},
		"record not read":  {dynamo: refuse("GetItem", "InternalServerError"), code: exitFailed},
		"record denied":    {dynamo: refuse("GetItem", "AccessDeniedException"), code: exitDenied, says: "dynamodb:GetItem"},
		"fails again":      {fails: true, code: exitPart, says: "not seen to complete"},
		"delete is denied": {sqs: refuse("DeleteMessageBatch", "AccessDeniedException"), code: exitDenied, says: "sqs:DeleteMessage"},
	} {
		run(t, name, func(w *world) {
			id, key := w.send("orders-dlq", "e", "b"), w.put("e", dedup.StateCompleted)
			if test.fails {
				w.consume("orders", func(context.Context, *sqsonce.Message) error { return errFor("17") })
			}
			line := w.replayLine(id, key, "ID"+noted+" --again FENCE --yes")
			w.stack.MemSQS().Set(test.sqs)
			w.stack.MemDynamoDB().Set(test.dynamo)
			got := w.run(line...)
			w.stack.MemSQS().Set(fault.Plan{})
			w.stack.MemDynamoDB().Set(fault.Plan{})
			if got.code != test.code || !strings.Contains(got.err, test.says) || strings.Contains(got.err, "to go on: sqsonce replay ") != test.resumes || w.hidden("orders-dlq") != 0 {
				w.Errorf("%d hidden: %+v", w.hidden("orders-dlq"), got)
			}
			if test.resumes {
				runs := w.counted()
				if got := w.run(line...); got.code != exitDone || runs.Load() != 1 {
					w.Errorf("%d runs: %+v", runs.Load(), got)
				}
			}
		})
	}
}

// An effect that was committed with the record is made again by a flag of its own, and a second answer.
func TestReplayCommitted(t *testing.T) {
	bubble(t, func(w *world) {
		r := seen{dedup.Record{Lease: dedup.Lease{Key: "billing#e", Fence: 5}, Committed: true}, dedup.StateCompleted}
		a := w.app("")
		a.args = []string{"replay", "1", "--again=5", "--note", "was refunded"}
		err := a.planReplay(r, replayFlags{again: 5})
		if codeOf(context.Background(), err) != exitRefused || !strings.HasSuffix(err.Error(), "sqsonce replay 1 --note 'was refunded' --again 5 --committed") {
			t.Errorf("%v", err)
		}
		must.Do(t, a.planReplay(r, replayFlags{again: 5, committed: true}))
		for answers, want := range map[string]exitCode{"billing#e\ny": exitDone, "billing#e\nn": exitRefused, "y\ny": exitRefused, "billing#e\nbilling#e": exitRefused} {
			if err := w.app(answers).confirmReplay(context.Background(), r); codeOf(context.Background(), err) != want {
				t.Errorf("%q: %v", answers, err)
			}
		}
	})
}

// An archive that was written without the consumer's name has no keys.
func TestReplayWithoutKey(t *testing.T) {
	bubble(t, func(w *world) {
		id, key := w.send("orders-dlq", "e", "b"), w.put("e", dedup.StateCompleted)
		w.dlq("export ARCHIVE --consumer=")
		must.Get(os.Stat(w.archive()))(t)
		if got := w.run(w.replayLine(id, key, "--archive ARCHIVE --id ID"+noted)...); got.code != exitRefused || !strings.Contains(got.err, "dlq restore") {
			t.Errorf("%+v", got)
		}
	})
}
