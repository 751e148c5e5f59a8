// Package release has the tests of release.sh, of the installation of what is released, and of the pages that tell to type something.
package release

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/internal/must"
)

// scratchFiles is a repository of three modules: the main one, a published one that uses its internal package, and one that is
// not published.
var scratchFiles = map[string]string{
	"go.mod":                        "module example.com/scratch\n\ngo 1.26.0\n",
	"scratch.go":                    "package scratch\n\ntype Options struct{ Wait, Retry int }\n",
	"internal/a/a.go":               "package a\n\nfunc F() {}\n",
	"sub/go.mod":                    "module example.com/scratch/sub\n\ngo 1.26.0\n\nreplace example.com/scratch => ../\n\nrequire example.com/scratch v0.0.0\n",
	"sub/sub.go":                    "package sub\n\nimport \"example.com/scratch/internal/a\"\n\nfunc G() { a.F() }\n",
	"bench/go.mod":                  "module example.com/scratch/bench\n\ngo 1.26.0\n\nreplace (\n\texample.com/scratch => ../\n\texample.com/scratch/sub => ../sub\n)\n\nrequire example.com/scratch/sub v0.0.0\n\nrequire example.com/scratch v0.0.0 // indirect\n",
	"CHANGELOG.md":                  "# Changelog\n\n## 0.1.0\n\n## 0.1.1\n\n## 0.2.0\n\n## 1.1.0\n",
	"testdata/golden/v0.1.0/record": "1",
}

type scratch struct {
	t   *testing.T
	dir string
}

func (s scratch) git(args ...string) string {
	s.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false"}, args...)...)
	cmd.Dir = s.dir
	return must.Get(output(cmd))(s.t)
}

// replace changes a file and commits it.
func (s scratch) replace(name, old, new string) {
	s.t.Helper()
	name = filepath.Join(s.dir, name)
	text, err := os.ReadFile(name)
	if err != nil || !strings.Contains(string(text), old) {
		s.t.Fatalf("%s has no %q (%v)", name, old, err)
	}
	must.Do(s.t, os.WriteFile(name, []byte(strings.ReplaceAll(string(text), old, new)), 0o644))
	s.git("commit", "--quiet", "--all", "--message=change")
}

// releasedScratch is a repository whose tag v0.1.0 was made by the commands that the script prints.
func releasedScratch(t *testing.T) scratch {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIPPED: git is not installed: releases are not tested")
	}
	s := scratch{t: t, dir: t.TempDir()}
	for name, text := range scratchFiles {
		must.Do(t, copyText(filepath.Join(s.dir, name), text))
	}
	s.git("init", "--quiet", "--initial-branch=main")
	s.git("add", "--all")
	s.git("commit", "--quiet", "--message=all")
	out := must.Get(script(s.dir, "v0.1.0"))(t)
	if got, want := s.git("diff", "--unified=0", "sub/go.mod"), "+require example.com/scratch v0.1.0\n"; !strings.Contains(got, want) || !strings.Contains(got, "-replace") {
		t.Errorf("sub/go.mod: %s", got)
	}
	if got := s.git("diff", "bench/go.mod"); strings.Contains(got, "-\texample.com/scratch =>") {
		t.Errorf("a module that is not published lost its replace: %s", got)
	}
	for command := range strings.Lines(out) {
		if args, ok := strings.CutPrefix(command, "  git "); ok && !strings.HasPrefix(args, "push") {
			s.git(strings.Fields(strings.Replace(args, "'release v0.1.0'", "release", 1))...)
		}
	}
	if !strings.HasSuffix(out, "\n  git push --atomic origin main sub/v0.1.0\n  git push origin v0.1.0\n") {
		t.Errorf("GitHub starts no workflow for more than three tags at once, push that of the workflow alone: %s", out)
	}
	if tags := s.git("tag", "--list"); tags != "sub/v0.1.0\nv0.1.0\n" {
		t.Errorf("tags: %q", tags)
	}
	return s
}

// A release is prepared only where every check passes.
func TestRelease(t *testing.T) {
	t.Parallel()
	released := releasedScratch(t)
	for name, test := range map[string]struct {
		change         func(s scratch)
		version, error string // v0.2.0; "": it is released
	}{
		"compatible":       {change: func(s scratch) { s.replace("scratch.go", "Retry int", "Retry, More int") }, version: "v0.1.1"},
		"minor version":    {change: func(s scratch) { s.replace("scratch.go", "Wait, Retry", "Retry") }},
		"patch version":    {func(s scratch) { s.replace("scratch.go", "Wait, Retry", "Retry") }, "v0.1.1", "raise the minor version"},
		"patch of sub":     {func(s scratch) { s.replace("sub/sub.go", "func G", "func H") }, "v0.1.1", "raise the minor version"},
		"same version":     {version: "v0.1.0", error: "not greater than the last tag"},
		"no version":       {version: "0.2", error: "is not v0.x.y"},
		"no section":       {version: "v0.3.0", error: "no section 0.3.0"},
		"not committed":    {change: func(s scratch) { _ = copyText(filepath.Join(s.dir, "new.go"), "package scratch\n") }, error: "not committed"},
		"another branch":   {change: func(s scratch) { s.git("checkout", "--quiet", "-b", "other") }, error: "branch main"},
		"golden file":      {change: func(s scratch) { s.replace("testdata/golden/v0.1.0/record", "1", "2") }, error: "golden files"},
		"module's name":    {change: func(s scratch) { s.replace("sub/go.mod", "scratch/sub", "scratch/other") }, error: "its tag would not be found"},
		"does not build":   {change: func(s scratch) { s.replace("sub/sub.go", "a.F()", "a.H()") }, error: "undefined: a.H"},
		"old sub-module":   {change: func(s scratch) { s.replace("internal/a/a.go", "F", "H"); s.replace("sub/sub.go", "a.F", "a.H") }, error: "sub of v0.1.0 does not build"},
		"promised by v1.0": {func(s scratch) { s.git("tag", "v1.0.0"); s.replace("scratch.go", "Wait, Retry", "Retry") }, "v1.1.0", "promised compatibility"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := scratch{t, t.TempDir()}
			must.Get(output(exec.Command("cp", "-a", released.dir+"/.", s.dir)))(t)
			if test.change != nil {
				test.change(s)
			}
			before := s.git("status", "--porcelain")
			version := test.version
			if version == "" {
				version = "v0.2.0"
			}
			out, err := script(s.dir, version)
			if test.error == "" {
				if err != nil || !strings.Contains(out, "git tag sub/"+version+"\n") {
					t.Errorf("%v\n%s", err, out)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.error) {
				t.Errorf("error %v, want one with %q\n%s", err, test.error, out)
			}
			if after := s.git("status", "--porcelain"); after != before {
				t.Errorf("changed files:\n%s", after)
			}
		})
	}
}

func copyText(name, text string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text), 0o644)
}

// output runs cmd and returns what it printed. Its error has what the command wrote to both streams.
func output(cmd *exec.Cmd) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s%s", strings.Join(cmd.Args, " "), err, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.String(), nil
}
