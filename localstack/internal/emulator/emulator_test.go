package emulator

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) { Main(m) }

func TestEmulatorsAnswer(t *testing.T) {
	t.Parallel()
	for _, e := range All() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			p := e.Start(t)
			if again := e.Start(t); again != p {
				t.Error("a second Start started a second process")
			}
			if err := p.ask(t.Context(), e.probe); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAdvance(t *testing.T) {
	t.Parallel()
	p := Fauxqs.Start(t)
	created := func(queue string) time.Time {
		var out struct {
			QueueURL   string `json:"QueueUrl"`
			Attributes map[string]string
		}
		p.call(t, "CreateQueue", `{"QueueName":"`+queue+`"}`, &out)
		p.call(t, "GetQueueAttributes", `{"QueueUrl":"`+out.QueueURL+`","AttributeNames":["All"]}`, &out)
		seconds, err := strconv.ParseInt(out.Attributes["CreatedTimestamp"], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return time.Unix(seconds, 0)
	}
	before := created("before")
	if err := p.Advance(time.Hour); err != nil {
		t.Fatal(err)
	}
	if after := created("after"); after.Sub(before) < time.Hour || after.Sub(before) > time.Hour+time.Minute {
		t.Errorf("queues created %v and %v, want an hour between them", before, after)
	}
}

func (p *Process) call(t *testing.T, op, in string, out any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL, strings.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Amz-Target", "AmazonSQS."+op)
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() // only read from
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", op, resp.Status)
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		t.Fatal(err)
	}
}

// script is an emulator that is a shell script; it never answers.
func script(text string) *Emulator {
	return &Emulator{Name: "script", Version: "1", ports: 1, probe: probeSQS, command: func(string, string, []int) (*exec.Cmd, error) {
		return exec.Command("sh", "-c", text), nil
	}}
}

func TestFailedStartShowsTheLog(t *testing.T) {
	t.Parallel()
	_, err := script("echo the license has expired; exit 55").launch(t.Context())
	if err == nil || !strings.Contains(err.Error(), "ended before it was ready") || !strings.Contains(err.Error(), "the license has expired") {
		t.Errorf("got error %v, want one with the log", err)
	}
}

// The children of an emulator end with it, also where this process had no time to stop it: the end of the pipe is all
// that a killed process leaves behind.
func TestTheWholeGroupEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := exec.Command("mkfifo", pipe).Run(); err != nil {
		t.Skipf("no named pipes here: %v", err)
	}
	p := &Process{scratch: t.TempDir(), exited: make(chan struct{})}
	// The grandchild holds the pipe open until it dies.
	if err := p.run(exec.Command("sh", "-c", "sleep 600 >'"+pipe+"' & wait")); err != nil {
		t.Fatal(err)
	}
	r, err := os.Open(pipe)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_ = p.alive.Close()
	done := make(chan error, 1)
	go func() {
		_, err := io.ReadAll(r)
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the grandchild still runs")
	}
	<-p.exited
}

func TestInterruptedInstallationStartsAnew(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir()) // where the cache folder is on other systems
	runs := 0
	e := &Emulator{Name: "moto", Version: "0", install: func(_ context.Context, dir string) error {
		runs++
		if _, err := os.Stat(filepath.Join(dir, "half")); err == nil {
			t.Error("the folder was not emptied")
		}
		if _, err := os.Stat(filepath.Join(dir, "requirements.txt")); err != nil {
			t.Error(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "half"), nil, 0o644); err != nil {
			return err
		}
		if runs == 1 {
			return os.ErrDeadlineExceeded
		}
		return nil
	}}
	if err := e.Install(t.Context()); err == nil || e.Installed() {
		t.Fatalf("got error %v and installed %v after an installation that failed", err, e.Installed())
	}
	for range 2 {
		if err := e.Install(t.Context()); err != nil || !e.Installed() {
			t.Fatalf("got error %v and installed %v, want it installed", err, e.Installed())
		}
	}
	if runs != 2 {
		t.Errorf("installed %d times, want 2", runs)
	}
	dir, err := e.Dir()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, marker), []byte("other assets"), 0o644); err != nil {
		t.Fatal(err)
	}
	if e.Installed() {
		t.Error("an installation with other assets counts")
	}
}

func TestLockExcludes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := lock(ctx, path); err == nil {
		t.Fatal("the lock was taken twice")
	}
	unlock()
	again, err := lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	again()
}

func TestModes(t *testing.T) {
	t.Parallel()
	for _, m := range []string{"", "install", "required"} {
		if err := checkMode(m); err != nil {
			t.Error(err)
		}
	}
	if err := checkMode("require"); err == nil {
		t.Error("EMULATORS=require was taken")
	}
}

func TestMissingEmulatorSaysHowToGetIt(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	_, err := LocalStack.bring("")
	if err == nil || !strings.Contains(err.Error(), "make emulators") || !strings.Contains(err.Error(), "Python") {
		t.Errorf("got error %v, want one that says how to install it", err)
	}
}
