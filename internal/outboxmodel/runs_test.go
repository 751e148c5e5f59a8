package outboxmodel

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/internal/must"
)

var update = flag.Bool("update", false, "write the traces and the sum in testdata, and with SOAK=1 the table of doc.go")

// quick is how many states a run has that is searched in each test.
const quick = 50_000

// searched has the sum of the files with which the runs that are not quick were searched last: the model and the page. They are
// searched again when the files differ, and by make soak.
const searched = "testdata/searched.txt"

func sum(t *testing.T) string {
	t.Helper()
	files := must.Get(filepath.Glob("*.go"))(t)
	h := sha256.New()
	for _, name := range append(files, "../../docs/protocol-outbox.md") {
		text := must.Get(os.ReadFile(name))(t)
		fmt.Fprintf(h, "%s %d\n%s", name, len(text), text)
	}
	return fmt.Sprintf("%x\n", h.Sum(nil))
}

// largest is above the states of any run.
const largest = 60_000_000

var row = regexp.MustCompile(`(?m)^//\t(\w+) +([\d,]+) +(\w+)$`)

// Each run ends as Want says, after as many states as the package's comment says: a step that is no longer possible, or one
// more, changes the number. A run that fails prints its shortest way there.
func TestRuns(t *testing.T) {
	table := readTable(t)
	last := must.Get(os.ReadFile(searched))(t)
	soak := os.Getenv("SOAK") != ""
	unchanged := string(last) == sum(t) && !soak && !*update
	var found []string
	for _, r := range Runs {
		t.Run(r.Name, func(t *testing.T) {
			want := table[r.Name]
			switch {
			case r.Soak && !soak:
				t.Skip("SOAK=1 searches it: over three million states")
			case unchanged && want.states > quick:
				t.Skip("the model and docs/protocol-outbox.md are those of its last search: see " + searched)
			}
			got := r.Explore(largest, r.Want != None)
			t.Logf("%s: %d states, %d steps deep: %s", r.Text, got.States, got.Depth, got.Fault)
			if got.Fault != None && got.Trace == nil {
				got = r.Explore(largest, true)
			}
			t.Log(traceText(got))
			if got.Fault != r.Want {
				t.Errorf("%s, want %s", got.Fault, r.Want)
			}
			if got.Fault == None && !got.Complete {
				t.Errorf("not all states were searched: stopped after %d", got.States)
			}
			found = append(found, fmt.Sprintf("//\t%-4s %10s  %s", r.Name, thousands(got.States), got.Fault))
			if (want.states != got.States || want.result != got.Fault.String()) && !(*update && soak) {
				t.Errorf("doc.go has %d states, %q; found %d, %q: SOAK=1 and -update write it", want.states, want.result, got.States, got.Fault)
			}
			checkTrace(t, r.Name, got)
		})
	}
	if *update && soak {
		writeTable(t, found)
	}
	if *update && !t.Failed() {
		must.Do(t, os.WriteFile(searched, []byte(sum(t)), 0o644))
	} else if len(table) != len(Runs) {
		t.Errorf("doc.go has %d runs, there are %d", len(table), len(Runs))
	}
}

// golden are the runs whose traces are in testdata, for who reads about them without running them.
var golden = map[string]bool{"N5": true, "N7": true, "N14": true, "N17": true}

func checkTrace(t *testing.T, name string, got Result) {
	t.Helper()
	if !golden[name] {
		return
	}
	file := filepath.Join("testdata", name+".txt")
	if *update {
		must.Do(t, os.WriteFile(file, []byte(traceText(got)), 0o644))
	}
	want := must.Get(os.ReadFile(file))(t)
	if string(want) != traceText(got) {
		t.Errorf("%s has another trace: -update writes it\n%s", file, want)
	}
}

func traceText(r Result) string {
	var b strings.Builder
	for i, s := range r.Trace {
		fmt.Fprintf(&b, "%2d  %s\n", i+1, s)
	}
	if r.Fault != None {
		fmt.Fprintf(&b, "    %s\n", r.Fault)
	}
	return b.String()
}

type result struct {
	states int
	result string
}

func readTable(t *testing.T) map[string]result {
	t.Helper()
	text := must.Get(os.ReadFile("doc.go"))(t)
	table := map[string]result{}
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		n := must.Get(strconv.Atoi(strings.ReplaceAll(m[2], ",", "")))(t)
		table[m[1]] = result{n, m[3]}
	}
	return table
}

func writeTable(t *testing.T, rows []string) {
	t.Helper()
	if len(rows) != len(Runs) {
		t.Fatal("the table is written with all runs only")
	}
	text := must.Get(os.ReadFile("doc.go"))(t)
	at := row.FindAllIndex(text, -1)
	out := string(text[:at[0][0]]) + strings.Join(rows, "\n") + string(text[at[len(at)-1][1]:])
	must.Do(t, os.WriteFile("doc.go", []byte(out), 0o644))
}

func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
