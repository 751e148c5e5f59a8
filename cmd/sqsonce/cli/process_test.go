package cli

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/granted"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/sqsworker"
)

const died = "pod-1.ABCDEFGH"

// die leaves the records of events that ran in a process that died, started 2 s apart, and their messages.
func (w *world) die(process string, events ...string) {
	w.Helper()
	for _, event := range events {
		claim := dedup.Claim{Key: consumer + "#orders|" + event, Owner: event + "@" + process, Lease: lease, Retention: 29 * 24 * time.Hour, ReceiveCount: 5}
		must.Get(granted.Lease(w.store.Acquire(context.Background(), claim)))(w)
		w.send("orders-dlq", event, "b")
		time.Sleep(2 * time.Second)
	}
	time.Sleep(lease + 10*time.Second)
}

// The neighbours of a killer are freed by the name of their process, and their messages are redriven by the printed command. The killer
// and the events of other processes stay, and a name or a key that is mistyped frees nothing.
func TestFreeNeighbours(t *testing.T) {
	const all = "a b killer other"
	for name, test := range map[string]struct {
		args string
		code exitCode
		left string // crashed events
		next string // part of the printed command; "": there is none
	}{
		"all but the killer":        {"--process " + died + " --none-happened --except orders|killer", exitDone, "killer other", "--canary 2"},
		"all":                       {"--process " + died + " --none-happened", exitDone, "other", "--canary 3"},
		"no word of the effects":    {"--process " + died, exitRefused, all, "--done happened"},
		"none happened to a key":    {"orders|a --none-happened", exitUsage, all, ""},
		"another process":           {"--process unknown --none-happened", exitDone, "a b killer", "--key"},
		"a process that is not":     {"--process pod-2.ABCDEFGH --none-happened", exitRefused, all, ""},
		"a killer that is not":      {"--process " + died + " --none-happened --except orders|kille", exitRefused, all, ""},
		"all are killers":           {"--process unknown --none-happened --except orders|other", exitRefused, all, ""},
		"all but one that runs":     {"--process " + died + " --none-happened --except orders|runs", exitDone, "other", "--key"},
		"a key without a word":      {"--process " + died + " orders|a", exitRefused, all, "--done happened"},
		"a key of it":               {"--process " + died + " orders|a --none-happened", exitDone, "b killer other", "--key"},
		"a key and a killer":        {"--process " + died + " orders|a --none-happened --except orders|killer", exitUsage, all, ""},
		"a killer of no process":    {"orders|a --except orders|killer", exitUsage, all, ""},
		"neither process nor key":   {"", exitUsage, all, ""},
		"only a plan of neighbours": {"--process " + died + " --none-happened --dry-run", exitDone, all, ""},
		"a plan without a word":     {"--process " + died + " --dry-run", exitRefused, all, "--none-happened"},
	} {
		run(t, name, func(w *world) {
			w.env["SQSONCE_QUEUE"], w.env["SQSONCE_CONSUMER"], w.env["SQSONCE_TABLE"] = "orders", consumer, "dedup"
			w.die(died, "a", "b", "killer")
			w.die("no process", "other")
			runs := dedup.Claim{Key: consumer + "#orders|runs", Owner: "runs@" + died, Lease: time.Hour, Retention: 29 * 24 * time.Hour, ReceiveCount: 5}
			must.Get(granted.Lease(w.store.Acquire(context.Background(), runs)))(w)
			got := w.run(slices.Concat([]string{"record", "free", "--note", "ledger"}, strings.Fields(test.args), []string{"--yes"}[min(1, strings.Count(test.args, "dry-run")):])...)
			var crashed []string
			for _, event := range strings.Fields(all) {
				if w.state(consumer+"#orders|"+event) == dedup.StateCrashed {
					crashed = append(crashed, event)
				}
			}
			if left := strings.Join(crashed, " "); got.code != test.code || left != test.left || !strings.Contains(got.err, test.next) {
				w.Errorf("%s are crashed, want %s; next %q: %+v", left, test.left, test.next, got)
			}
			if kept := strings.Contains(got.err, "When it is fixed, and if its effect has not happened: sqsonce record free"); kept != (got.code == exitDone && strings.Contains(test.args, "--except")) {
				w.Errorf("a command for the one that is kept is printed: %t: %+v", kept, got)
			}
			_, next, found := strings.Cut(strings.TrimSpace(got.err), "next: sqsonce ")
			next, _, _ = strings.Cut(next, "\n")
			if !found {
				return
			}
			w.consume("orders", func(context.Context, *sqsonce.Message) error { return nil })
			if redriven := w.run(words(next)...); redriven.code != exitDone {
				w.Errorf("%s: %+v", next, redriven)
			}
			if n := len(w.stack.MemSQS().Messages("orders-dlq")); n != len(crashed) {
				w.Errorf("%d messages are left, want %d", n, len(crashed))
			}
		})
	}
}

// The redrive that is printed for one process sends none of another's events that were freed meanwhile.
func TestRedriveOneProcess(t *testing.T) {
	bubble(t, func(w *world) {
		w.env["SQSONCE_QUEUE"], w.env["SQSONCE_CONSUMER"], w.env["SQSONCE_TABLE"] = "orders", consumer, "dedup"
		w.die(died, "a", "b", "killer")
		w.die("pod-2.ABCDEFGH", "c", "d")
		got := w.run("record", "free", "--process", died, "--except", "orders|killer", "--none-happened", "--yes")
		w.run("record", "free", "--process", "pod-2.ABCDEFGH", "--none-happened", "--yes")
		var ran []string
		w.consume("orders", func(_ context.Context, m *sqsonce.Message) error {
			ran = append(ran, m.Attributes[sqsonce.AttrEventID].String)
			return nil
		})
		_, next, _ := strings.Cut(got.err, "next: sqsonce ")
		next, _, _ = strings.Cut(next, "\n")
		redriven := w.run(words(next)...)
		if slices.Sort(ran); redriven.code != exitDone || strings.Join(ran, " ") != "a b" {
			t.Errorf("%q ran %v: %+v", next, ran, redriven)
		}
	})
}

// The redrive that is printed for more events than a command line should have sends no other one, and has a canary for each.
func TestRedriveLargeProcess(t *testing.T) {
	bubble(t, func(w *world) {
		w.env["SQSONCE_QUEUE"], w.env["SQSONCE_CONSUMER"], w.env["SQSONCE_TABLE"] = "orders", consumer, "dedup"
		var events []string
		for i := range mostNamed + 1 {
			events = append(events, "e"+strconv.Itoa(i))
		}
		w.die(died, events...)
		w.put("other", dedup.StateReleased)
		w.send("orders-dlq", "other", "b")
		got := w.run("record", "free", "--process", died, "--none-happened", "--yes")
		command := printed.FindAllStringSubmatch(got.err, -1)
		if len(command) != 1 || !strings.Contains(command[0][1], "--canary "+strconv.Itoa(len(events))) {
			w.Fatalf("%+v", got)
		}
		w.consume("orders", succeeds)
		redriven := w.run(pasted(w, command[0][1])[1:]...)
		if redriven.code != exitDone || !strings.Contains(redriven.out, "redriven\t"+strconv.Itoa(len(events))+"\t") || left(w) != 1 || w.state(consumer+"#orders|other") != dedup.StateReleased {
			w.Errorf("%d left: %+v", left(w), redriven)
		}
	})
}

// A free that breaks off prints the redrive of the events that it has freed, with a canary for each.
func TestFreeBreaksOff(t *testing.T) {
	bubble(t, func(w *world) {
		w.env["SQSONCE_QUEUE"], w.env["SQSONCE_CONSUMER"], w.env["SQSONCE_TABLE"] = "orders", consumer, "dedup"
		w.die(died, "a", "b", "c")
		w.stack.MemDynamoDB().Set(fault.Plan{Rules: []fault.Rule{{Op: "UpdateItem", Nth: 3, Times: 99, Do: fault.Reset}}})
		got := w.run("record", "free", "--process", died, "--none-happened", "--yes")
		w.stack.MemDynamoDB().Set(fault.Plan{})
		_, next, _ := strings.Cut(got.err, "next: sqsonce ")
		next, _, _ = strings.Cut(next, "\n")
		w.consume("orders", succeeds)
		if redriven := w.run(words(next)...); got.code == exitDone || !strings.Contains(next, "--canary 2") || redriven.out != "redriven\t2\t\nleft\t1\tnot selected\n" || w.state(consumer+"#orders|c") != dedup.StateCrashed {
			w.Errorf("%q of %+v: %+v", next, got, redriven)
		}
	})
}

// A record says neither its queue nor whose key function made its key. The command that a list of records prints frees the events that it
// lists, and no others, whichever queue the environment names.
func TestRecordsNameNoQueue(t *testing.T) {
	bubble(t, func(w *world) {
		w.env["SQSONCE_QUEUE"], w.env["SQSONCE_TABLE"] = "orders", "dedup"
		must.Do(w, os.WriteFile(filepath.Join(w.folder, "happened"), []byte("billing#own:1\n"), 0o600))
		w.Chdir(w.folder)
		for _, key := range []string{"billing#own:1", "billing#own:2", "shipping#own:1", "shipping#own:killer"} { // of key functions, with messages of other queues
			claim := dedup.Claim{Key: key, Owner: key + "@" + died, Lease: lease, Retention: 29 * 24 * time.Hour, ReceiveCount: 5}
			must.Get(granted.Lease(w.store.Acquire(context.Background(), claim)))(w)
			time.Sleep(2 * time.Second)
		}
		time.Sleep(lease + 10*time.Second)
		got := w.run("record", "ls")
		command := printed.FindStringSubmatch(got.err)
		if command == nil {
			w.Fatalf("%+v", got)
		}
		freed := w.run(append(pasted(w, command[1])[1:], "--yes")...)
		if freed.code != exitDone || w.state("billing#own:1") != dedup.StateCompleted || w.state("billing#own:2") != dedup.StateReleased ||
			w.state("shipping#own:1") != dedup.StateReleased || w.state("shipping#own:killer") != dedup.StateCrashed || !strings.Contains(freed.err, "redrive --consumer shipping --key 'shipping#own:1'") {
			w.Errorf("%q: %+v", command[1], freed)
		}
	})
}

// The event that started last in a process may have its message in the source queue yet. A list of the dead-letter queue prints the list
// that has it.
func TestSuspectInTheSourceQueue(t *testing.T) {
	bubble(t, func(w *world) {
		w.env["SQSONCE_QUEUE"], w.env["SQSONCE_CONSUMER"], w.env["SQSONCE_TABLE"] = "orders", consumer, "dedup"
		w.die(died, "a", "b")
		claim := dedup.Claim{Key: consumer + "#orders|killer", Owner: "killer@" + died, Lease: lease, Retention: 29 * 24 * time.Hour, ReceiveCount: 1}
		must.Get(granted.Lease(w.store.Acquire(context.Background(), claim)))(w)
		time.Sleep(lease + 10*time.Second)
		got := w.run("dlq", "ls")
		command := printed.FindStringSubmatch(got.err)
		if command == nil || strings.Contains(got.err, "killer") {
			w.Fatalf("%+v", got)
		}
		if all := w.run(pasted(w, command[1])[1:]...); !strings.Contains(all.err, "orders|killer started last") {
			w.Errorf("%q: %+v", command[1], all)
		}
	})
}

// Where nobody has said which effects happened, each of the two commands that are printed runs.
func TestWhichEffectsHappened(t *testing.T) {
	for i, want := range []string{"completed released", "released released"} {
		run(t, want, func(w *world) {
			w.Chdir(w.folder)
			must.Do(w, os.WriteFile("happened", []byte(consumer+"#orders|a\n"), 0o600))
			w.die(died, "a", "b")
			got := w.run("record", "free", "--process", died, "--yes", "--queue", "orders", "--consumer", consumer, "--table", "dedup")
			commands := printed.FindAllStringSubmatch(got.err, -1)
			if got.code != exitRefused || len(commands) != 2 {
				w.Fatalf("%+v", got)
			}
			got = w.run(append(pasted(w, commands[i][1])[1:], "--yes")...)
			if after := string(w.state(consumer+"#orders|a") + " " + w.state(consumer+"#orders|b")); got.code != exitDone || after != want {
				w.Errorf("%s: %+v", after, got)
			}
		})
	}
}

// The only crashed event of a process may be left of several, whose change has replaced the process in their records. One that crashed
// beside one that still runs is not the only one: the one that runs started last. No crash is said to prove a killer.
func TestOnlyOneLeft(t *testing.T) {
	bubble(t, func(w *world) {
		w.env["SQSONCE_QUEUE"], w.env["SQSONCE_CONSUMER"], w.env["SQSONCE_TABLE"] = "orders", consumer, "dedup"
		w.die(died, "b", "a")
		w.run("record", "free", "billing#orders|b", "--yes")
		if got := w.run("dlq", "ls"); !strings.Contains(got.err, "orders|a is the only one of this process that is left. Others may have been freed") || !strings.Contains(got.err, "if it may have killed") ||
			strings.Contains(got.err, "alone") || strings.Contains(got.err, "probably") || strings.Contains(got.err, "--except") {
			t.Errorf("the only one: %+v", got)
		}
		must.Get(granted.Lease(w.store.Acquire(context.Background(), dedup.Claim{Key: consumer + "#orders|b", Owner: "b@" + died, Lease: time.Hour, Retention: 29 * 24 * time.Hour})))(w)
		if got := w.run("dlq", "ls"); strings.Contains(got.err, "the only one") || !strings.Contains(got.err, "--except 'billing#orders|b'") {
			t.Errorf("beside one that runs: %+v", got)
		}
	})
}

// dyingAgain is a store in which an event crashes in another process after it was listed.
type dyingAgain struct {
	Store
	w    *world
	key  string
	read bool
}

func (s *dyingAgain) Inspect(ctx context.Context, key string) (dedup.Record, error) {
	if key == s.key && s.read {
		claim := dedup.Claim{Key: key, Owner: "again@pod-2.ABCDEFGH", Lease: lease, Retention: 29 * 24 * time.Hour, ReceiveCount: 6}
		must.Get(granted.Lease(s.w.store.Acquire(ctx, claim)))(s.w)
		time.Sleep(lease + 10*time.Second)
	}
	s.read = s.read || key == s.key
	return s.w.store.Inspect(ctx, key)
}

// An event that has run in another process since the list is not freed.
func TestFreeNeighboursRanAgain(t *testing.T) {
	bubble(t, func(w *world) {
		w.env["SQSONCE_QUEUE"], w.env["SQSONCE_CONSUMER"], w.env["SQSONCE_TABLE"] = "orders", consumer, "dedup"
		w.die(died, "a", "b")
		w.opts.Store = func(context.Context) (Store, error) {
			return &dyingAgain{Store: w.store, w: w, key: consumer + "#orders|b"}, nil
		}
		got := w.run("record", "free", "--process", died, "--none-happened", "--yes")
		if a, b := w.state(consumer+"#orders|a"), w.state(consumer+"#orders|b"); got.code != exitPart || a != dedup.StateReleased || b != dedup.StateCrashed || !strings.Contains(got.err, "another process") {
			t.Errorf("a is %s, b is %s: %+v", a, b, got)
		}
	})
}

// The printed command asks which effects happened: those events are completed. The only one that is left may be the killer, or
// something else has killed the process: its redrive is printed with that.
func TestFreeByLedger(t *testing.T) {
	bubble(t, func(w *world) {
		w.env["SQSONCE_QUEUE"], w.env["SQSONCE_CONSUMER"], w.env["SQSONCE_TABLE"] = "orders", consumer, "dedup"
		w.die(died, "a", "b", "killer")
		_, line, _ := strings.Cut(w.run("dlq", "ls").err, ": sqsonce record free")
		line, _, _ = strings.Cut(line, "\n")
		if !strings.Contains(line, "--done happened") {
			w.Fatalf("the printed command has no ledger: %s", line)
		}
		ledger := filepath.Join(w.folder, "happened")
		must.Do(w, os.WriteFile(ledger, []byte("billing#orders|a\nbilling#orders|b\n"), 0o600))
		got := w.run("record", "free", "--process", died, "--done", ledger, "--yes")
		if a, b, killer := w.state("billing#orders|a"), w.state("billing#orders|b"), w.state("billing#orders|killer"); a != dedup.StateCompleted || b != a || killer != dedup.StateReleased {
			w.Errorf("%s, %s, %s: %+v", a, b, killer, got)
		}
		if !strings.Contains(got.err, "dlq redrive --key 'billing#orders|killer' --yes") || !strings.Contains(got.err, "orders|killer crashed with its process: if it may have killed") || strings.Contains(got.err, "probably") {
			w.Errorf("next: %s", got.err)
		}
	})
}

// A redrive that ends at the killer says its key, does not count it as redriven, and prints the command that sends the others. That one
// leaves the killer without a failure, and says which command shows the crashed events that may still come.
func TestRedriveToTheKiller(t *testing.T) {
	bubble(t, func(w *world) {
		w.env["SQSONCE_QUEUE"], w.env["SQSONCE_CONSUMER"], w.env["SQSONCE_TABLE"] = "orders", consumer, "dedup"
		w.die(died, "killer", "a", "b")
		_, next, _ := strings.Cut(strings.TrimSpace(w.run("record", "free", "--process", died, "--none-happened", "--yes").err), "next: sqsonce ")
		died := errors.New("its process died")
		var crashed atomic.Bool
		consumer := must.Get(sqsworker.New(w.stack.SQS, w.stack.QueueURL["orders"], func(ctx context.Context, m *sqsonce.Message) error {
			key := "billing#orders|" + m.Attributes[sqsonce.AttrEventID].String
			if strings.HasSuffix(key, "killer") && crashed.Swap(true) {
				return died // as dedup.OnCrashBlock
			}
			l, err := granted.Lease(w.store.Acquire(ctx, dedup.Claim{Key: key, Owner: "killer@pod-2.ABCDEFGH", Lease: lease, Retention: 29 * 24 * time.Hour}))
			if err != nil || strings.HasSuffix(key, "killer") {
				return errors.Join(err, died)
			}
			return w.store.Complete(ctx, l, dedup.Result{})
		}, func(o *sqsworker.Options) { o.Logger, o.WaitTime = slog.New(slog.DiscardHandler), time.Second }))(w)
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- consumer.Run(ctx) }()
		got := w.run(words(next)...)
		_, next, _ = strings.Cut(strings.TrimSpace(got.err), "without it: sqsonce ")
		if got.code != exitPart || strings.Contains(next, "killer") || !strings.Contains(got.err, "orders|killer probably kills") || !strings.Contains(got.out, "redriven\t1\tits process died") {
			w.Errorf("the redrive that ends at the killer: %+v", got)
		}
		time.Sleep(time.Hour) // the killer's message is here again
		got = w.run(words(next)...)
		_, next, _ = strings.Cut(strings.TrimSpace(got.err), "used up: sqsonce ")
		if got.code != exitDone || !strings.Contains(got.out, "redriven\t2\t\n") || left(w) != 1 || !strings.Contains(w.run(words(next)...).out, "orders|killer") {
			w.Errorf("the redrive of the others, and %q: %+v, %d left", next, got, left(w))
		}
		for i := range 20 { // more than the redrive has received when its canary ends
			w.put(strconv.Itoa(i), dedup.StateReleased)
			w.send("orders-dlq", strconv.Itoa(i), "b")
		}
		crashed.Store(false)
		w.run("record", "free", "orders|killer", "--yes")
		if got := w.run("dlq", "redrive", "--key", "orders|killer", "--yes"); got.code != exitPart || !strings.Contains(got.err, "probably kills") || strings.Contains(got.err, "The others") {
			w.Errorf("a redrive of the killer alone: %+v", got)
		}
		stop()
		must.Do(w, <-ended)
	})
}

// Each list names the process that died, and the event that started last.
func TestProcessesAreListed(t *testing.T) {
	bubble(t, func(w *world) {
		w.env["SQSONCE_QUEUE"], w.env["SQSONCE_CONSUMER"], w.env["SQSONCE_TABLE"] = "orders", consumer, "dedup"
		w.die(died, "a", "b")
		id := w.send("orders-dlq", "b", "second copy")
		for _, command := range []string{"record ls", "record ls --process " + died, "dlq ls", "dlq ls --messages", "dlq show " + id} {
			got := w.run(strings.Fields(command)...)
			_, after, found := strings.Cut(got.err, "process "+died+": 2 crashed")
			at := func(text string) int { return strings.Index(after, text) }
			if got.code != exitDone || !found || at("unknown") < 0 || at("unknown") > at("suspect") || at("orders|a") > at("orders|b") || at("orders|b started last") < 0 {
				w.Errorf("%s: %+v", command, got)
			}
			if command == "dlq show "+id {
				continue
			}
			if got := w.run(append(strings.Fields(command), "--json")...); !strings.Contains(got.out, `"processes":[{"process":"`+died+`","events":[{"key":"billing#orders|a"`) || strings.Contains(got.err, died) {
				w.Errorf("%s --json: %+v", command, got)
			}
		}
		if got := w.run("record", "ls", "--process", "pod-2.ABCDEFGH"); got.out != "" || strings.Contains(got.err, died) {
			w.Errorf("of another process: %+v", got)
		}
	})
}

// The printed command has the flags of the call, and runs.
func TestPrintedFreeRuns(t *testing.T) {
	bubble(t, func(w *world) {
		w.die(died, "a", "killer")
		got := w.run("dlq", "ls", "--dlq", "orders-dlq", "--consumer", consumer, "--table=dedup")
		_, free, _ := strings.Cut(got.err, "Then: sqsonce ")
		free, _, _ = strings.Cut(free, "\n")
		free = strings.Replace(free, "--done happened", "--none-happened", 1)
		if freed := w.run(append(words(free), "--yes")...); freed.code != exitDone || w.state(consumer+"#orders|a") != dedup.StateReleased || w.state(consumer+"#orders|killer") != dedup.StateCrashed {
			t.Errorf("%q of %+v: %+v", free, got, freed)
		}
	})
}

// A reason is shown whole, whatever the terminal's width.
func TestReasonIsWrapped(t *testing.T) {
	bubble(t, func(w *world) {
		reason := strings.Repeat("card provider declined, ", 12) + strings.Repeat("x", 120) + " end"
		w.send("orders-dlq", "a", "b", sqsonce.AttrRejectReason, reason)
		for _, w.width = range []int{60, 80, 200} {
			got := w.run("dlq", "ls", "--queue", "orders")
			if whole := strings.Join(strings.Fields(got.out), ""); !strings.Contains(whole, strings.ReplaceAll(reason, " ", "")) {
				w.Errorf("width %d: %s", w.width, got.out)
			}
			table, _, _ := strings.Cut(got.out, "\n\n")
			for line := range strings.Lines(table) {
				if runewidth.StringWidth(strings.TrimSuffix(line, "\n")) > w.width {
					w.Errorf("width %d: %q", w.width, line)
				}
			}
		}
	})
}

// Where a list may lack the event that killed a process, no command is printed that frees the others. A filter of what is shown hides
// nothing from that.
func TestSuspectOfAPart(t *testing.T) {
	for name, test := range map[string]struct {
		command string
		break1  bool // a record can't be read
		frees   bool
	}{
		"all":              {command: "dlq ls", frees: true},
		"a class":          {command: "dlq ls --class aeb4fa", frees: true},
		"a part":           {command: "dlq ls --limit 2"},
		"an unread record": {command: "dlq ls", break1: true},
		"all records":      {command: "record ls", frees: true},
		"some records":     {command: "record ls --limit 2"},
		"later records":    {command: "record ls --after billing#orders|a"},
		"without running":  {command: "record ls --state crashed"},
	} {
		run(t, name, func(w *world) {
			w.env["SQSONCE_QUEUE"], w.env["SQSONCE_CONSUMER"], w.env["SQSONCE_TABLE"] = "orders", consumer, "dedup"
			w.die(died, "a", "b", "c")
			for range 2 { // of another class: it has crashed twice
				claim := dedup.Claim{Key: consumer + "#orders|killer", Owner: "killer@" + died, Lease: lease, Retention: 29 * 24 * time.Hour, ReceiveCount: 5}
				must.Get(granted.Lease(w.store.Acquire(context.Background(), claim)))(w)
				time.Sleep(lease + 10*time.Second)
			}
			w.send("orders-dlq", "killer", "b", sqsonce.AttrRejectReason, "boom")
			if test.break1 {
				w.stack.MemDynamoDB().Set(fault.Plan{Rules: []fault.Rule{{Op: "GetItem", Nth: 4, Times: 20, Do: fault.Error, Code: "InternalServerError"}}})
			}
			got := w.run(strings.Fields(test.command)...)
			if frees := strings.Contains(got.err, "sqsonce record free"); frees != test.frees || frees && !strings.Contains(got.err, "orders|killer started last") || frees != strings.Contains(got.err, "sure that the process is dead") || !strings.Contains(got.err, "process "+died) {
				w.Errorf("%+v", got)
			}
			if _, all, found := strings.Cut(got.err, "Before you free any of these, list all: sqsonce "); found {
				w.stack.MemDynamoDB().Set(fault.Plan{})
				all, _, _ = strings.Cut(all, "\n")
				if got := w.run(words(all)...); !strings.Contains(got.err, "sqsonce record free") {
					w.Errorf("%s: %+v", all, got)
				}
			} else if !test.frees {
				w.Errorf("no command lists all: %+v", got)
			}
		})
	}
}
