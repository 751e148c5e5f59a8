package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/outboxmodel"
)

// testPackages are the folders of the packages that the pages of the protocols name tests of.
var testPackages = map[string]string{
	"sqsonce":      ".",
	"cli":          "cmd/sqsonce/cli",
	"command":      "cmd/sqsonce",
	"control":      "control",
	"controlled":   "internal/proof/controlled",
	"dedup":        "dedup",
	"deadletter":   "internal/deadletter",
	"dynamooutbox": "fifo/outbox/dynamooutbox",
	"dynamostore":  "dedup/dynamostore",
	"fifo":         "fifo",
	"host":         "internal/host",
	"fleet":        "internal/proof/fleet",
	"hosttest":     "internal/hosttest",
	"killtest":     "dedup/sqlstore/sqloutbox/killtest",
	"lambda":       "lambda",
	"limit":        "limit",
	"ops":          "internal/ops",
	"outbox":       "fifo/outbox",
	"settle":       "internal/settle",
	"redisstore":   "dedup/redisstore",
	"s3payload":    "s3payload",
	"sdkhttp":      "internal/sdkhttp",
	"sqloutbox":    "dedup/sqlstore/sqloutbox",
	"sqlstore":     "dedup/sqlstore",
	"sqsworker":    "sqsworker",
	"thaw":         "internal/thaw",
}

var (
	clause    = regexp.MustCompile(`^- \*\*((?:\d+\.\d+|[A-Z]\d)[a-z]?)\*\* `)
	testName  = regexp.MustCompile("`([a-z0-9]+)\\.((?:Test|Fuzz)[A-Za-z0-9]+)`")
	sentences = regexp.MustCompile(`(?m)^- \*\*(\w\S*)\*\* .*\n((?:  [^-\s].*\n)*)`)
	storeCase = regexp.MustCompile(`"([a-z ]+/[^"]+)"`)
	modelRun  = regexp.MustCompile("`outboxmodel: ([^`]+)`")
)

// protocols are the pages, and how many clauses each has at least: fewer are a sign that none is recognised.
var protocols = map[string]int{"docs/protocol.md": 50, "docs/protocol-outbox.md": 40}

// The trace that the page tells is the model's.
func TestProtocolTellsTheModelsTrace(t *testing.T) {
	t.Parallel()
	if trace := readText(t, "internal/outboxmodel/testdata/N5.txt"); !strings.Contains(readText(t, "docs/protocol-outbox.md"), "```\n"+trace+"```\n") {
		t.Errorf("docs/protocol-outbox.md does not have this trace:\n%s", trace)
	}
}

// Each clause of the protocols names what fails without it, and that exists.
func TestProtocolNamesItsTests(t *testing.T) {
	t.Parallel()
	known := readCitations(t)
	for page, leastClauses := range protocols {
		clauses := 0
		for _, m := range sentences.FindAllStringSubmatch(readText(t, page), -1) {
			if n := 1 + strings.Count(m[2], "\n"); n > 3 {
				t.Errorf("%s %s: %d sentences, want at most 3, each on its line", page, m[1], n)
			}
		}
		for line := range strings.Lines(strings.ReplaceAll(readText(t, page), "\n  ", " ")) { // a clause with its tests below
			m := clause.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			clauses++
			_, tests, _ := strings.Cut(line, "Tests: ")
			named, problems := known.in(tests)
			for _, problem := range problems {
				t.Errorf("%s %s: %s", page, m[1], problem)
			}
			if named == 0 {
				t.Errorf("%s %s: nothing is named that fails without it", page, m[1])
			}
		}
		if clauses < leastClauses {
			t.Errorf("%s: %d clauses, want at least %d: were they renamed?", page, clauses, leastClauses)
		}
	}
}

// What the text between the clauses names as a reason exists too.
func TestTextBetweenTheClausesNamesWhatExists(t *testing.T) {
	t.Parallel()
	known := readCitations(t)
	named, problems := known.in(readText(t, "docs/protocol-outbox.md"))
	for _, problem := range problems {
		t.Error(problem)
	}
	if named < 50 {
		t.Errorf("%d tests and runs, want at least 50: were they recognised?", named)
	}
}

// A name that is wrong is seen, and a run that holds is no reason.
func TestCitationsSeeWrongNames(t *testing.T) {
	t.Parallel()
	known := readCitations(t)
	for text, want := range map[string]string{
		"`outbox.TestNothing`":       "there is no outbox.TestNothing",
		"`nowhere.TestRun`":          "package nowhere is not in testPackages",
		`outboxtest "read/sideways"`: `no suite has a case "read/sideways"`,
		"`outboxmodel: N99`":         "the model has no run N99",
	} {
		if _, problems := known.in(text); len(problems) != 1 || problems[0] != want {
			t.Errorf("%s: %q, want %q", text, problems, want)
		}
	}
	if named, _ := known.in("`outboxmodel: D1`, `outboxmodel: N6a`"); named != 0 {
		t.Errorf("%d of two runs that hold count as failing without a clause", named)
	}
}

// citations are what pages may name as failing without a clause: functions of the packages, cases of storetest, outboxtest and limittest,
// runs of the outbox's model.
type citations struct {
	tests  map[string]string // sources, by package
	suites string
	runs   map[string]outboxmodel.Fault
}

func readCitations(t *testing.T) citations {
	t.Helper()
	c := citations{tests: map[string]string{}, runs: map[string]outboxmodel.Fault{}}
	for pkg, dir := range testPackages {
		c.tests[pkg] = readAll(t, filepath.Join(dir, "*_test.go"))
	}
	c.suites = readAll(t, "dedup/storetest/*.go") + readAll(t, "internal/outboxtest/*.go") + readAll(t, "internal/limittest/*.go")
	for _, r := range outboxmodel.Runs {
		c.runs[r.Name] = r.Want
	}
	return c
}

// in returns how many a text names that show something to fail, and what is wrong with the names.
func (c *citations) in(text string) (named int, problems []string) {
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	for _, m := range testName.FindAllStringSubmatch(text, -1) {
		named++
		source, known := c.tests[m[1]]
		if !known {
			wrong("package %s is not in testPackages", m[1])
		} else if !strings.Contains(source, "\nfunc "+m[2]+"(") {
			wrong("there is no %s.%s", m[1], m[2])
		}
	}
	for _, m := range storeCase.FindAllStringSubmatch(text, -1) {
		named++
		if !strings.Contains(c.suites, `name: "`+m[1]+`"`) {
			wrong("no suite has a case %q", m[1])
		}
	}
	for _, m := range modelRun.FindAllStringSubmatch(text, -1) {
		fault, known := c.runs[m[1]]
		if !known {
			wrong("the model has no run %s", m[1])
		}
		if fault != outboxmodel.None { // a run that holds shows nothing of a clause
			named++
		}
	}
	return named, problems
}

func readAll(t *testing.T, pattern string) string {
	t.Helper()
	files := must.Get(filepath.Glob(filepath.Join(repository, pattern)))(t)
	var all strings.Builder
	for _, name := range files {
		text := must.Get(os.ReadFile(name))(t)
		all.Write(text)
	}
	return all.String()
}
