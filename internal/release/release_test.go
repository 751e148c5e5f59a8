package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var day = time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)

// scratchFiles is a repository of three modules: the main one, a published one that uses its internal package, and one that is
// not published.
var scratchFiles = map[string]string{
	"go.mod":          "module example.com/scratch\n\ngo 1.26.0\n",
	"scratch.go":      "package scratch\n\ntype Options struct{ Wait, Retry int }\n\nfunc (*Options) Do() {}\n",
	"internal/a/a.go": "package a\n\nfunc F() {}\n",
	"sub/go.mod":      "module example.com/scratch/sub\n\ngo 1.26.0\n\nreplace example.com/scratch => ../\n\nrequire example.com/scratch v0.0.0\n",
	"sub/sub.go":      "package sub\n\nimport \"example.com/scratch/internal/a\"\n\nfunc G() { a.F() }\n",
	"bench/go.mod":    "module example.com/scratch/bench\n\ngo 1.26.0\n\nreplace (\n\texample.com/scratch => ../\n\texample.com/scratch/sub => ../sub\n)\n\nrequire example.com/scratch/sub v0.0.0\n\nrequire example.com/scratch v0.0.0 // indirect\n",
	"bench/main.go":   "package main\n\nimport \"example.com/scratch/sub\"\n\nfunc main() { sub.G() }\n",
	"CHANGELOG.md":    "# Changelog\n\n## Unreleased\n\n### Added\n\n- All.\n",
	"golden_test.go":  "package scratch\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestGolden(t *testing.T) {\n\tif text, _ := os.ReadFile(\"testdata/golden/v0.1.0/record\"); string(text) != \"1\" {\n\t\tt.Fatal(\"unreadable record\")\n\t}\n}\n",
	goldenScratch:     "1",
}

const goldenScratch = "testdata/golden/v0.1.0/record"

type scratchRepo struct {
	t   *testing.T
	dir string
}

func newScratch(t *testing.T) scratchRepo {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIPPED: git is not installed: releases are not tested")
	}
	s := scratchRepo{t: t, dir: t.TempDir()}
	s.git("init", "--quiet", "--initial-branch=main")
	s.commit(scratchFiles)
	return s
}

// released is a repository whose v0.1.0 is tagged, and which has a line for the next version.
func releasedScratch(t *testing.T) scratchRepo {
	t.Helper()
	s := newScratch(t)
	if out, err := s.release("v0.1.0"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.git("commit", "--quiet", "--all", "--message=release")
	s.git("tag", "v0.1.0")
	s.git("tag", "sub/v0.1.0")
	s.commit(map[string]string{"CHANGELOG.md": strings.Replace(s.read("CHANGELOG.md"), "## Unreleased\n", "## Unreleased\n\n### Fixed\n\n- More.\n", 1)})
	return s
}

func (s scratchRepo) git(args ...string) string {
	s.t.Helper()
	out, err := git(s.dir, append([]string{"-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false"}, args...)...)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// commit writes files and commits them.
func (s scratchRepo) commit(files map[string]string) {
	s.t.Helper()
	for name, text := range files {
		name = filepath.Join(s.dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			s.t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			s.t.Fatal(err)
		}
	}
	s.git("add", "--all")
	s.git("commit", "--quiet", "--message=change")
}

func (s scratchRepo) read(name string) string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

func (s scratchRepo) replace(name, old, new string) {
	s.t.Helper()
	text := s.read(name)
	if !strings.Contains(text, old) {
		s.t.Fatalf("%s has no %q:\n%s", name, old, text)
	}
	s.commit(map[string]string{name: strings.Replace(text, old, new, 1)})
}

func (s scratchRepo) release(version string) (string, error) {
	var out strings.Builder
	err := run(&out, s.dir, version, day)
	return out.String(), err
}

// The first release: there is no tag to compare with.
func TestFirstRelease(t *testing.T) {
	t.Parallel()
	s := newScratch(t)
	out, err := s.release("v0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	if want := "git tag v0.1.0\n  git tag sub/v0.1.0\n  git push origin main v0.1.0 sub/v0.1.0\n"; !strings.Contains(out, want) {
		t.Errorf("printed\n%s\nwant\n%s", out, want)
	}
	if got, want := s.read("CHANGELOG.md"), "# Changelog\n\n## Unreleased\n\n## v0.1.0 - 2026-11-23\n\n### Added\n\n- All.\n"; got != want {
		t.Errorf("changelog:\n%s\nwant\n%s", got, want)
	}
	for _, name := range []string{"sub/go.mod", "bench/go.mod"} {
		if text := s.read(name); !strings.Contains(text, "example.com/scratch v0.1.0") || strings.Contains(text, "v0.0.0") {
			t.Errorf("%s:\n%s", name, text)
		}
	}
	if tags := s.git("tag"); tags != "" {
		t.Errorf("made the tags %s", tags)
	}
	// The repository itself works as before.
	if _, err := output(goCommand(filepath.Join(s.dir, "bench"), "vet", "./...")); err != nil {
		t.Error(err)
	}
	// With everything committed the same command prints the tags once more.
	s.git("commit", "--quiet", "--all", "--message=release")
	if _, err := s.release("v0.1.0"); err != nil {
		t.Error(err)
	}
	if changed := s.git("status", "--porcelain"); changed != "" {
		t.Errorf("the second run changed %s", changed)
	}
}

// After a failed check no file differs.
func TestReleaseRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		untagged bool
		change   func(s scratchRepo)
		version  string // v0.2.0 by default
		want     string
	}{
		"no version":           {untagged: true, version: "0.1.0", want: "is no semantic version"},
		"short version":        {untagged: true, version: "v0.1", want: "is no semantic version"},
		"major version":        {untagged: true, version: "v2.0.0", want: "needs another module path"},
		"version not greater":  {version: "v0.1.0", want: "is not greater than the last tag, v0.1.0"},
		"changes in the tree":  {untagged: true, change: func(s scratchRepo) { os.Remove(filepath.Join(s.dir, "scratch.go")) }, want: "not committed"},
		"another branch":       {untagged: true, change: func(s scratchRepo) { s.git("switch", "--quiet", "--create=work") }, want: `this is "work"`},
		"no line in changelog": {untagged: true, change: func(s scratchRepo) { s.replace("CHANGELOG.md", "- All.\n", "") }, want: "says nothing about v0.2.0"},
		"two sections": {
			untagged: true,
			change:   func(s scratchRepo) { s.replace("CHANGELOG.md", "- All.", "- All.\n\n## v0.2.0\n\n- More.") },
			want:     "lines under Unreleased too",
		},
		"go.mod not tidy": {
			untagged: true,
			change:   func(s scratchRepo) { s.replace("bench/go.mod", " // indirect", "") },
			want:     "mod tidy -diff",
		},
		"module does not build": {
			untagged: true,
			change:   func(s scratchRepo) { s.replace("sub/sub.go", "a.F()", "a.H()") },
			want:     "undefined: a.H",
		},
		"module of another name": {
			untagged: true,
			change:   func(s scratchRepo) { s.replace("sub/go.mod", "scratch/sub", "scratch/other") },
			want:     "its tag would not be found",
		},
		"golden record not read": {
			untagged: true,
			change:   func(s scratchRepo) { s.replace(goldenScratch, "1", "2") },
			want:     "unreadable record",
		},
		"golden record changed": {
			change: func(s scratchRepo) {
				s.commit(map[string]string{goldenScratch: "2", "golden_test.go": "package scratch\n"})
			},
			want: "golden files that v0.1.0 has were changed",
		},
		"change of the API without a line": {
			change: func(s scratchRepo) { s.replace("scratch.go", "Wait, Retry", "Retry") },
			want:   "Options.Wait: removed",
		},
		"change of a sub-module's API without its name": {
			change: func(s scratchRepo) {
				s.replace("sub/sub.go", "func G()", "func H()")
				s.replace("bench/main.go", "sub.G()", "sub.H()")
				s.replace("CHANGELOG.md", "### Fixed\n\n- More", "### Changed\n\n- `G` is `H`")
			},
			want: "scratch/sub: G: removed",
		},
		"change of the API in a patch version": {
			change: func(s scratchRepo) {
				s.replace("scratch.go", "Wait, Retry", "Retry")
				s.replace("CHANGELOG.md", "### Fixed\n\n- More", "### Removed\n\n- `Options.Wait`")
			},
			version: "v0.1.1",
			want:    "raise the minor version",
		},
		"change of the API after v1": {
			change: func(s scratchRepo) {
				s.git("tag", "v1.0.0")
				s.replace("scratch.go", "Wait, Retry", "Retry")
				s.replace("CHANGELOG.md", "### Fixed\n\n- More", "### Removed\n\n- `Options.Wait`")
			},
			version: "v1.1.0",
			want:    "another module path",
		},
		"the last sub-module does not build": {
			change: func(s scratchRepo) {
				s.replace("internal/a/a.go", "F", "H")
				s.replace("sub/sub.go", "a.F", "a.H")
			},
			want: "sub of v0.1.0 does not build with the new main module",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newRepo := releasedScratch
			if test.untagged {
				newRepo = newScratch
			}
			s := newRepo(t)
			if test.change != nil {
				test.change(s)
			}
			before := s.git("status", "--porcelain")
			version := test.version
			if version == "" {
				version = "v0.2.0"
			}
			out, err := s.release(version)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q\n%s", err, test.want, out)
			}
			if after := s.git("status", "--porcelain"); after != before {
				t.Errorf("changed files:\n%s", after)
			}
		})
	}
}

// All checks pass, the announced changes of the API included.
func TestSecondRelease(t *testing.T) {
	t.Parallel()
	s := releasedScratch(t)
	s.replace("scratch.go", "Wait, Retry", "Retry")
	s.replace("sub/sub.go", "func G()", "func H()")
	s.replace("bench/main.go", "sub.G()", "sub.H()")
	s.replace("CHANGELOG.md", "### Fixed\n\n- More.", "### Changed\n\n- `sub`: `G` is `H`.\n\n### Removed\n\n- `Options.Wait`.")
	out, err := s.release("v0.2.0")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"incompatible: example.com/scratch: Options.Wait: removed", "incompatible: example.com/scratch/sub: G: removed", "git tag sub/v0.2.0"} {
		if !strings.Contains(out, want) {
			t.Errorf("did not print %q:\n%s", want, out)
		}
	}
	if text := s.read("sub/go.mod"); !strings.Contains(text, "scratch v0.2.0") {
		t.Errorf("sub/go.mod:\n%s", text)
	}
}

// How apidiff names what has changed, and which line of the changelog announces it.
func TestAnnouncedChange(t *testing.T) {
	t.Parallel()
	root, sub := module{dir: ".", path: "example.com/m"}, module{dir: "dedup/sqlstore", path: "example.com/m/dedup/sqlstore"}
	for _, test := range []struct {
		module module
		change string
		line   string
		want   bool
	}{
		{root, "Message.EventID: removed", "- `Message.EventID` is `Message.Key`.", true},
		{root, "Message.EventID: removed", "- Message.EventID is gone.", false}, // not code
		{root, "Message.Event: removed", "- `Message.EventID` is `Message.Key`.", false},
		{root, "./fifo.(*Publisher).Close: removed", "- `fifo`: `Publisher.Close` is gone.", true},
		{root, "./fifo.(*Publisher).Close: removed", "- `Publisher.Close` is gone.", false},
		{root, "./dedup/dynamostore.Options: changed", "- `dynamostore.Options` is a map.", true},
		{root, "package example.com/m/fault: removed", "- The package `localstack/fault`.", true},
		{sub, "Options.Wait: removed", "- `sqlstore.Options.Wait`.", true},
		{sub, "Options.Wait: removed", "- `Options.Wait`.", false},
	} {
		got := newChange(test.module, test.change).announced("\n\n### Changed\n\n" + test.line + "\n")
		if got != test.want {
			t.Errorf("%q announces %q: %v, want %v", test.line, test.change, got, test.want)
		}
		if newChange(test.module, test.change).announced("\n\n### Added\n\n" + test.line + "\n") {
			t.Errorf("%q announces %q under Added", test.line, test.change)
		}
	}
}

func TestPublished(t *testing.T) {
	t.Parallel()
	for dir, want := range map[string]bool{
		".": true, "s3payload": true, "dedup/sqlstore": true, "cmd/sqsonce": true, "bench": false, "examples": false, "internal/release": false,
		"localstack/internal/realaws": false, "cmd/sqsonce/internal/consoletest": false,
	} {
		if got := (module{dir: dir}).published(); got != want {
			t.Errorf("%s: published %t, want %t", dir, got, want)
		}
	}
}
