package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const source = `package p

func f(a, b int) bool {
	if a < b && b < 9 {
		return true
	}
	if a < b && b < 9 {
		return false
	}
	return a < 3
}
`

// report has the mutants out of order, as several workers leave them.
const report = `{"files": [{"file_name": "f.go", "mutations": [
	{"type": "CONDITIONALS_BOUNDARY", "status": "LIVED", "line": 10, "column": 11},
	{"type": "CONDITIONALS_BOUNDARY", "status": "LIVED", "line": 7, "column": 7},
	{"type": "CONDITIONALS_NEGATION", "status": "TIMED OUT", "line": 7, "column": 7},
	{"type": "CONDITIONALS_BOUNDARY", "status": "KILLED", "line": 4, "column": 16},
	{"type": "CONDITIONALS_BOUNDARY", "status": "NOT COVERED", "line": 4, "column": 7}
]}]}`

func TestCompare(t *testing.T) {
	t.Parallel()
	const twice = "if a < b && b < 9 {"
	for name, c := range map[string]struct {
		list, file string
		want       []string
	}{
		"listed": {
			list: "p/f.go CONDITIONALS_BOUNDARY 1 " + twice + "\n\treason\n" +
				"p/f.go CONDITIONALS_BOUNDARY 3 " + twice + "\n\treason\n\n# comment\n" +
				"p/f.go CONDITIONALS_BOUNDARY 1 return a < 3\n\treason\n\tin two lines\n",
		},
		"not listed": {
			list: "p/f.go CONDITIONALS_BOUNDARY 1 return a < 3\n\treason\n",
			want: []string{
				"survived, line 4: p/f.go CONDITIONALS_BOUNDARY 1 " + twice,
				"survived, line 7: p/f.go CONDITIONALS_BOUNDARY 3 " + twice,
			},
		},
		"stale": {
			list: "p/f.go CONDITIONALS_BOUNDARY 1 " + twice + "\n\treason\n" +
				"p/f.go CONDITIONALS_BOUNDARY 2 " + twice + "\n\treason\n" + // killed
				"p/f.go CONDITIONALS_BOUNDARY 3 " + twice + "\n\treason\n" +
				"p/f.go CONDITIONALS_NEGATION 1 " + twice + "\n\tit timed out: left in peace\n" +
				"p/f.go CONDITIONALS_BOUNDARY 1 return a < 4\n\tgone\n" +
				"p/f.go CONDITIONALS_BOUNDARY 1 return a < 3\n\treason\n" +
				"p/other.go CONDITIONALS_BOUNDARY 1 not in question\n\treason\n",
			want: []string{
				"stale: p/f.go CONDITIONALS_BOUNDARY 1 return a < 4: no such line",
				"stale: p/f.go CONDITIONALS_BOUNDARY 2 " + twice + ": killed",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listed, err := parseList(c.list)
			if err != nil {
				t.Fatal(err)
			}
			name, tree := writeReport(t)
			mutants, err := readReport(name, tree, "p")
			if err != nil {
				t.Fatal(err)
			}
			r := compare(mutants, listed, func(file string) bool { return file == "p/f.go" })
			_, got, _ := strings.Cut(strings.TrimSpace(r.String()), "\n")
			lines := strings.FieldsFunc(got, func(c rune) bool { return c == '\n' })
			slices.Sort(lines)
			if d := cmp.Diff(c.want, lines, cmp.Transformer("empty", func(s []string) []string { return append([]string{}, s...) })); d != "" {
				t.Error(d)
			}
			if r.ok() != (len(c.want) == 0) {
				t.Errorf("ok() = %t", r.ok())
			}
			if want := map[string]int{"KILLED": 1, "TIMED OUT": 1}; !maps.Equal(r.counts, want) {
				t.Errorf("counts = %v, want %v", r.counts, want)
			}
		})
	}
}

func writeReport(t *testing.T) (name, tree string) {
	t.Helper()
	tree = t.TempDir()
	if err := os.Mkdir(filepath.Join(tree, "p"), 0o700); err != nil {
		t.Fatal(err)
	}
	name = filepath.Join(tree, "report.json")
	for file, text := range map[string]string{name: report, filepath.Join(tree, "p", "f.go"): source} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return name, tree
}

func TestBadLists(t *testing.T) {
	t.Parallel()
	const entry = "f.go KIND 1 a < b\n"
	for list, want := range map[string]string{
		entry:                             "has no reason",
		entry + entry + "\treason":        "survivors.txt:2: the entry above has no reason",
		"f.go KIND 1":                     "survivors.txt:1: not an entry",
		"f.go KIND one a < b\n\treason":   "survivors.txt:1: not a number: one",
		entry + "\tr\n" + entry + "\tr\n": "survivors.txt:3: listed twice",
	} {
		if _, err := parseList(list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("parseList(%q) = %v, want %q", list, err, want)
		}
	}
}

// The list in the repository can be read, and what it names is there: a renamed or changed line is found without gremlins.
func TestListNamesLines(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("survivors.txt")
	if err != nil {
		t.Fatal(err)
	}
	listed, err := parseList(string(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range listed {
		source, err := os.ReadFile(filepath.Join("..", "..", p.file))
		if err != nil {
			t.Error(err)
		} else if !slices.ContainsFunc(strings.Split(string(source), "\n"), func(l string) bool { return strings.TrimSpace(l) == p.text }) {
			t.Errorf("%s has no line %q: mend survivors.txt", p.file, p.text)
		}
	}
}

func TestEveryLineIsCovered(t *testing.T) {
	t.Parallel()
	profile := filepath.Join(t.TempDir(), "profile")
	if err := os.WriteFile(profile, []byte("mode: set\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code := runTest("internal/mutate", filepath.Join(t.TempDir(), "quick"), time.Nanosecond, []string{"true", "-test.coverprofile=" + profile}); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	text, err := os.ReadFile(profile)
	if err != nil {
		t.Fatal(err)
	}
	want := "mode: set\n"
	for _, name := range []string{"list.go", "main.go", "profile.go"} {
		want += module + "internal/mutate/" + name + ":1.1,99999.1 1 1\n"
	}
	if d := cmp.Diff(want, string(text)); d != "" {
		t.Error(d)
	}
	if runTest("", "", 0, []string{"false"}) == 0 {
		t.Error("a failed test is no success")
	}
}

func TestOnlyOnePackageIsMatched(t *testing.T) {
	t.Parallel()
	tree := t.TempDir()
	for _, dir := range []string{"dedup/dynamostore/killtest", "dedup/memstore", "fifo"} {
		if err := os.MkdirAll(filepath.Join(tree, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	mod := filepath.Join(tree, "go.mod")
	for pkg, want := range map[string]string{
		".":                 "ignore ./dedup\nignore ./fifo\n",
		"dedup":             "ignore ./dedup/dynamostore\nignore ./dedup/memstore\nignore ./fifo\n",
		"dedup/dynamostore": "ignore ./dedup/dynamostore/killtest\nignore ./dedup/memstore\nignore ./fifo\n",
	} {
		if err := os.WriteFile(mod, []byte("module m\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := ignoreOthers(tree, pkg); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(mod); err != nil || string(text) != "module m\n\n"+want {
			t.Errorf("%s: %q, %v", pkg, text, err)
		}
	}
}
