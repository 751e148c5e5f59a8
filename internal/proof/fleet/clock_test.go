//go:build unix

package fleet

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"
)

// envClock is the environment variable that says by how many seconds the clock of a process is off. Its time.Now is wrong by so much, and
// its timers are right, as after you set the clock of a machine.
const envClock = "FLEET_CLOCK"

// Two changes of Go's package time. What it reads is in a file of its own.
const (
	reads   = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	readsBy = reads + "\tsec += clockAhead\n"
	ahead   = `package time

import "syscall"

var clockAhead = func() int64 {
	text, set := syscall.Getenv("` + envClock + `")
	if !set {
		return 0
	}
	n, err := atoi(text)
	if err != nil {
		panic("` + envClock + ` is no number of seconds: " + text)
	}
	return int64(n)
}()
`
)

// withClock builds the test binary once more, as the program of processes whose clocks are off, and returns its path.
func withClock(t *testing.T) string {
	dir := t.TempDir()
	goroot := strings.TrimSpace(string(must.Get(exec.Command("go", "env", "GOROOT").Output())(t)))
	patched := map[string]string{}
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
		patched[filepath.Join(goroot, "src", "time", name)] = path
	}
	source := string(must.Get(os.ReadFile(filepath.Join(goroot, "src", "time", "time.go")))(t))
	if strings.Count(source, reads) != 1 {
		t.Fatalf("%s: time.Now does not begin with these lines any more, change them here:\n%s", goroot, reads)
	}
	write("time.go", strings.Replace(source, reads, readsBy, 1))
	write("clockahead.go", ahead)
	overlay, binary := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "fleet")
	must.Do(t, os.WriteFile(overlay, must.Get(json.Marshal(map[string]any{"Replace": patched}))(t), 0o600))
	if out, err := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	child := exec.Command(binary)
	child.Env = append(os.Environ(), envRole+`={"Kind":"clock"}`, envClock+"=-600")
	shown := must.Get(time.Parse(time.RFC3339, string(must.Get(child.Output())(t))))(t)
	if off := time.Until(shown); off > -9*time.Minute {
		t.Fatalf("the clock of the program is off by %s, want 10 min", off)
	}
	return binary
}
