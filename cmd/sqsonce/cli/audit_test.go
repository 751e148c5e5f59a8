package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/must"
)

// A change is written down before it is made, and when it is: who, what, why, before, after. What is not made is not there.
func TestAudit(t *testing.T) {
	bubble(t, func(w *world) {
		key := w.put("e", dedup.StateCrashed)
		w.run("record", "free", key, "--table", "dedup", "--dry-run")
		w.run("record", "free", key, "--table", "dedup")
		w.run("record", "show", key, "--table", "dedup")
		if lines := w.audited(); lines != nil {
			t.Errorf("nothing was changed, and the audit has %+v", lines)
		}
		w.run("record", "free", key, "--table", "dedup", "--yes", "--note", "looked: no charge")
		w.run("record", "complete", key, "--table", "dedup", "--yes", "--operator", "bob")
		lines := w.audited()
		if len(lines) != 4 {
			t.Fatalf("%+v", lines)
		}
		for i, want := range []struct{ what, user, note, before, after string }{
			{"record free", "ann", "looked: no charge", "crashed", "released"}, {"record complete", "bob", "", "released", "completed"},
		} {
			begin, end := lines[2*i], lines[2*i+1]
			if begin.Event != "begin" || begin.What != want.what || begin.Key != key || begin.Note != want.note || begin.Before != want.before ||
				begin.After != want.after || begin.Who.ARN != callerARN || begin.Who.User != want.user || begin.Args[0] != "record" || begin.Time.IsZero() {
				t.Errorf("%+v, %+v", begin, begin.Who)
			}
			if end.Event != "end" || end.ID != begin.ID || end.What != want.what || end.Key != key || end.After != want.after || end.Error != "" {
				t.Errorf("%+v", end)
			}
		}
		for name, want := range map[string]os.FileMode{"": 0o700, auditFile: 0o600} {
			info, err := os.Stat(filepath.Join(w.folder, "sqsonce", name))
			if must.Do(w, err); info.Mode().Perm() != want {
				t.Errorf("%q has mode %v", name, info.Mode())
			}
		}
	})
}

// Where a change cannot be written down it is not made.
func TestNoChangeWithoutAudit(t *testing.T) {
	for name, inTheWay := range map[string]string{"no folder": "sqsonce", "no file": "sqsonce/audit.jsonl/x"} {
		for command, args := range map[string][]string{
			"free": {"record", "free", "billing#orders|e0", "--table", "dedup"}, "complete": {"record", "complete", "billing#orders|e0", "--table", "dedup"},
			"drain":   append([]string{"dlq", "export", filepath.Join(t.TempDir(), "a.jsonl"), "--drain", "--all"}, redriveLine[2:]...),
			"redrive": append([]string{"--crashed", "--all", "--canary=0"}, redriveLine...),
		} {
			run(t, name+"/"+command, func(w *world) {
				w.put("e0", dedup.StateCrashed)
				w.send("orders-dlq", "e0", "b")
				path := filepath.Join(w.folder, filepath.FromSlash(inTheWay))
				must.Do(w, os.MkdirAll(filepath.Dir(path), 0o700))
				must.Do(w, os.WriteFile(path, nil, 0o600))
				writes := len(w.stack.MemDynamoDB().Calls())
				got := w.run(append(args, "--yes")...)
				if got.code != exitFailed || got.out != "" || !strings.Contains(got.err, "nothing was changed") || !strings.Contains(got.err, "XDG_STATE_HOME") {
					w.Errorf("%+v", got)
				}
				for _, c := range w.stack.MemDynamoDB().Calls()[writes:] {
					if c.Op != "GetItem" {
						w.Errorf("called %s", c.Op)
					}
				}
				if left(w) != 1 || len(w.stack.MemSQS().Messages("orders")) != 0 || w.hidden("orders-dlq") != 0 {
					w.Error("the message was sent, or is hidden")
				}
			})
		}
	}
}

// Where AWS does not say whose credentials these are the change is made, and the audit alone has why.
func TestAuditWithoutCaller(t *testing.T) {
	for name, caller := range map[string]func(context.Context) (string, error){
		"refused":      func(context.Context) (string, error) { return "", errors.New("no STS here") },
		"not answered": func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() },
	} {
		run(t, name, func(w *world) {
			key, start := w.put("e", dedup.StateCrashed), time.Now()
			w.caller = caller
			got := w.run("record", "free", key, "--table", "dedup", "--yes")
			if got.code != exitDone || strings.Contains(got.err, "STS") || time.Since(start) > callerTimeout+time.Second {
				w.Errorf("after %s: %+v", time.Since(start), got)
			}
			if lines := w.audited(); len(lines) != 2 || lines[0].Who.ARN != "" || lines[0].Who.Unknown == "" || lines[0].Who.User != "ann" {
				w.Errorf("%+v", lines)
			}
		})
	}
}

// A line that a full disk has cut takes no other one with it; one that cannot be written after the change is an error.
func TestAuditTorn(t *testing.T) {
	bubble(t, func(w *world) {
		path := filepath.Join(w.folder, "sqsonce", auditFile)
		must.Do(w, os.MkdirAll(filepath.Dir(path), 0o700))
		must.Do(w, os.WriteFile(path, []byte(`{"v":1,"id":"cut`), 0o600))
		a := &app{err: t.Output(), connect: w.connect, getenv: func(string) string { return w.folder }}
		c := must.Get(a.audit(context.Background(), auditLine{What: "record free"}))(w)
		text := must.Get(os.ReadFile(path))(w)
		if lines := strings.Split(string(text), "\n"); len(lines) != 3 || !strings.HasPrefix(lines[1], `{"v":1,`) || !strings.HasSuffix(lines[1], "}") {
			t.Errorf("%s", text)
		}
		must.Do(w, os.Remove(path))
		must.Do(w, os.Mkdir(path, 0o700))
		if err := c.end("released", nil); err == nil || !strings.Contains(err.Error(), "it was done") {
			t.Errorf("%v", err)
		}
	})
}

// The folder is the user's own where XDG_STATE_HOME is no absolute path.
func TestStateFolder(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	for state, want := range map[string]string{"": home + "/.local/state/sqsonce", "state": home + "/.local/state/sqsonce", home + "/x": home + "/x/sqsonce"} {
		a := &app{getenv: func(string) string { return state }}
		if got, err := a.stateFolder(); err != nil || got != filepath.FromSlash(want) {
			t.Errorf("%q: %s, %v", state, got, err)
		}
	}
	t.Setenv("HOME", "")
	if _, err := (&app{getenv: func(string) string { return "" }}).stateFolder(); codeOf(t.Context(), err) != exitFailed {
		t.Errorf("without a home: %v", err)
	}
}

// The pages of a console, and the commands that they run, use one store, and keep the URL's secrets to themselves.
func TestConsoleStoreURL(t *testing.T) {
	bubble(t, func(w *world) {
		key, opened := w.put("e", dedup.StateCrashed), 0
		w.opts.StoreURL = func(_ context.Context, u *url.URL) (Store, error) {
			if opened++; u.Host != "host" {
				return nil, errors.New("another URL")
			}
			return w.store, nil
		}
		w.opts.Name = "mine"
		a := w.app("")
		a.flags.store = "mem://u:s3cret@host/d?key=s3cret#s3cret"
		p := &pages{ctx: w.Context(), app: a, services: must.Get(w.connect(w.Context()))(w)}
		if got := a.commandLine([]string{"top"}); got != "mine top" {
			t.Errorf("it prints %q", got)
		}
		if _, state, err := p.record(w.Context(), key); err != nil || state != dedup.StateCrashed {
			t.Errorf("the record is %s, %v", state, err)
		}
		var out, errs bytes.Buffer
		if code := p.command(w.Context(), &out, &errs, "record", "free", "--yes", key); code != 0 || opened != 1 {
			t.Errorf("exit %d, opened %d times: %s%s", code, opened, &out, &errs)
		}
		if printed := out.String() + errs.String() + fmt.Sprint(w.audited()); strings.Contains(printed, "s3cret") || !strings.Contains(printed, "--store=mem://u:xxxxx@host/d?xxxxx") {
			t.Errorf("it prints %s", printed)
		}
	})
}
