package sqsonce_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// testPackages are the folders of the packages that docs/protocol.md names tests of.
var testPackages = map[string]string{
	"sqsonce":     ".",
	"dedup":       "dedup",
	"deadletter":  "internal/deadletter",
	"dynamostore": "dedup/dynamostore",
	"fifo":        "fifo",
	"host":        "internal/host",
	"hosttest":    "internal/hosttest",
	"lambda":      "lambda",
	"ops":         "ops",
	"settle":      "internal/settle",
	"redisstore":  "dedup/redisstore",
	"sqlstore":    "dedup/sqlstore",
	"sqsworker":   "sqsworker",
	"thaw":        "internal/thaw",
}

var (
	clause    = regexp.MustCompile(`^- \*\*(\d+\.\d+)\*\* `)
	testName  = regexp.MustCompile("`([a-z]+)\\.((?:Test|Fuzz)[A-Za-z0-9]+)`")
	storeCase = regexp.MustCompile(`"([a-z ]+/[^"]+)"`)
)

// leastClauses is how many there are at least: fewer are a sign that none is recognised.
const leastClauses = 50

// Each clause of docs/protocol.md names tests, and they exist: functions of the packages, and cases of storetest.
func TestProtocolNamesItsTests(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string]string{}
	for pkg, dir := range testPackages {
		sources[pkg] = readAll(t, filepath.Join(dir, "*_test.go"))
	}
	storetest := readAll(t, "dedup/storetest/*.go")
	clauses := 0
	for line := range strings.Lines(string(text)) {
		m := clause.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		clauses++
		_, tests, ok := strings.Cut(line, "Tests: ")
		named := testName.FindAllStringSubmatch(tests, -1)
		cases := storeCase.FindAllStringSubmatch(tests, -1)
		if !ok || len(named)+len(cases) == 0 {
			t.Errorf("clause %s names no test", m[1])
		}
		for _, n := range named {
			source, known := sources[n[1]]
			if !known {
				t.Errorf("clause %s: package %s is not in testPackages", m[1], n[1])
			} else if !strings.Contains(source, "\nfunc "+n[2]+"(") {
				t.Errorf("clause %s: there is no %s.%s", m[1], n[1], n[2])
			}
		}
		for _, c := range cases {
			if !strings.Contains(storetest, `name: "`+c[1]+`"`) {
				t.Errorf("clause %s: storetest has no case %q", m[1], c[1])
			}
		}
	}
	if clauses < leastClauses {
		t.Errorf("%d clauses, want at least %d: were they renamed?", clauses, leastClauses)
	}
}

func readAll(t *testing.T, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}
