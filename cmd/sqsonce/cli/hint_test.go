package cli

import (
	"context"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/must"
)

var printed = regexp.MustCompile(`(?m): (sqsonce [a-z-]+ .*)$`)

// Each command that is printed runs as it was printed, where no environment variable has what the call's flags said, and so do those
// that it prints.
func TestHintsRun(t *testing.T) {
	flags := []string{"--queue", "orders", "--consumer", consumer, "--table=dedup", "--retention", "20d"}
	for name, test := range map[string]struct {
		stage    func(w *world)
		command  []string
		terminal bool
		want     []string // first words of commands that are printed, by this one or by those that it leads to
	}{
		"look at a killer": {
			stage:   func(w *world) { w.die(died, "a", "b", "killer") },
			command: append([]string{"dlq", "ls", "--limit=-1"}, flags...),
			want:    []string{"record free", "dlq delete", "dlq redrive", "dlq ls"},
		},
		"the only one that crashed": {
			stage:   func(w *world) { w.die(died, "a") },
			command: append([]string{"dlq", "ls"}, flags...),
			want:    []string{"record free", "dlq delete"},
		},
		"one message": {
			stage:   func(w *world) { w.die(died, "a", "killer") },
			command: append([]string{"dlq", "show", "ID"}, flags...),
			want:    []string{"record free"},
		},
		"several freed": {
			stage: func(w *world) {
				w.die(died, "a", "killer")
				for _, event := range []string{"b", "c"} {
					w.send("orders-dlq", event, "b")
					w.put(event, dedup.StateReleased)
				}
			},
			command: append([]string{"record", "free", "--process", died, "--none-happened", "--yes"}, flags...),
			want:    []string{"dlq redrive", "dlq ls"},
		},
		"records without a consumer": {
			stage:   func(w *world) { w.die(died, "a", "killer") },
			command: []string{"record", "ls", "--table", "dedup"},
			want:    []string{"record free", "dlq delete"},
		},
		"more records": {
			stage: func(w *world) {
				w.put("o'clock", dedup.StateReleased)
				w.put("b", dedup.StateReleased)
			},
			command: []string{"record", "ls", "--table", "dedup", "--limit=1"},
			want:    []string{"record ls"},
		},
		"a record by its key": {
			stage:   func(w *world) { w.send("orders-dlq", "a", "b"); w.put("a", dedup.StateCrashed) },
			command: []string{"record", "free", "--table", "dedup", consumer + "#orders|a", "--yes"},
			want:    []string{"dlq redrive"},
		},
		"a completed one": {
			stage: func(w *world) {
				for _, event := range []string{"a", "done"} {
					w.send("orders-dlq", event, "b")
				}
				w.put("a", dedup.StateCrashed)
				w.put("done", dedup.StateCompleted)
			},
			command: []string{"record", "complete", "--table", "dedup", consumer + "#orders|a", "--yes"},
			want:    []string{"dlq delete", "dlq ls"},
		},
		"no such class": {
			stage:   func(w *world) { w.send("orders-dlq", "a", "b"); w.put("a", dedup.StateReleased) },
			command: append([]string{"dlq", "ls", "--class", "000000"}, flags...),
			want:    []string{"dlq ls"},
		},
		"missing records": {
			stage: func(w *world) {
				w.send("orders-dlq", "a", "b")
				w.put("a", dedup.StateReleased)
				w.send("orders-dlq", "b", "b")
			},
			command: append([]string{"dlq", "ls"}, flags...),
			want:    []string{"dlq ls"},
		},
		"a canary that is blocked": {
			stage:   func(w *world) { w.send("orders-dlq", "a", "b"); w.put("a", dedup.StateCrashed) },
			command: append([]string{"dlq", "redrive", "--all", "--crashed", "--yes", "--canary-timeout=1s"}, flags...),
			want:    []string{"record free"},
		},
		"no such process": {
			stage:   func(w *world) { w.die(died, "a") },
			command: append([]string{"record", "free", "--process", "pod-2", "--none-happened", "--yes"}, flags...),
			want:    []string{"dlq ls"},
		},
		"a pause": {
			stage:   func(*world) {},
			command: []string{"pause", "--consumer", consumer, "--table", "dedup", "--queue", "orders", "--until", "1h", "--reason", "r", "--yes"},
			want:    []string{"status"},
		},
		"a replay": {
			stage:   func(w *world) { w.send("orders-dlq", "a", "b"); w.put("a", dedup.StateCompleted) },
			command: append([]string{"replay", "--note", "n", "--wait", "0", "ID", "--yes"}, flags...),
			want:    []string{"replay"},
		},
	} {
		run(t, name, func(w *world) {
			delete(w.env, "SQSONCE_QUEUE")
			w.Chdir(w.folder)
			must.Do(w, os.WriteFile(filepath.Join(w.folder, "happened"), []byte(consumer+"#orders|a\n"), 0o600))
			test.stage(w)
			if i := slices.Index(test.command, "ID"); i >= 0 {
				test.command[i] = w.stack.MemSQS().Messages("orders-dlq")[0].ID
			}
			if name != "a canary that is blocked" {
				w.consume("orders", succeeds)
			}
			all := map[string]bool{}
			var follow func(args []string, depth int)
			follow = func(args []string, depth int) {
				got := w.run(args...)
				lines := got.err
				// By a command that was printed, too.
				byAnother := strings.Contains(lines, "it is completed: --again") || strings.Contains(lines, "crashed in process "+died+": nothing was changed")
				elsewhere := strings.Contains(lines, "--none-happened") // the ledger says nothing of these, and the command is printed
				if depth > 0 && got.code != exitDone && got.code != exitPart && !byAnother && !elsewhere {
					w.Errorf("%q: %+v", args, got)
				}
				for _, found := range printed.FindAllStringSubmatch(strings.ReplaceAll(lines, "more:\n  ", "more: "), -1) {
					line := strings.Replace(found[1], "--queue QUEUE", "--queue orders", 1) // nobody has named one
					if !all[line] && depth < 5 {
						all[line] = true
						next := pasted(w, line)[1:]
						if next[0] == "record" && (next[1] == "free" || next[1] == "complete") {
							if slices.Contains(next, "--yes") {
								w.Errorf("a printed command says yes: %s", line)
							}
							next = append(next, "--yes")
						}
						follow(next, depth+1)
					}
				}
			}
			follow(test.command, 0)
			for _, want := range test.want {
				found := false
				for line := range all {
					found = found || strings.HasPrefix(line, "sqsonce "+want+" ")
				}
				if !found {
					w.Errorf("no %q is printed, but %q", want, slices.Collect(maps.Keys(all)))
				}
			}
		})
	}
}

// pasted returns the words that a shell makes of a line.
func pasted(w *world, line string) []string {
	out := must.Get(exec.Command("sh", "-c", `printf '%s\0' `+line).Output())(w)
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// A printed command has no secret of a URL, and says so once. A flag that nobody gave is not in it.
func TestHintWithoutSecret(t *testing.T) {
	bubble(t, func(w *world) {
		w.opts.StoreURL = func(context.Context, *url.URL) (Store, error) { return w.store, nil }
		key := w.put("a", dedup.StateCrashed)
		got := w.run("record", "free", "--store", "postgres://ann:hunter2@host/db?sslpassword=hunter3", "--operator", "bob", key, "--yes")
		if got.code != exitDone || strings.Contains(got.err, "hunter") || strings.Count(got.err, "SQSONCE_STORE") != 1 ||
			!strings.Contains(got.err, "next: sqsonce dlq redrive --store 'postgres://ann:xxxxx@host/db?xxxxx' --consumer billing --queue QUEUE --key") {
			t.Errorf("%+v", got)
		}
	})
}
