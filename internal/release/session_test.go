//go:build unix

package release

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

// session is a shell that gets the commands of a page one after the other, as somebody types them who reads the output.
type session struct {
	cmd   *exec.Cmd
	stdin io.Writer
	ports *strings.Replacer // free ones, in place of those of the page
	ended chan error
	loose bool // of each output the first line and the exit code are expected, with any numbers, times, IDs and widths

	mu     sync.Mutex
	output bytes.Buffer
	read   int // how much of the output was expected
}

// newSession starts the shell, such as bash -e. The ports are those of the page.
func newSession(t *testing.T, shell *exec.Cmd, dir string, env []string, ports ...string) *session {
	t.Helper()
	var replace []string
	for _, page := range ports {
		port, reserved, err := testserver.ReservePort()
		must.Do(t, err)
		t.Cleanup(func() { _ = reserved.Close() })
		replace = append(replace, ":"+page, ":"+strconv.Itoa(port))
	}
	var err error
	s := &session{cmd: shell, ports: strings.NewReplacer(replace...), ended: make(chan error, 1)}
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = dir, s, s
	s.cmd.Env = append(env, "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null")
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	must.Do(t, s.cmd.Start())
	go func() { s.ended <- s.cmd.Wait() }()
	if _, err := fmt.Fprintln(s.stdin, "trap 'kill $(jobs -p) 2>/dev/null' EXIT"); err != nil { // also where the test is killed
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) }) // what a failed test left
	return s
}

func (s *session) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.output.Write(p)
}

var consoleBlocks = regexp.MustCompile("(?s)```console\n(.*?)```")

// run types the commands of the console blocks. The lines below a command are output that must come before the next one is typed, in
// any order: a handler's output and the lines of the worker's log are written at the same time. "..." stands for anything at a line's
// end.
func (s *session) run(t *testing.T, page string) {
	t.Helper()
	commands := 0
	var output []string
	for _, block := range consoleBlocks.FindAllStringSubmatch(page, -1) {
		for line := range strings.Lines(s.ports.Replace(block[1])) {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				s.expect(t, output...)
				commands, output = commands+1, nil
				if _, err := fmt.Fprint(s.stdin, command); err != nil {
					t.Fatalf("%q: %v\n%s", command, err, s.text())
				}
				continue
			}
			if !s.loose || output == nil || strings.HasPrefix(line, "exit code") {
				output = append(output, strings.TrimSuffix(strings.TrimSpace(line), " ..."))
			}
		}
	}
	s.expect(t, output...)
	if commands == 0 {
		t.Fatal("no commands: nothing was checked")
	}
}

// expect waits for texts in the output, in any order, behind what was expected before.
func (s *session) expect(t *testing.T, texts ...string) {
	t.Helper()
	missing := ""
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if missing = s.find(texts); missing == "" {
			return
		}
		select {
		case err := <-s.ended:
			t.Fatalf("the shell has ended (%v) before %q:\n%s", err, missing, s.text())
		default:
		}
	}
	t.Fatalf("no %q in the output:\n%s", missing, s.text())
}

// find returns a text that is not there yet, or "" and goes on behind the last one. Each stands for itself: a text that is expected
// twice must be there twice.
func (s *session) find(texts []string) (missing string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	behind, from := s.read, map[string]int{}
	for _, text := range texts {
		start := max(s.read, from[text])
		at := pattern(text, s.loose).FindIndex(s.output.Bytes()[start:])
		if at == nil {
			return text
		}
		from[text] = start + at[1]
		behind = max(behind, from[text])
	}
	s.read = behind
	return ""
}

var (
	variable = regexp.MustCompile(`\s+|[0-9a-f]{8}-[0-9a-f-]{27}|\d[\d.:]*(µs|ms|[smhd]\b)?( \d+[smh]\b)?`)
	anyOf    = map[bool]string{true: `\s+`, false: `[0-9a-f]{8}-[0-9a-f-]{27}|\d[\d.:]*(µs|ms|[smhd]\b)?( \d+[smh]\b)?`}
)

// pattern is what a line of a page stands for.
func pattern(line string, loose bool) *regexp.Regexp {
	if !loose {
		return regexp.MustCompile(regexp.QuoteMeta(line))
	}
	var b strings.Builder
	last := 0
	for _, at := range variable.FindAllStringIndex(line, -1) {
		b.WriteString(regexp.QuoteMeta(line[last:at[0]]))
		b.WriteString("(?:" + anyOf[strings.TrimSpace(line[at[0]:at[1]]) == ""] + ")")
		last = at[1]
	}
	b.WriteString(regexp.QuoteMeta(line[last:]))
	return regexp.MustCompile(b.String())
}

func (s *session) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.output.String()
}

// end fails the test unless all commands have succeeded.
func (s *session) end(t *testing.T) {
	t.Helper()
	must.Get(fmt.Fprintln(s.stdin, "echo all done"))(t)
	s.expect(t, "all done")
}

// startPage returns the parts of docs/start.md: for a new module, for a clone, and the rest.
func startPage(t *testing.T) (own, clone, rest string) {
	t.Helper()
	page := string(must.Get(os.ReadFile(filepath.Join(repository, "docs/start.md")))(t))
	program := must.Get(os.ReadFile(filepath.Join(repository, "examples/start/main.go")))(t)
	if !strings.Contains(page, "\n```go\n"+string(program)+"```\n") {
		t.Fatal("the page does not have the code of examples/start/main.go")
	}
	page, own = cutSection(t, page, "Make a module")
	rest, clone = cutSection(t, page, "Or a clone")
	return own, clone, rest
}

// What docs/start.md shows works as it is in a new module that gets the released modules.
func testStartModule(t *testing.T, c consumer) {
	own, _, rest := startPage(t)
	s := newSession(t, exec.Command("bash", "-e"), t.TempDir(), append(c.env, "GOFLAGS=-modcacherw"), servicesPort)
	before, after, _ := strings.Cut(own, "```go\n")
	s.run(t, before)
	s.run(t, "```console\n$ cp "+mustAbs(t, filepath.Join(repository, "examples/start/main.go"))+" .\n```")
	s.run(t, after)
	s.run(t, rest)
	s.end(t)
	checkBookings(t, s)
}

// And it does in a clone. That is this tree, not a copy, in which everything would be compiled once more.
func TestStartClone(t *testing.T) {
	t.Parallel()
	_, clone, rest := startPage(t)
	dir := t.TempDir()
	must.Do(t, os.Symlink(mustAbs(t, repository), filepath.Join(dir, "sqsonce")))
	t.Cleanup(func() { must.Do(t, os.RemoveAll(filepath.Join(repository, "examples/start/bin"))) })
	s := newSession(t, exec.Command("bash", "-e", "-P"), dir, os.Environ(), servicesPort)
	s.run(t, strings.Replace(clone, "$ git clone https://github.com/sqsonce/sqsonce\n", "", 1))
	s.run(t, rest)
	s.end(t)
	checkBookings(t, s)
}

// servicesPort is that of SQS and DynamoDB on the pages.
const servicesPort = "4566"

func checkBookings(t *testing.T, s *session) {
	t.Helper()
	if n := strings.Count(s.text(), "booking ord-42"); n != 2 {
		t.Errorf("the handler was started %d times, want 2: killed once, and not for the second message\n%s", n, s.text())
	}
}

// cutSection takes a section out of a page.
func cutSection(t *testing.T, page, title string) (rest, section string) {
	t.Helper()
	before, section, found := strings.Cut(page, "\n## "+title+"\n")
	section, after, _ := strings.Cut(section, "\n## ")
	if !found {
		t.Fatalf("no section %q", title)
	}
	return before + "\n## " + after, section
}

func mustAbs(t *testing.T, path string) string {
	t.Helper()
	return must.Get(filepath.Abs(path))(t)
}
