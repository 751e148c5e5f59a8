package testserver

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"
)

func TestEmulatorsAnswer(t *testing.T) {
	t.Parallel()
	for _, e := range Emulators() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			s := e.Shared(t)
			if again := e.Shared(t); again != s {
				t.Error("a second call of Shared started a second process")
			}
			must.Do(t, s.ask(t.Context(), e.probe))
		})
	}
}

// script is an emulator that is a shell script; it never answers.
func script(text string) *Emulator {
	return &Emulator{Name: "moto", Version: "1", probe: probeSQS, command: func(string, string, string) *exec.Cmd {
		return exec.Command("sh", "-c", text)
	}}
}

func TestFailedStartOfAnEmulatorShowsTheLog(t *testing.T) {
	t.Parallel()
	_, err := script("echo the license has expired; exit 55").launch(t.Context())
	if err == nil || !strings.Contains(err.Error(), "ended before it was ready") || !strings.Contains(err.Error(), "the license has expired") {
		t.Errorf("got error %v, want one with the log", err)
	}
}

// The children of an emulator end with it, also when the test process is killed and cannot stop it: the watchdog then sees
// the end of its pipe, and nothing else.
func TestWholeProcessGroupEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := exec.Command("mkfifo", pipe).Run(); err != nil {
		t.Skipf("no named pipes here: %v", err)
	}
	// The grandchild has the pipe open until it ends.
	p := must.Get(startProcess(exec.Command("sh", "-c", "sleep 600 >'"+pipe+"' & wait"), t.TempDir()))(t)
	r := must.Get(os.Open(pipe))(t)
	defer r.Close()
	_ = p.pipe.Close()
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

func TestBrowserIsMissing(t *testing.T) {
	for _, name := range []string{"PATH", "XDG_CACHE_HOME", "HOME"} {
		t.Setenv(name, t.TempDir())
	}
	if _, _, err := setUpBrowser(""); !errors.Is(err, errMissing) || !strings.Contains(err.Error(), "make emulators") {
		t.Errorf("missing: got error %v, want one that says how to install it", err)
	}
	if _, _, err := setUpBrowser(off); !errors.Is(err, errMissing) {
		t.Errorf("off: got error %v, want errMissing", err)
	}
	if _, _, err := setUpBrowser("require"); err == nil || errors.Is(err, errMissing) {
		t.Errorf("misspelt: got error %v, want one that fails the test", err)
	}
	if _, _, err := setUpBrowser(required); err == nil {
		t.Error("required: got no error without apt-get")
	}
}

func TestBrowse(t *testing.T) {
	t.Parallel()
	chromium, axe := Browse(t)
	for _, path := range []string{chromium, axe} {
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestPrometheus(t *testing.T) {
	t.Parallel()
	url := StartPrometheus(t, "global: {scrape_interval: 1s}\n")
	out, err := exec.Command(Promtool(t), "query", "instant", url, "vector(7)").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "=> 7 @") {
		t.Errorf("got %s and %v, want 7", out, err)
	}
	program := filepath.Join(Prometheus.Dir(t), "usr", "bin", "prometheus")
	if _, err := startPrometheus(t, program, "no such setting: 1\n"); err == nil || !strings.Contains(err.Error(), "no such setting") {
		t.Errorf("with a wrong configuration: %v, want an error with the end of the log", err)
	}
}
