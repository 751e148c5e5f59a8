package cli

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/console"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/ops"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

var (
	released    = []string{"queue", "orders", "class", "bb9381", "state", "released"}
	redriveForm = append([]string{"op", "redrive"}, released...)
	deleteForm  = append([]string{"op", "delete"}, released...)
)

// A class is redriven after its plan, by the command: with its canary, its journal and its audit.
func TestConsoleRedrive(t *testing.T) {
	bubble(t, func(w *world) {
		w.deadLetters(25)
		w.put("crashed", dedup.StateCrashed)
		w.send("orders-dlq", "crashed", "b")
		w.consume("orders", succeeds)
		b := w.browse(true)
		page := b.look("orders")
		if !strings.Contains(page.body, `action="/plan"`) {
			t.Errorf("no form: %s", page.body)
		}
		plan := b.plan(redriveForm...)
		for _, text := range []string{"Redrive class bb9381 (released) of orders-dlq", "25 of about 26 messages would be redriven", "as a canary", "Redrive 25 messages"} {
			if !strings.Contains(plan.text, text) {
				t.Errorf("no %q in %s", text, plan.text)
			}
		}
		if n := left(w); n != 26 || w.hidden("orders-dlq") != 0 {
			t.Fatalf("a plan left %d, hidden %d", n, w.hidden("orders-dlq"))
		}
		got := b.act(plan)
		if got.code != http.StatusSeeOther || !strings.HasPrefix(got.to, "/runs/") {
			t.Fatalf("%d to %q: %s", got.code, got.to, got.text)
		}
		run := b.ended(got.to)
		for _, text := range []string{"State done at", "Planned 25 messages", "Done 25,", "Left 0", "Came back 0", "left 1 not selected", "redriven 25", "redrive-orders-dlq"} {
			if !strings.Contains(run.text, text) {
				t.Errorf("no %q in %s", text, run.text)
			}
		}
		if left := w.stack.MemSQS().Messages("orders-dlq"); len(left) != 1 || left[0].InFlight {
			t.Errorf("%+v are left", left)
		}
		for i := range 25 {
			if key := consumer + "#orders|e" + string(rune('0'+i)); i < 10 && w.state(key) != dedup.StateCompleted {
				t.Errorf("%s is %s", key, w.state(key))
			}
		}
		lines := w.audited()
		if len(lines) != 2 || lines[0].What != "dlq redrive" || lines[0].Who.User != "ann" || !strings.Contains(strings.Join(lines[0].Args, " "), "--plan=") || lines[1].Error != "" {
			t.Errorf("audit %+v", lines)
		}
		if _, journal, _ := strings.Cut(lines[0].Note, "journal "); !exists(journal) {
			t.Errorf("no journal %q", journal)
		}
		if got := b.get("/dlq/orders"); !strings.Contains(got.text, "This look is older than an act on this queue") {
			t.Errorf("%s", got.text)
		}
		if got := b.get("/runs"); !strings.Contains(got.text, "Redrive class bb9381 (released) of orders-dlq done") {
			t.Errorf("%s", got.text)
		}
	})
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

// A delete asks as the command does: the queue's name above ten messages.
func TestConsoleDelete(t *testing.T) {
	for n, named := range map[int]bool{10: false, 11: true} {
		bubble(t, func(w *world) {
			w.deadLetters(n)
			b := w.browse(true)
			b.look("orders")
			plan := b.plan(deleteForm...)
			if asks := strings.Contains(plan.body, `name="typed"`); asks != named {
				t.Errorf("%d: asks for a name: %t: %s", n, asks, plan.body)
			}
			for _, typed := range []string{"", "y", "orders", "orders-dlq.fifo"} {
				if got := b.act(plan, "typed", typed); named && (got.code != http.StatusBadRequest || !strings.Contains(got.text, "nothing was changed")) {
					t.Errorf("typed %q: %d: %s", typed, got.code, got.text)
				}
				if !named {
					break
				}
			}
			if left := left(w); named && (left != n || len(w.audited()) != 0) {
				t.Fatalf("%d of %d left, audit %v", left, n, w.audited())
			}
			run := b.ended(b.act(plan, "typed", " orders-dlq ").to)
			archives, _ := filepath.Glob(filepath.Join(w.folder, "sqsonce", "archive-orders-dlq-*.jsonl"))
			if left := left(w); left != 0 || len(archives) != 1 || !strings.Contains(run.text, archives[0]) || len(w.audited()) != 2 {
				t.Errorf("%d of %d left, %q, audit %v: %s", left, n, archives, w.audited(), run.text)
			}
		})
	}
}

// A plan is good for ten minutes, and once: a second click leads to the same run.
func TestConsolePlanOnce(t *testing.T) {
	bubble(t, func(w *world) {
		w.deadLetters(3)
		w.consume("orders", succeeds)
		b := w.browse(true)
		b.look("orders")
		old := b.plan(redriveForm...)
		time.Sleep(10*time.Minute + time.Second)
		for _, got := range []answer{b.get(old.path), b.act(old)} {
			if got.code != http.StatusConflict || !strings.Contains(got.text, "list again") {
				t.Errorf("an old one: %d: %s", got.code, got.text)
			}
		}
		plan := b.plan(redriveForm...)
		time.Sleep(9 * time.Minute)
		clicks := make(chan answer)
		for range 3 {
			go func() { clicks <- b.act(plan) }()
		}
		first, second, third := <-clicks, <-clicks, <-clicks
		if first.code != http.StatusSeeOther || first.to != second.to || second.to != third.to || b.act(plan).to != first.to {
			t.Errorf("%+v, %+v, %+v", first, second, third)
		}
		b.ended(first.to)
		if got := b.get(plan.path); strings.Contains(got.body, `action="/act/`) || !strings.Contains(got.body, first.to) {
			t.Errorf("the plan's page: %s", got.body)
		}
		if lines := w.audited(); len(lines) != 2 {
			t.Errorf("audit %+v", lines)
		}
	})
}

// A stop, and the end of the console, end a redrive as an interrupt of the command does.
func TestConsoleStop(t *testing.T) {
	for name, stop := range map[string]func(b *browser, path string) answer{
		"stopped": func(b *browser, path string) answer { return b.post(path + "/stop") },
		"ended":   func(b *browser, _ string) answer { b.server.Close(); return answer{code: http.StatusSeeOther} },
	} {
		run(t, name, func(w *world) {
			w.deadLetters(300)
			w.consume("orders", succeeds)
			var logs strings.Builder
			b := w.browse(true, func(o *console.Options) { o.Logger = slog.New(slog.NewTextHandler(&logs, nil)) })
			page := b.post("/dlq/orders/look", "limit", "10000")
			plan := b.plan(redriveForm...)
			got := b.act(plan)
			time.Sleep(4 * time.Second)
			run := b.get(got.to)
			if !strings.Contains(run.text, "under way") || !strings.Contains(run.body, got.to+"/stop") || strings.Contains(run.text, "Done 0,") {
				w.Errorf("%d: %s", page.code, run.text)
			}
			toDo := regexp.MustCompile(`Done (\d+), .* To do (\d+) Left 0 `).FindStringSubmatch(run.text)
			if toDo == nil {
				w.Fatalf("what is to do is not said: %s", run.text)
			}
			done, _ := strconv.Atoi(toDo[1])
			if n, _ := strconv.Atoi(toDo[2]); n != 300-done {
				w.Errorf("%d are done of 300, and %d to do", done, n)
			}
			for _, refused := range []answer{b.post("/dlq/orders/look", "limit", "1000"), b.post("/plan", deleteForm...)} {
				if refused.code != http.StatusConflict || !strings.Contains(refused.text, "a redrive at orders-dlq is under way since") {
					w.Errorf("%d: %s", refused.code, refused.text)
				}
			}
			if answered := stop(b, got.to); answered.code != http.StatusSeeOther {
				w.Errorf("%d: %s", answered.code, answered.text)
			}
			run = b.ended(got.to)
			why := map[string]string{"stopped": "stopped by the console's user", "ended": "the console has ended"}[name]
			for _, text := range []string{"State ended in part", why, "to go on: sqsonce dlq redrive", "--journal"} {
				if !strings.Contains(run.text, text) {
					w.Errorf("no %q in %s", text, run.text)
				}
			}
			// Where the console has ended nobody can open that page.
			if said := strings.Contains(logs.String(), "to go on: sqsonce dlq redrive"); said != (name == "ended") {
				w.Errorf("the log says with which command it goes on: %t\n%s", said, &logs)
			}
			if n := left(w); n == 0 || n == 300 || w.hidden("orders-dlq") != 0 {
				w.Errorf("%d left, %d hidden", n, w.hidden("orders-dlq"))
			}
			if lines := w.audited(); len(lines) != 2 || lines[1].Error == "" {
				w.Errorf("audit %+v", lines)
			}
			_, command, _ := strings.Cut(run.text, "to go on: sqsonce ")
			command, _, _ = strings.Cut(command, ".jsonl")
			if got := w.run(words(command + ".jsonl")...); got.code != exitDone || left(w) != 0 || strings.Contains(command, "--plan") {
				w.Errorf("%s: %+v", command, got)
			}
			if strings.Contains(run.body, got.to+"/stop") {
				w.Errorf("a stop of what has ended: %s", run.body)
			}
		})
	}
}

// What each act would do to a record is what the command says, and what it asks.
func TestConsoleRecord(t *testing.T) {
	for _, test := range []struct {
		state dedup.RecordState
		says  []string
		form  []string
		typed bool
		after dedup.RecordState
	}{
		{dedup.StateCrashed, []string{"record free its next delivery runs it", "record complete it never runs again"}, []string{"op", "free", "note", "looked"}, false, dedup.StateReleased},
		{dedup.StateCrashed, nil, []string{"op", "complete"}, false, dedup.StateCompleted},
		{dedup.StateRunning, []string{"Not now: a consumer runs it", "record free --take the running handler is cancelled"}, []string{"op", "free", "take", "1"}, true, dedup.StateReleased},
		{dedup.StateCompleted, []string{"record free --again its next delivery runs it a second time", "record complete Not now: nothing to do"}, []string{"op", "free", "again", "1"}, true, dedup.StateReleased},
		{ops.StateUnknown, []string{"Not now: no record under this key", "record complete --create it never runs again"}, []string{"op", "complete", "create", "1"}, false, dedup.StateCompleted},
		{dedup.StateForeign, []string{"Not now"}, nil, false, dedup.StateForeign},
	} {
		run(t, string(test.state)+"/"+strings.Join(test.form, " "), func(w *world) {
			key := w.put("e", test.state)
			b := w.browse(true)
			before := b.called()
			page := b.get("/record?key=orders%7Ce")
			for _, text := range append([]string{key, ops.Means(test.state), ops.Do(test.state)}, test.says...) {
				if !strings.Contains(page.text, text) {
					w.Errorf("no %q in %s", text, page.text)
				}
			}
			for op, n := range b.called() {
				if op != "GetItem" && n != before[op] {
					w.Errorf("the page called %s", op)
				}
			}
			if test.form == nil {
				return
			}
			plan := b.plan(append(test.form, "key", key)...)
			if got := strings.Contains(plan.body, `name="typed"`); got != test.typed {
				w.Errorf("asks for the key: %t: %s", got, plan.text)
			}
			if got := b.act(plan, "typed", "y"); test.typed && (got.code != http.StatusBadRequest || w.state(key) != test.state) {
				w.Errorf("%d, %s: %s", got.code, w.state(key), got.text)
			}
			got := b.act(plan, "typed", key)
			if test.typed && (got.code != http.StatusSeeOther || !strings.HasPrefix(got.to, "/record?key=")) {
				w.Errorf("%d to %q: %s", got.code, got.to, got.text)
			}
			if w.state(key) != test.after || len(w.audited()) != 2 {
				w.Errorf("it is %s, audit %+v", w.state(key), w.audited())
			}
		})
	}
}

// A record that cannot be read is an error, of the kind that it is.
func TestConsoleRecordFails(t *testing.T) {
	bubble(t, func(w *world) {
		key := w.put("e", dedup.StateCrashed)
		b := w.browse(true)
		for code, want := range map[string]int{"AccessDeniedException": http.StatusForbidden, "ValidationException": http.StatusBadGateway} {
			w.stack.MemDynamoDB().Set(fault.Plan{Rules: []fault.Rule{{Op: "GetItem", Prob: 1, Do: fault.Error, Code: code}}})
			if got := b.get("/record?key=" + url.QueryEscape(key)); got.code != want || !strings.Contains(got.text, "GetItem") {
				t.Errorf("%s: %d: %s", code, got.code, got.text)
			}
		}
		w.stack.MemDynamoDB().Set(fault.Plan{})
		b = w.browse(true, func(o *console.Options) { // as without a --consumer, where it has no #
			o.Record = func(context.Context, string) (dedup.Record, dedup.RecordState, error) {
				return dedup.Record{}, "", errors.New("no record's key")
			}
			o.Command = func(_ context.Context, _, _ io.Writer, args ...string) int { return int(exitUsage) }
		})
		if got := b.get("/record?key=x"); got.code != http.StatusBadRequest || !strings.Contains(got.text, "no record's key") {
			t.Errorf("a wrong key: %d: %s", got.code, got.text)
		}
	})
	bubble(t, func(w *world) { // what a command says is shown without the program's name
		w.opts.Name = "sqsonce-full"
		got := w.browse(true).get("/record?key=" + url.QueryEscape(w.put("e", dedup.StateRunning)))
		if got.code != http.StatusOK || !strings.Contains(got.text, "a consumer runs it") || strings.Contains(got.text, w.opts.Name) {
			t.Errorf("%d: %s", got.code, got.text)
		}
	})
	bubble(t, func(w *world) {
		b := w.browse(true, func(o *console.Options) { o.Record = nil })
		if got := b.get("/record?key=x"); got.code != http.StatusOK || !strings.Contains(got.text, "There is no store") {
			t.Errorf("%d: %s", got.code, got.text)
		}
	})
}

// The command of a console that panics, or is denied, ends its run and nothing else.
func TestConsoleCommandFails(t *testing.T) {
	for name, test := range map[string]struct {
		command func(err io.Writer) int
		code    int
		says    string
	}{
		"panics":  {func(io.Writer) int { panic("boom") }, http.StatusSeeOther, "boom"},
		"denied":  {func(err io.Writer) int { _, _ = io.WriteString(err, "sqsonce: needs: sqs:SendMessage\n"); return 6 }, http.StatusForbidden, "sqs:SendMessage"},
		"refused": {func(err io.Writer) int { _, _ = io.WriteString(err, "sqsonce: no\n"); return 5 }, http.StatusConflict, "no"},
		"silent":  {func(io.Writer) int { return 5 }, http.StatusConflict, ""},
	} {
		run(t, name, func(w *world) {
			w.deadLetters(3)
			b := w.browse(true, func(o *console.Options) {
				real := o.Command
				o.Command = func(ctx context.Context, out, err io.Writer, args ...string) int {
					if strings.Contains(strings.Join(args, " "), "--dry-run") {
						return real(ctx, out, err, args...)
					}
					return test.command(err)
				}
			})
			got := b.act(b.plan(redriveForm...))
			if got.code != test.code {
				w.Errorf("%d: %s", got.code, got.text)
			}
			if got.code == http.StatusSeeOther {
				got = b.ended(got.to)
			}
			if !strings.Contains(got.text, test.says) {
				w.Errorf("%s", got.text)
			}
			if got := b.look("orders"); !strings.Contains(got.text, "3 messages, all that SQS shows and counts") { // it is let in again
				w.Errorf("%s", got.text)
			}
		})
	}
}
