package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/granted"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/ops"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

const (
	asksYesNo = "Do it? [y/N]"
	asksKey   = "Type the key"
)

// What each command does with a record in each state: its question, its exit code, its calls, and the state after it.
func TestActs(t *testing.T) {
	var (
		looked    = []string{"GetItem"}
		freed     = []string{"GetItem", "UpdateItem"}
		completed = []string{"GetItem", "GetItem", "UpdateItem", "UpdateItem"}
	)
	for _, test := range []struct {
		command  string // with flags
		state    dedup.RecordState
		answer   string // on a terminal; "": there is none; KEY: the key
		question string
		code     exitCode
		calls    []string
		after    dedup.RecordState
	}{
		// free
		{"free", ops.StateUnknown, "y", "", exitRefused, looked, ops.StateUnknown},
		{"free", ops.StateUnknown, "", "", exitRefused, looked, ops.StateUnknown},
		{"free", dedup.StateReleased, "y", "", exitDone, looked, dedup.StateReleased},
		{"free", dedup.StateReleased, "", "", exitDone, looked, dedup.StateReleased},
		{"free", dedup.StateCrashed, "y", asksYesNo, exitDone, freed, dedup.StateReleased},
		{"free", dedup.StateCrashed, "YES", asksYesNo, exitDone, freed, dedup.StateReleased},
		{"free", dedup.StateCrashed, "n", asksYesNo, exitRefused, looked, dedup.StateCrashed},
		{"free", dedup.StateCrashed, "\n", asksYesNo, exitRefused, looked, dedup.StateCrashed},
		{"free", dedup.StateCrashed, "", "", exitRefused, looked, dedup.StateCrashed},
		{"free --yes", dedup.StateCrashed, "", "", exitDone, freed, dedup.StateReleased},
		{"free --yes", dedup.StateCrashed, "n", "", exitDone, freed, dedup.StateReleased},
		{"free --dry-run", dedup.StateCrashed, "y", "", exitDone, looked, dedup.StateCrashed},
		{"free --take --again", dedup.StateCrashed, "y", asksYesNo, exitDone, freed, dedup.StateReleased},
		{"free", dedup.StateRunning, "y", "", exitRefused, looked, dedup.StateRunning},
		{"free --again --yes", dedup.StateRunning, "", "", exitRefused, looked, dedup.StateRunning},
		{"free --take", dedup.StateRunning, "KEY", asksKey, exitDone, freed, dedup.StateReleased},
		{"free --take", dedup.StateRunning, "y", asksKey, exitRefused, looked, dedup.StateRunning},
		{"free --take --yes", dedup.StateRunning, "y", asksKey, exitRefused, looked, dedup.StateRunning},
		{"free --take --yes", dedup.StateRunning, "", "", exitDone, freed, dedup.StateReleased},
		{"free --take", dedup.StateRunning, "", "", exitRefused, looked, dedup.StateRunning},
		{"free --take --dry-run", dedup.StateRunning, "KEY", "", exitDone, looked, dedup.StateRunning},
		{"free", dedup.StateCompleted, "y", "", exitRefused, looked, dedup.StateCompleted},
		{"free --take --yes", dedup.StateCompleted, "", "", exitRefused, looked, dedup.StateCompleted},
		{"free --again", dedup.StateCompleted, "KEY", asksKey, exitDone, freed, dedup.StateReleased},
		{"free --again", dedup.StateCompleted, "y", asksKey, exitRefused, looked, dedup.StateCompleted},
		{"free --again --yes", dedup.StateCompleted, "y", asksKey, exitRefused, looked, dedup.StateCompleted},
		{"free --again --yes", dedup.StateCompleted, "", "", exitDone, freed, dedup.StateReleased},
		{"free --take --again --yes", dedup.StateForeign, "", "", exitRefused, looked, dedup.StateForeign},
		// complete
		{"complete", ops.StateUnknown, "y", "", exitRefused, looked, ops.StateUnknown},
		{"complete --create", ops.StateUnknown, "y", asksYesNo, exitDone, completed, dedup.StateCompleted},
		{"complete --create --yes", ops.StateUnknown, "", "", exitDone, completed, dedup.StateCompleted},
		{"complete", dedup.StateReleased, "y", asksYesNo, exitDone, completed, dedup.StateCompleted},
		{"complete", dedup.StateCrashed, "y", asksYesNo, exitDone, completed, dedup.StateCompleted},
		{"complete", dedup.StateCrashed, "n", asksYesNo, exitRefused, looked, dedup.StateCrashed},
		{"complete", dedup.StateCrashed, "", "", exitRefused, looked, dedup.StateCrashed},
		{"complete --yes", dedup.StateCrashed, "", "", exitDone, completed, dedup.StateCompleted},
		{"complete --dry-run", dedup.StateCrashed, "y", "", exitDone, looked, dedup.StateCrashed},
		{"complete --yes --create", dedup.StateRunning, "", "", exitRefused, looked, dedup.StateRunning},
		{"complete", dedup.StateCompleted, "", "", exitDone, looked, dedup.StateCompleted},
		{"complete --yes --create", dedup.StateForeign, "", "", exitRefused, looked, dedup.StateForeign},
	} {
		run(t, fmt.Sprintf("%s/%s/%q", test.command, test.state, test.answer), func(w *world) {
			key := w.put("e", test.state)
			w.terminal, w.answer = test.answer != "", strings.ReplaceAll(test.answer, "KEY", key)
			before := len(w.stack.MemDynamoDB().Calls())
			got := w.run(append(append([]string{"record"}, strings.Fields(test.command)...), "--table", "dedup", key)...)
			var calls []string
			for _, c := range w.stack.MemDynamoDB().Calls()[before:] {
				calls = append(calls, c.Op)
			}
			if got.code != test.code {
				w.Errorf("exit %d, want %d: %s", got.code, test.code, got.err)
			}
			asked := strings.Contains(got.err, asksYesNo) || strings.Contains(got.err, asksKey)
			if asked != (test.question != "") || !strings.Contains(got.err, test.question) {
				w.Errorf("asks %q, want %q", got.err, test.question)
			}
			if !slices.Equal(calls, test.calls) {
				w.Errorf("calls %q, want %q", calls, test.calls)
			}
			if after := w.state(key); after != test.after {
				w.Errorf("the record is %s, want %s", after, test.after)
			}
			if printed := strings.Contains(got.out, key); printed != (got.code == exitDone) {
				w.Errorf("exit %d prints %q", got.code, got.out)
			}
		})
	}
}

// Several records have one question, each its line and its two lines in the audit. What would be refused is left, and after a write with
// an unknown outcome nothing is written. The command that is named next empties the queue.
func TestActsOnSeveral(t *testing.T) {
	for _, test := range []struct {
		command string // of so many crashed records, others, or those of standard input
		answer  string // on a terminal, or standard input
		code    exitCode
		done    int
	}{
		{"free 3", "y", exitDone, 3},
		{"free 3", "n", exitRefused, 0},
		{"free 3", "", exitRefused, 0},
		{"free 11", "y", exitRefused, 0}, // a number is asked for
		{"free 11", "11", exitDone, 11},
		{"free 11 --timeout 9h", "11", exitPart, 1}, // the second write fails
		{"complete 3 0 --yes", "", exitDone, 3},
		{"free 3 completed running --yes", "", exitPart, 3},
		{"free completed running --yes", "", exitRefused, 0},
		{"free 3 --again --yes", "", exitUsage, 0},
		{"free 3 --yes --plan " + strings.Repeat("0", 64), "", exitUsage, 0},
		{"free - --yes", "billing#orders|0\r\norders|1\norders|2\norders|1\n", exitDone, 3},
		{"free - --yes", "", exitUsage, 0},
		{"free - --dry-run", "orders|0\norders|1", exitDone, 0},
		{"free -", "orders|0\norders|1\ny", exitUsage, 0},
	} {
		run(t, test.command+"/"+test.answer, func(w *world) {
			args, crashed := []string{"record"}, 0
			crash := func() string {
				w.send("orders-dlq", strconv.Itoa(crashed), "b")
				return w.put(strconv.Itoa(crashed), dedup.StateCrashed)
			}
			for _, word := range strings.Fields(test.command) {
				switch n, err := strconv.Atoi(word); {
				case word == "completed" || word == "running":
					args = append(args, w.put(word, dedup.RecordState(word)))
				case err != nil || len(word) > 2:
					args = append(args, word)
				case n == 0:
					args = append(args, consumer+"#orders|0")
				default:
					for ; crashed < n; crashed++ {
						args = append(args, crash())
					}
				}
			}
			for ; crashed < 3; crashed++ {
				crash()
			}
			w.terminal, w.answer = test.answer != "" && !strings.Contains(test.command, "--yes"), test.answer
			if strings.Contains(test.command, "--timeout") {
				w.stack.MemDynamoDB().Set(fault.Plan{Rules: []fault.Rule{{Op: "UpdateItem", Nth: 2, Times: 99, Do: fault.Reset}}})
			}
			got := w.run(append(args, "--table", "dedup", "--consumer", consumer)...)
			w.stack.MemDynamoDB().Set(fault.Plan{})
			done := 0
			for i := range crashed {
				if w.state(consumer+"#orders|"+strconv.Itoa(i)) != dedup.StateCrashed {
					done++
				}
			}
			lines := len(w.audited())
			if got.code != test.code || done != test.done || (lines != 2*done) != (test.done == 1) || done > 0 && strings.Count(got.out, "\tcrashed\t") != done {
				w.Errorf("exit %d, %d done, %d lines in the audit: %s%s", got.code, done, lines, got.out, got.err)
			}
			if _, next, found := strings.Cut(got.err, "next: sqsonce dlq "); found {
				w.consume("orders", succeeds)
				w.terminal = false
				w.run(slices.Concat([]string{"dlq"}, words(strings.NewReplacer("QUEUE", "orders", "completed.jsonl", w.archive()).Replace(next)), []string{"--expect=3", "--yes"}[strings.Count(next, "redrive"):])...)
			}
			if (left(w) == 0) != (done > 0 && test.code == exitDone) {
				w.Errorf("%d messages left", left(w))
			}
		})
	}
}

// Records that are as they should be are named by their number, and listed on standard output.
func TestActsOnSame(t *testing.T) {
	bubble(t, func(w *world) {
		var keys []string
		for i := range 4 {
			keys = append(keys, w.put(strconv.Itoa(i), []dedup.RecordState{dedup.StateReleased, dedup.StateCrashed}[i/3]))
		}
		got := w.run(append([]string{"record", "free", "--yes", "--table", "dedup"}, keys...)...)
		if got.code != exitDone || strings.Count(got.err, "nothing to do") != 1 || !strings.Contains(got.err, "3 records released") || strings.Count(got.out, "\treleased\treleased\n") != 3 {
			t.Errorf("%+v", got)
		}
	})
}

// Of crashed events those in the file of --done are completed, and the others freed. A line that is no key of an event of the consumer
// frees none: it may mean one of them. A dry run refuses the same.
func TestFreeDone(t *testing.T) {
	const nothing = "crashed crashed"
	for name, test := range map[string]struct {
		lines string // of the file; "": there is none
		code  exitCode
		after string // states of a and b
		says  string
	}{
		"one of two":             {"billing#orders|a\r\nbilling#orders|earlier\n", exitDone, "completed released", "1 of 2 keys"},
		"without prefix":         {"orders|b", exitDone, "released completed", "1 KEY not in "},
		"blanks":                 {" \n\tbilling#orders|a \r\n\n", exitDone, "completed released", ""},
		"of other events":        {"billing#orders|earlier\n", exitRefused, nothing, "none of the effects happened"},
		"a part of a KEY":        {"billing#orders|a\nb\n", exitRefused, nothing, "line 2: b: a part of billing#orders|b"},
		"that part is a record":  {"billing#orders|a\nown\nb", exitRefused, nothing, "line 3: b"},
		"other names":            {"a\nb\n", exitRefused, nothing, "line 1: a"},
		"no record":              {"billing#orders|a\nbilling#orders|elsewhere\n", exitRefused, nothing, "line 2: billing#orders|elsewhere"},
		"of another consumer":    {"billing#orders|a\nshipping#orders|b\n", exitRefused, nothing, "shipping#orders|b"},
		"a wrong prefix of all":  {"billing#order|a\nbilling#order|b\n", exitRefused, nothing, "in the form of billing#orders|a"},
		"empty":                  {"\n", exitRefused, nothing, "none of the effects happened: sqsonce record free"},
		"no file":                {"", exitFailed, nothing, ""},
		"two lines of one event": {"orders|a\nbilling#orders|a\n", exitDone, "completed released", ""},
	} {
		for _, named := range []bool{true, false} {
			run(t, fmt.Sprintf("%s/%t", name, named), func(w *world) {
				a, b := w.put("a", dedup.StateCrashed), w.put("b", dedup.StateCrashed)
				w.put("earlier", dedup.StateCompleted)
				for _, key := range []string{"shipping#orders|b", "billing#own", "billing#b"} {
					must.Get(granted.Lease(w.store.Acquire(context.Background(), dedup.Claim{Key: key, Owner: "o", Lease: lease, Retention: time.Hour})))(w)
				}
				if named {
					w.env["SQSONCE_CONSUMER"] = consumer
				} else if name == "without prefix" || name == "two lines of one event" {
					test.code, test.after, test.says = exitRefused, nothing, ""
				}
				file := filepath.Join(w.folder, "happened")
				if test.lines != "" {
					must.Do(w, os.WriteFile(file, []byte(test.lines), 0o600))
				}
				free := []string{"record", "free", a, b, "--table", "dedup", "--note", "ledger", "--done", file}
				if got := w.run(append(free, "--dry-run")...); got.code != test.code || !strings.Contains(got.err, test.says) {
					w.Errorf("the dry run: %+v", got)
				}
				got := w.run(append(free, "--yes")...)
				if after := fmt.Sprint(w.state(a), " ", w.state(b)); got.code != test.code || after != test.after || !strings.Contains(got.err, test.says) {
					w.Errorf("%s: %+v", after, got)
				}
				if lines := w.audited(); test.after == "completed released" && (len(lines) != 4 || lines[0].What != "record complete" || lines[2].What != "record free") {
					w.Errorf("audit %+v", lines)
				}
			})
		}
	}
}

// A ledger of which a line cannot be looked up says nothing of what happened.
func TestFreeDoneUnread(t *testing.T) {
	bubble(t, func(w *world) {
		a, file := w.put("a", dedup.StateCrashed), filepath.Join(w.folder, "happened")
		must.Do(w, os.WriteFile(file, []byte("billing#orders|earlier"), 0o600))
		w.stack.MemDynamoDB().Set(fault.Plan{Rules: []fault.Rule{{Op: "GetItem", Prob: 1, Do: fault.Reset}}})
		got := w.run("record", "free", a, "--table", "dedup", "--yes", "--done", file)
		w.stack.MemDynamoDB().Set(fault.Plan{})
		if s := w.state(a); got.code != exitFailed || s != dedup.StateCrashed || strings.Contains(got.err, "line 1") {
			t.Errorf("%s: %+v", s, got)
		}
	})
}

// The plan of each record comes before its result, and the next command behind.
func TestFreeDoneOrder(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, file := w.put("a", dedup.StateCrashed), w.put("b", dedup.StateCrashed), filepath.Join(w.folder, "happened")
		must.Do(w, os.WriteFile(file, []byte(b), 0o600))
		app, both := w.app(""), &bytes.Buffer{}
		app.out, app.err = both, both
		app.run(context.Background(), []string{"record", "free", a, b, "--table", "dedup", "--yes", "--done", file})
		rest := both.String()
		for _, part := range []string{"complete 1", b + " is", "free 1", a + " is", b + "\tcrashed\tcompleted", a + "\tcrashed\treleased", "next: "} {
			_, after, found := strings.Cut(rest, part)
			if !found {
				w.Fatalf("%q is missing, or too early: %s", part, both)
			}
			rest = after
		}
	})
}

// A freed or completed record says who did it and why; the next owner sees it. It is retained as the consumer's are.
func TestActLeavesNote(t *testing.T) {
	for _, test := range []struct {
		command string
		state   dedup.RecordState
		days    float64
	}{
		{"free --retention=60d", dedup.StateCrashed, 60}, {"complete --retention=60d", dedup.StateCrashed, 60},
		{"complete --create --retention=60d", ops.StateUnknown, 60}, {"complete --create", ops.StateUnknown, 29},
	} {
		run(t, test.command, func(w *world) {
			key := w.put("e", test.state)
			w.run(slices.Concat([]string{"record"}, strings.Fields(test.command), []string{key, "--table", "dedup", "--yes", "--note", "looked: no charge"})...)
			if shown := w.run("record", "show", key, "--table", "dedup").out; !strings.Contains(shown, "\nnote\t") || !strings.Contains(shown, "looked: no charge\n") {
				w.Errorf("record show: %q", shown)
			}
			r := must.Get(w.store.Inspect(context.Background(), key))(w)
			days := time.Until(r.ExpiresAt).Hours() / 24
			if r.LastError != "" || !strings.HasPrefix(r.Owner, "operator/ann/") || days < test.days-0.1 || days > test.days+0.1 {
				w.Errorf("record %+v, retained for %.1f days", r, days)
			}
		})
	}
}

// An interrupt does not end a write: its answer says what happened.
func TestInterruptedWrite(t *testing.T) {
	for command, want := range map[string]dedup.RecordState{"free": dedup.StateReleased, "complete": dedup.StateCompleted} {
		run(t, command, func(w *world) {
			key := w.put("e", dedup.StateCrashed)
			w.stack.MemDynamoDB().Set(fault.Plan{Rules: []fault.Rule{{Op: "UpdateItem", Nth: 1, Times: 9, Do: fault.Delay, Delay: 500 * time.Millisecond}}})
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(200*time.Millisecond, cancel)
			if got := w.runIn(ctx, "record", command, key, "--table", "dedup", "--yes"); got.code != exitDone || ctx.Err() == nil {
				w.Errorf("%+v", got)
			}
			if s := w.state(key); s != want {
				w.Errorf("the record is %s", s)
			}
		})
	}
}

// What has changed while the question was open is not changed again, and the audit has that. A consumer that only looked dead, and
// renews its lease meanwhile, keeps the record.
func TestChangedMeanwhile(t *testing.T) {
	for _, command := range []string{"free", "complete"} {
		for _, renewed := range []bool{false, true} {
			run(t, fmt.Sprintf("%s/renewed=%t", command, renewed), func(w *world) {
				key, after, note := w.put("e", dedup.StateCrashed), dedup.StateReleased, "another operator"
				if renewed {
					after, note = dedup.StateRunning, ""
				}
				w.meddle(func(r dedup.Record) error {
					if !renewed {
						return w.store.Reopen(context.Background(), r, note)
					}
					_, err := w.store.Renew(context.Background(), r.Lease, time.Hour)
					return err
				})
				if got := w.run("record", command, key, "--yes"); got.code != exitRefused || got.out != "" {
					w.Errorf("%+v", got)
				}
				if r := must.Get(w.store.Inspect(context.Background(), key))(w); w.state(key) != after || r.Note != note {
					w.Errorf("record %+v", r)
				}
				if lines := w.audited(); len(lines) != 2 || lines[1].Error == "" || lines[1].After != nil {
					w.Errorf("audit %+v", lines)
				}
			})
		}
	}
}

// meddling is a store whose record somebody changes after the first look at it.
type meddling struct {
	Store
	change func(dedup.Record) error
}

func (w *world) meddle(change func(dedup.Record) error) {
	store := &meddling{w.store, change}
	w.opts.Store = func(context.Context) (Store, error) { return store, nil }
}

func (s *meddling) Inspect(ctx context.Context, key string) (dedup.Record, error) {
	r, err := s.Store.Inspect(ctx, key)
	if change := s.change; err == nil && change != nil {
		s.change = nil
		err = change(r)
	}
	return r, err
}

// Without an answer the command does not claim that it has done anything, or nothing; and a record that looked crashed is not
// free to run.
func TestLostAnswers(t *testing.T) {
	for _, command := range []string{"free", "complete"} {
		run(t, command, func(w *world) {
			key := w.put("e", dedup.StateCrashed)
			w.stack.MemDynamoDB().Set(fault.Plan{Rules: []fault.Rule{{Op: "UpdateItem", Prob: 1, Do: fault.Reset}}})
			got := w.run("record", command, key, "--table", "dedup", "--yes")
			w.stack.MemDynamoDB().Set(fault.Plan{})
			if got.code != exitFailed || got.out != "" || !strings.Contains(got.err, "look again") {
				w.Errorf("%+v", got)
			}
			if s := w.state(key); s != dedup.StateCrashed {
				w.Errorf("the record is %s", s)
			}
		})
	}
}

// An interrupt at the question changes nothing.
func TestInterruptedQuestion(t *testing.T) {
	bubble(t, func(w *world) {
		key := w.put("e", dedup.StateCrashed)
		w.terminal = true
		ctx, cancel := context.WithCancel(context.Background())
		a := &app{
			in: blocked(make(chan struct{})), out: t.Output(), err: t.Output(), asks: true, getenv: func(string) string { return "" },
			opts: Options{Store: func(context.Context) (Store, error) { return w.store, nil }},
		}
		time.AfterFunc(time.Minute, cancel)
		defer close(a.in.(blocked))
		if code := a.run(ctx, []string{"record", "free", key}); code != exitPart {
			t.Errorf("exit %d", code)
		}
		if s := w.state(key); s != dedup.StateCrashed {
			t.Errorf("the record is %s", s)
		}
	})
}

type blocked chan struct{}

func (b blocked) Read([]byte) (int, error) { <-b; return 0, context.Canceled }
