package choose

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/internal/must"
)

// page is one of docs, whose tables the tests read.
type page struct {
	*testing.T
	name, text string
}

func readPage(t *testing.T, name string) page {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join("../../docs", name)))(t)
	return page{t, name, string(text)}
}

func choosePage(t *testing.T) page { t.Helper(); return readPage(t, "choose.md") }

// perEvent is the column of docs/choose.md that has counts.
const perEvent = 4

// row returns the cells of the row that begins with label.
func (p page) row(label string) []string {
	p.Helper()
	for line := range strings.Lines(p.text) {
		if cells := strings.Split(strings.Trim(line, "| \n"), " | "); cells[0] == label {
			return cells
		}
	}
	p.Fatalf("%s has no row %q", p.name, label)
	return nil
}

// rows are the lines of a section's table, without its two first ones.
func (p page) rows(section string) (rows []string) {
	p.Helper()
	_, text, _ := strings.Cut(p.text, section+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "|") {
			rows = append(rows, line)
		}
	}
	if len(rows) < 3 {
		p.Fatalf("%s has no table under %q", p.name, section)
	}
	return rows[2:]
}

// check compares what was counted with a cell, of which pattern takes the number; "" is all of it. "at most 0.11" is right for
// counts that change from run to run: they may be less by 70%, since a busy machine fills batches, or the page is out of date.
func (p page) check(label string, column int, pattern string, got float64) {
	p.Helper()
	cell := p.row(label)[column]
	if pattern != "" {
		m := regexp.MustCompile(pattern).FindStringSubmatch(cell)
		if m == nil {
			p.Errorf("%s, %q: nothing in %q matches %s", p.name, label, cell, pattern)
			return
		}
		cell = m[1]
	}
	want, atMost := p.parse(cell)
	if off := got - want; !atMost && math.Abs(off) > 0.005 || atMost && (off > 0.005 || got < 0.3*want) {
		p.Errorf("%s, %q, column %d: the page says %s, counted %.3f", p.name, label, column, cell, got)
	}
}

func (p page) parse(cell string) (n float64, atMost bool) {
	p.Helper()
	cell, atMost = strings.CutPrefix(cell, "at most ")
	n, err := strconv.ParseFloat(strings.ReplaceAll(strings.TrimSuffix(cell, ","), ",", ""), 64)
	if err != nil {
		p.Fatalf("%s: %q is no number", p.name, cell)
	}
	return n, atMost
}

// number is a cell as it is.
func (p page) number(label string, column int) float64 {
	p.Helper()
	n, _ := p.parse(p.row(label)[column])
	return n
}

var codeLink = regexp.MustCompile("\\[`(Example\\w*|Test\\w+)`\\]\\(([^)]+)\\)")

// Each strategy has an Example, and what the page links is there.
func TestExamplesExist(t *testing.T) {
	p := choosePage(t)
	rows := p.rows("## The table")
	for _, row := range rows {
		if !strings.Contains(row, "[`Example") {
			t.Errorf("no Example: %.60s", row)
		}
	}
	if len(rows) < 10 {
		t.Errorf("%d rows, want at least 10", len(rows))
	}
	for _, m := range codeLink.FindAllStringSubmatch(p.text, -1) {
		source, err := os.ReadFile(filepath.Join("../../docs", m[2]))
		if err != nil || !strings.Contains(string(source), "func "+m[1]+"(") {
			t.Errorf("%s is not in %s (%v)", m[1], m[2], err)
		}
	}
}
