//go:build unix

package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What docs/start.md shows works as it is: in a new module that gets the released modules, and in a clone.
func TestStart(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(repository, "docs/start.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	program, err := os.ReadFile(filepath.Join(repository, "examples/start/main.go"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(page, "\n```go\n"+string(program)+"```\n") {
		t.Fatal("the page does not have the code of examples/start/main.go")
	}
	start, own := cutSection(t, page, "A module of your own")
	rest, clone := cutSection(t, start, "Or a clone")

	t.Run("module", func(t *testing.T) {
		t.Parallel()
		s := newSession(t, exec.Command("bash", "-e"), t.TempDir(), append(newConsumer(t, preparedTree(t), testVersion).env, "GOFLAGS=-modcacherw -trimpath"), servicesPort)
		before, after, _ := strings.Cut(own, "```go\n")
		s.run(t, before)
		s.run(t, "```console\n$ cp "+mustAbs(t, filepath.Join(repository, "examples/start/main.go"))+" .\n```")
		s.run(t, after)
		s.run(t, rest)
		s.end(t)
		checkBookings(t, s)
	})
	t.Run("clone", func(t *testing.T) {
		t.Parallel()
		tree := t.TempDir()
		if err := copyTree(filepath.Join(tree, "sqsonce"), repository); err != nil {
			t.Fatal(err)
		}
		s := newSession(t, exec.Command("bash", "-e"), tree, os.Environ(), servicesPort)
		s.run(t, strings.Replace(clone, "$ git clone https://github.com/sqsonce/sqsonce\n", "", 1))
		s.run(t, rest)
		s.end(t)
		checkBookings(t, s)
	})
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
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
