package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/testworld"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/ops"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

var redriveLine = []string{"dlq", "redrive", "--queue", "orders", "--consumer", consumer, "--table", "dedup"}

// redrive runs a redrive with more flags.
func (w *world) redrive(flags ...string) result {
	return w.run(append(slices.Clone(redriveLine), flags...)...)
}

// deadLetters puts so many messages into the dead-letter queue whose events have failed.
func (w *world) deadLetters(n int) (ids []string) {
	w.Helper()
	for i := range n {
		event := "e" + strconv.Itoa(i)
		w.put(event, dedup.StateReleased)
		ids = append(ids, w.send("orders-dlq", event, "b"))
	}
	return ids
}

// goOn returns the command that does the rest, where the result names one.
func (r result) goOn() (command string, found bool) {
	_, command, found = strings.Cut(r.err, "to go on: sqsonce ")
	command, _, _ = strings.Cut(command, "\n")
	return command, found
}

func (w *world) hidden(queue string) int { return testworld.Hidden(w.stack, queue) }

// Of released events those whose effect happened are completed by the ledger. The rest is redriven by the printed command, which says that
// a released event may have had its effect, also where nobody is asked.
func TestReleasedByLedger(t *testing.T) {
	bubble(t, func(w *world) {
		w.env["SQSONCE_QUEUE"], w.env["SQSONCE_CONSUMER"], w.env["SQSONCE_TABLE"] = "orders", consumer, "dedup"
		w.deadLetters(6)
		ledger := filepath.Join(w.folder, "happened")
		must.Do(w, os.WriteFile(ledger, []byte("billing#orders|e1\nbilling#orders|e3\nbilling#orders|e4\n"), 0o600))
		for line := range strings.Lines(w.run("dlq", "ls", "--messages").out) {
			w.answer += strings.Split(line, "\t")[4] + "\n"
		}
		got := w.run("record", "free", "-", "--done", ledger, "--yes")
		commands := printed.FindAllStringSubmatch(got.err, -1)
		if got.code != exitDone || len(commands) != 2 {
			w.Fatalf("%+v", got)
		}
		var ran atomic.Int32
		w.consume("orders", func(_ context.Context, m *sqsonce.Message) error {
			if id := m.Attributes[sqsonce.AttrEventID].String; id != "e0" && id != "e2" && id != "e5" {
				t.Errorf("%s ran again", id)
			}
			ran.Add(1)
			return nil
		})
		w.Chdir(w.folder)
		for _, command := range commands {
			got := w.run(pasted(w, command[1])[1:]...)
			if warns := strings.Contains(got.err, "A released event may have had its effect"); got.code != exitDone || warns != strings.Contains(command[1], "redrive") {
				t.Errorf("%s: %+v", command[1], got)
			}
		}
		if n := left(w); ran.Load() != 3 || n != 0 {
			t.Errorf("%d ran, %d are left", ran.Load(), n)
		}
	})
}

// One printed list completes and frees released events and those that crashed in several processes. Of a list that is not whole it has no
// crashed events.
func TestOneListOfStates(t *testing.T) {
	bubble(t, func(w *world) {
		w.env["SQSONCE_QUEUE"], w.env["SQSONCE_CONSUMER"], w.env["SQSONCE_TABLE"] = "orders", consumer, "dedup"
		w.Chdir(w.folder)
		must.Do(w, os.WriteFile("happened", []byte("billing#orders|e1\nbilling#orders|b\n"), 0o600))
		w.deadLetters(2)
		w.die(died, "a", "b")
		w.die("pod-2.ABCDEFGH", "c")
		if got := w.run("dlq", "ls", "--limit", "3"); strings.Contains(got.err, "released,crashed") {
			t.Errorf("a part: %+v", got)
		}
		got := w.run("dlq", "ls")
		_, line, _ := strings.Cut(got.err, "\n  sqsonce ")
		line, _, _ = strings.Cut(line, "\n")
		pipe := strings.Split(line, " | ")
		if len(pipe) != 3 {
			t.Fatalf("%q: %+v", pipe, got)
		}
		for row := range strings.Lines(w.run(words(pipe[0])...).out) {
			w.answer += strings.Split(row, "\t")[4] + "\n"
		}
		free := strings.TrimPrefix(strings.Replace(pipe[2], "--dry-run", "--yes", 1), "sqsonce ")
		got = w.run(words(free)...)
		for event, want := range map[string]dedup.RecordState{
			"e0": dedup.StateReleased, "e1": dedup.StateCompleted, "a": dedup.StateReleased, "b": dedup.StateCompleted, "c": dedup.StateReleased,
		} {
			if is := w.state(consumer + "#orders|" + event); is != want {
				t.Errorf("%s is %s, want %s", event, is, want)
			}
		}
		if got.code != exitDone || !strings.Contains(got.err, "--canary 2") {
			t.Errorf("%q: %+v", free, got)
		}
	})
}

// A redrive that selects none of the messages that are there changes nothing, and leaves no journal. One that names what it means may be
// mistyped.
func TestRedriveSelectsNone(t *testing.T) {
	for _, flags := range []string{"--class 000000 --yes", "--class 000000 --yes --expect 0", "--key billing#orders|e9 --yes", "--state crashed --yes"} {
		run(t, flags, func(w *world) {
			if got := w.redrive(strings.Fields(flags)...); got.code != exitDone {
				w.Errorf("an empty queue: %+v", got)
			}
			w.deadLetters(1)
			got := w.redrive(strings.Fields(flags)...)
			want := exitRefused
			if strings.HasPrefix(flags, "--state") {
				want = exitDone
			}
			if got.code != want || w.journals() > 0 || strings.Contains(got.err, "1 messages") || strings.Contains(got.err, "to go on") {
				w.Errorf("%d journals: %+v", w.journals(), got)
			}
		})
	}
}

// A line of progress counts what is selected.
func TestProgressCountsTheSelection(t *testing.T) {
	bubble(t, func(w *world) {
		var out bytes.Buffer
		a := w.app("")
		a.err = &out
		p := a.newProgress(0)
		for i, err := range []error{ops.ErrNotSelected, ops.ErrTooOften, ops.ErrNotSelected} {
			p.result(&ops.Result{ID: strconv.Itoa(i), Action: ops.ActionLeft, Err: err})
		}
		time.Sleep(progressEvery)
		p.result(&ops.Result{ID: "sent", Action: ops.ActionRedriven})
		if !strings.HasPrefix(out.String(), "so far 1 redriven, 1 left") {
			t.Errorf("%q", out.String())
		}
	})
}

// journals is how many journals there are.
func (w *world) journals() int {
	return len(must.Get(filepath.Glob(filepath.Join(w.folder, "sqsonce", "redrive-*.jsonl")))(w))
}

func succeeds(context.Context, *sqsonce.Message) error { return nil }

// What a redrive does with flags and answers: its question, its exit code, what is sent.
func TestRedrive(t *testing.T) {
	const asks = "Do it? [y/N]"
	for _, test := range []struct {
		flags    string
		answer   string // on a terminal; "": there is none
		question string
		code     exitCode
		sent     int // of three released and one crashed
		says     string
	}{
		{"", "y", "", exitUsage, 0, "--all"},
		{"--all", "y", asks, exitPart, 3, "1 selected message was not redriven"},
		{"--all", "n", asks, exitRefused, 0, ""},
		{"--all", "", "", exitRefused, 0, "--yes"},
		{"--all --yes", "", "", exitPart, 3, "journal /"},
		{"--all --yes", "n", "", exitPart, 3, ""},
		{"--all --crashed", "y", asks, exitDone, 4, "OnCrashBlock"},
		{"--all --crashed --yes --expect 4", "", "", exitDone, 4, ""},
		{"--all --expect 4", "y", "", exitRefused, 0, "--expect is 4, but the plan has 3"},
		{"--all --dry-run", "y", "", exitDone, 0, "3 of about 4"},
		{"--all --dry-run --journal j", "", "", exitUsage, 0, "--journal"},
		{"--state released", "y", asks, exitDone, 3, "canary"},
		{"--state released --canary 0", "y", asks, exitDone, 3, "without a canary"},
		{"--state released --rate 0", "y", asks, exitDone, 3, "As fast as"},
		{"--state crashed", "y", "", exitPart, 0, "no message can be redriven"},
		{"--state crashed --crashed --yes --canary-timeout 1s", "", "", exitPart, 1, "sqsonce record free --queue"}, // no consumer
		{"--state crashed --crashed --yes", "", "", exitDone, 1, ""},
		{"--state foreign", "y", "", exitDone, 0, "0 of about 4"},
		{"--class 000000", "", "", exitRefused, 0, "0 of about 4"},
		{"--id ID1 --id ID2", "y", asks, exitDone, 2, ""},
		{"--key orders|e1 --yes", "", "", exitDone, 1, ""},
		{"--key billing#orders|e1 --yes", "", "", exitDone, 1, ""},
		{"--group g --yes", "", "", exitRefused, 0, "selected"},
		{"--sent-after 1h --yes", "", "", exitPart, 3, ""},
		{"--sent-before 1h --yes", "", "", exitDone, 0, ""},
		{"--sent-before 1h --sent-after 2000-01-01T00:00:00Z --dry-run", "", "", exitDone, 0, "0 of about 4"},
		{"--sent-after yesterday", "y", "", exitUsage, 0, "12h or 3d"},
		{"--sent-after -3h", "y", "", exitUsage, 0, "12h or 3d"},
		{"--all --state released", "y", "", exitUsage, 0, "--all"},
		{"--all --without-records", "y", "", exitUsage, 0, "--consumer"},
		{"--all --consumer=", "y", "", exitUsage, 0, "--without-records"},
		{"--all --consumer= --without-records", "y", asks, exitDone, 4, "without a canary"},
		{"--all --consumer= --without-records --canary 1", "y", "", exitUsage, 0, "Canary"},
		{"--state released --consumer= --without-records", "y", "", exitUsage, 0, "need --consumer"},
		{"--key e1 --consumer= --without-records", "y", "", exitUsage, 0, "need --consumer"},
		{"--class= --yes", "", "", exitUsage, 0, "is empty"}, // a variable that is not set is no selection
		{"--id= --yes", "", "", exitUsage, 0, "is empty"},
		{"--key= --yes", "", "", exitUsage, 0, "is empty"},
		{"--state released --keys= --yes", "", "", exitUsage, 0, "is empty"},
		{"--state released --keys /dev/null --yes", "", "", exitUsage, 0, "has no keys"},
		{"--group= --yes", "", "", exitUsage, 0, "is empty"},
		{"--all --hold 1s --yes", "", "", exitUsage, 0, "Hold"},
		{"--all --queue nothing --yes", "", "", exitFailed, 0, "queue nothing does not exist"},
	} {
		run(t, test.flags+"/"+strings.TrimSpace(test.answer), func(w *world) {
			w.put("crashed", dedup.StateCrashed)
			ids := w.deadLetters(3)
			w.send("orders-dlq", "crashed", "b")
			if !strings.Contains(test.flags, "--canary-timeout") {
				w.consume("orders", succeeds)
			}
			w.terminal, w.answer = test.answer != "", test.answer
			got := w.redrive(strings.Fields(strings.NewReplacer("ID1", ids[0], "ID2", ids[1]).Replace(test.flags))...)
			if got.code != test.code || !strings.Contains(got.err, test.says) {
				w.Errorf("exit %d, want %d with %q: %s%s", got.code, test.code, test.says, got.out, got.err)
			}
			if asked := strings.Contains(got.err, asks); asked != (test.question != "") {
				w.Errorf("asks %q, want %q", got.err, test.question)
			}
			if left := left(w); left != 4-test.sent || w.hidden("orders-dlq") != 0 {
				w.Errorf("%d are left, %d hidden, want %d sent", left, w.hidden("orders-dlq"), test.sent)
			}
			if lines := w.audited(); (len(lines) == 2) != (strings.Contains(got.err, "journal "+w.folder) || got.out == "left\t4\tnot selected\n") || len(lines) == 1 {
				w.Errorf("audit %+v, and it prints %q", lines, got.err)
			}
		})
	}
}

// A completed event has what a redrive is for: its message is counted apart, and is no reason to exit with 4.
func TestRedriveCompleted(t *testing.T) {
	for _, answer := range []string{"", "y"} {
		run(t, "answer "+answer, func(w *world) {
			w.put("done", dedup.StateCompleted)
			w.send("orders-dlq", "done", "b")
			w.deadLetters(2)
			w.consume("orders", succeeds)
			w.terminal, w.answer = answer != "", answer
			if got := w.redrive([]string{"--all", "--yes"}[:2-len(answer)]...); got.code != exitDone || !strings.Contains(got.err, "1 completed, not sent: sqsonce dlq delete ") || left(w) != 1 {
				w.Errorf("%d left: %+v", left(w), got)
			}
			if got := w.redrive("--key", "orders|done"); w.terminal && (got.code != exitDone || !strings.Contains(got.err, "1 of them completed")) {
				w.Errorf("nothing else: %+v", got)
			}
			w.put("crashed", dedup.StateCrashed)
			w.send("orders-dlq", "crashed", "b")
			if got := w.redrive("--all", "--yes"); got.code != exitPart || !strings.Contains(got.err, "1 selected message was not redriven") {
				w.Errorf("and a crashed one: %+v", got)
			}
		})
	}
}

// audited reads the audit.
func (w *world) audited() (lines []auditLine) {
	w.Helper()
	text, err := os.ReadFile(filepath.Join(w.folder, "sqsonce", auditFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	must.Do(w, err)
	for line := range strings.Lines(string(text)) {
		var l auditLine
		must.Do(w, json.Unmarshal([]byte(line), &l))
		lines = append(lines, l)
	}
	return lines
}

// What SQS and the queue do to a redrive: its exit code, and whether it says how it goes on.
func TestRedriveFails(t *testing.T) {
	refuse := func(op, code string, nth int) fault.Plan {
		return fault.Plan{Rules: []fault.Rule{{Op: op, Nth: nth, Times: 99, Do: fault.Error, Code: code}}}
	}
	for name, test := range map[string]struct {
		sqs     fault.Plan
		handler sqsonce.Handler
		code    exitCode
		says    []string
		resumes bool
	}{
		"send denied":    {sqs: refuse("SendMessageBatch", "AccessDeniedException", 3), code: exitDenied, says: []string{"sqs:SendMessage"}, resumes: true},
		"receive fails":  {sqs: refuse("ReceiveMessage", "InvalidAddress", 5), code: exitFailed, says: []string{"sqs:ReceiveMessage"}, resumes: true},
		"delete denied":  {sqs: refuse("DeleteMessageBatch", "AccessDeniedException", 2), code: exitDenied, says: []string{"undeleted", "sqs:DeleteMessage"}, resumes: true},
		"canary fails":   {handler: func(context.Context, *sqsonce.Message) error { return errFor("17") }, code: exitPart, says: []string{"is released", "card provider", `\x1b`}},
		"canary waits":   {handler: func(ctx context.Context, _ *sqsonce.Message) error { <-ctx.Done(); return ctx.Err() }, code: exitPart, says: []string{"within 2m0s"}},
		"not a receiver": {sqs: refuse("ListMessageMoveTasks", "AccessDenied", 1), code: exitDenied},
	} {
		run(t, name, func(w *world) {
			w.deadLetters(60)
			canary := "--canary=0"
			if test.handler != nil {
				canary = "--canary=1"
				w.consume("orders", test.handler)
			}
			w.stack.MemSQS().Set(test.sqs)
			got := w.redrive("--all", "--yes", canary)
			w.stack.MemSQS().Set(fault.Plan{})
			if got.code != test.code {
				w.Errorf("exit %d: %s", got.code, got.err)
			}
			for _, text := range test.says {
				if !strings.Contains(got.err, text) {
					w.Errorf("no %q in %s", text, got.err)
				}
			}
			counted := 0
			for line := range strings.Lines(got.out) {
				counted += must.Get(strconv.Atoi(strings.Split(line, "\t")[1]))(w)
			}
			if w.hidden("orders-dlq") != 0 || counted != 60 && test.code != exitDenied || strings.Contains(got.out+got.err, "ops:") || strings.Count(got.out+got.err, "card provider") > 1 {
				w.Errorf("%d are hidden, %d counted: %s%s", w.hidden("orders-dlq"), counted, got.out, got.err)
			}
			command, resumes := got.goOn()
			if resumes != test.resumes {
				w.Fatalf("says how it goes on: %t: %s", resumes, got.err)
			}
			if !resumes {
				return
			}
			sent := len(w.stack.MemSQS().Messages("orders"))
			if got := w.run(words(command)...); got.code != exitDone {
				w.Errorf("%s: %+v", command, got)
			}
			if n := len(w.stack.MemSQS().Messages("orders")); n != 60 || sent == 0 || sent == 60 || left(w) != 0 {
				w.Errorf("%d messages, of which %d were sent before", n, sent)
			}
		})
	}
}

// A second redrive from the same queue is refused; one that was killed is named.
func TestOneRedriveAtATime(t *testing.T) {
	bubble(t, func(w *world) {
		w.deadLetters(10)
		w.deadLetters(0)
		folder := filepath.Join(w.folder, "sqsonce")
		must.Do(w, os.MkdirAll(folder, 0o700))
		lock, killed, err := lockQueue(folder, w.stack.QueueURL["orders-dlq"])
		if err != nil || killed != "" {
			t.Fatal(killed, err)
		}
		must.Do(w, lock.set(filepath.Join(folder, "old one.jsonl")))
		if got := w.redrive("--all", "--canary=0", "--yes"); got.code != exitRefused || !strings.Contains(got.err, "another redrive or restore") || len(w.stack.MemSQS().Messages("orders")) != 0 {
			t.Errorf("%+v", got)
		}
		must.Do(w, lock.file.Close()) // as a kill does
		if got := w.redrive("--all", "--canary=0", "--yes"); got.code != exitDone || !strings.Contains(got.err, "was killed: --journal '"+folder+"/old one.jsonl'") {
			t.Errorf("%+v", got)
		}
		if got := w.redrive("--all", "--canary=0", "--yes"); got.code != exitDone || strings.Contains(got.err, "killed") {
			t.Errorf("%+v", got)
		}
	})
}

// What a redrive has not seen it does not call done.
func TestRedriveUnseen(t *testing.T) {
	bubble(t, func(w *world) {
		w.deadLetters(20)
		w.stack.MemSQS().Set(fault.Plan{Rules: []fault.Rule{{Op: "ReceiveMessage", Nth: 2, Do: fault.LoseReply}}})
		if got := w.redrive("--all", "--canary=0", "--yes"); got.code != exitPart || !strings.Contains(got.err, "10 not seen: hidden") {
			t.Errorf("%+v", got)
		}
		if got := w.redrive("--all", "--canary=0"); got.code != exitPart || !strings.Contains(got.err, "10 were not seen") {
			t.Errorf("%+v", got)
		}
		time.Sleep(time.Minute)
		if got := w.redrive("--all", "--canary=0", "--yes"); got.code != exitDone || len(w.stack.MemSQS().Messages("orders")) != 20 {
			t.Errorf("%+v", got)
		}
	})
}

// How far it is stands on standard error: as a bar on a terminal that knows of how many, else as lines.
func TestProgress(t *testing.T) {
	for name, test := range map[string]struct {
		bars  bool
		flags []string
		want  []string
	}{
		"bar":      {true, nil, []string{"200 / 200 redriven", "0 came back", "canary "}},
		"no plan":  {true, []string{"--yes"}, []string{" redriven, 0 left of those selected, 0 came back\n", "is completed, after"}},
		"no bar":   {false, nil, []string{" redriven, 0 left of those selected, 0 came back\n", "is completed, after"}},
		"expected": {false, []string{"--yes", "--expect=200"}, []string{" redriven, 0 left of those selected, 0 came back\n"}},
	} {
		run(t, name, func(w *world) {
			w.deadLetters(200)
			w.consume("orders", succeeds)
			w.terminal, w.bars, w.answer = true, test.bars, "y"
			got := w.redrive(append([]string{"--all", "--rate=10"}, test.flags...)...)
			if got.code != exitDone || got.out != "redriven\t200\t\n" {
				w.Errorf("%+v", got)
			}
			for _, text := range test.want {
				if !strings.Contains(got.err, text) {
					w.Errorf("no %q in %q", text, got.err)
				}
			}
		})
	}
}

// A redrive says how many messages SQS counts when it ends, and never that this is exact.
func TestNothingLeft(t *testing.T) {
	for name, test := range map[string]struct {
		meanwhile func(w *world)
		says      string
	}{
		"nothing":             {func(*world) {}, "about 0 left in orders-dlq, by SQS's approximate count: sqsonce dlq ls"},
		"a message came":      {func(w *world) { w.send("orders-dlq", "later", "b") }, "about 1 left in orders-dlq, by SQS's approximate count: sqsonce dlq ls"},
		"a count that failed": {func(w *world) { w.fail("GetQueueAttributes") }, "unknown how many are left in orders-dlq: "},
	} {
		run(t, name, func(w *world) {
			w.send("orders-dlq", "e", "b")
			w.put("e", dedup.StateReleased)
			w.consume("orders", func(context.Context, *sqsonce.Message) error { test.meanwhile(w); return nil })
			if got := w.redrive("--all", "--yes"); got.code != exitDone || !strings.Contains(got.err, test.says) || strings.Count(got.err, "left in") != 1 {
				w.Errorf("%+v", got)
			}
		})
	}
}

// fail has SQS fail each call of an operation from now on.
func (w *world) fail(op string) {
	w.stack.MemSQS().Set(fault.Plan{Rules: []fault.Rule{{Op: op, Do: fault.Error, Code: "InternalError"}}})
}
