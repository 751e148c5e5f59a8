package testserver

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
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
			if err := s.ask(t.Context(), e.probe); err != nil {
				t.Error(err)
			}
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
	p, err := startProcess(exec.Command("sh", "-c", "sleep 600 >'"+pipe+"' & wait"), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r, err := os.Open(pipe)
	if err != nil {
		t.Fatal(err)
	}
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
