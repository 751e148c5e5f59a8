package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/shown"
)

// column is a column of a table that fits the terminal.
type column struct {
	head string
	drop int // the greatest goes first where there is no room; 0: never
}

var workerColumns = []column{
	{"WORKER", 0}, {"NAME", 10}, {"QUEUE", 0}, {"STATE", 5}, {"DONE/S", 0}, {"FAILED/S", 3}, {"RECEIVED/S", 9}, {"RUNNING", 1},
	{"IN FLIGHT", 7}, {"HELD", 8}, {"OLDEST", 4}, {"STUCK", 2}, {"LOST", 6}, {"WHY", 0},
}

var queueColumns = []column{
	{"QUEUE", 0}, {"VISIBLE", 0}, {"IN FLIGHT", 3}, {"DELAYED", 7}, {"OLDEST", 2}, {"DONE/S", 6}, {"CHANGE/S", 4}, {"EMPTY IN", 1},
	{"IN DLQ", 0}, {"DLQ", 8}, {"WHY", 0},
}

// lines are those of a pipe.
func (s *snapshot) lines() [][]string {
	var lines [][]string
	for _, w := range s.Workers {
		lines = append(lines, []string{
			"worker", w.Name, w.URL, w.Queue, w.State, rate(w.Done), rate(w.Failed), rate(w.Received), whole(w.Running), whole(w.Concurrency),
			whole(w.InFlight), whole(w.Held), whole(w.OldestRunning), whole(w.Stuck), whole(w.LeasesLost), w.why(),
		})
	}
	for _, q := range s.Queues {
		lines = append(lines, []string{
			"queue", q.Queue, whole(q.Visible), whole(q.InFlight), whole(q.Delayed), whole(q.Oldest), rate(q.Done), rate(q.Change), whole(q.EmptyIn),
			orDash(q.DLQ), whole(q.InDLQ), q.why(),
		})
	}
	return lines
}

// tables are the lines of a terminal.
func (s *snapshot) tables(width int) []string {
	var workers, queues [][]string
	for _, w := range s.Workers {
		running := whole(w.Running)
		if w.Concurrency != nil {
			running += " of " + whole(w.Concurrency)
		}
		address := strings.TrimPrefix(w.URL, "http://") // names of replicas are the same
		workers = append(workers, []string{
			address, orDash(w.Name), orDash(w.Queue), orDash(w.State), rate(w.Done), rate(w.Failed), rate(w.Received), running,
			whole(w.InFlight), whole(w.Held), long(w.OldestRunning), whole(w.Stuck), whole(w.LeasesLost), w.why(),
		})
	}
	for _, q := range s.Queues {
		empty := long(q.EmptyIn)
		if q.EmptyIn != nil {
			empty = "about " + empty
		}
		queues = append(queues, []string{
			orDash(q.Queue), whole(q.Visible), whole(q.InFlight), whole(q.Delayed), long(q.Oldest), rate(q.Done), rate(q.Change), empty,
			whole(q.InDLQ), orDash(q.DLQ), q.why(),
		})
	}
	lines := fitted(width, workerColumns, workers)
	if len(workers) > 0 && len(queues) > 0 {
		lines = append(lines, "")
	}
	return append(lines, fitted(width, queueColumns, queues)...)
}

const (
	widestCell  = 32 // but for the last column
	leastReason = 30 // columns are left out for so much of the last one
)

// fitted makes the lines of a table, which are no wider than the terminal: columns are left out first, then lines are cut. The last
// column is left out where it has nothing.
func fitted(width int, columns []column, rows [][]string) []string {
	if len(rows) == 0 {
		return nil
	}
	last := len(columns) - 1
	cells := [][]string{nil}
	for _, c := range columns {
		cells[0] = append(cells[0], c.head)
	}
	widths := make([]int, len(columns))
	for _, row := range rows {
		var line []string
		for i, cell := range row {
			if cell = escaped(cell); i < last {
				cell = runewidth.Truncate(cell, widestCell, "…")
			}
			line = append(line, cell)
		}
		cells = append(cells, line)
	}
	for i := range columns {
		for j, line := range cells {
			if j > 0 || i < last {
				widths[i] = max(widths[i], runewidth.StringWidth(line[i]))
			}
		}
	}
	out := make([]bool, len(columns))
	out[last] = widths[last] == 0
	widths[last] = min(widths[last], leastReason)
	for {
		total, next := -2, -1
		for i, c := range columns {
			if out[i] {
				continue
			}
			if total += widths[i] + 2; c.drop > 0 && (next < 0 || c.drop > columns[next].drop) {
				next = i
			}
		}
		if total <= width || next < 0 {
			break
		}
		out[next] = true
	}
	var lines []string
	for _, line := range cells {
		var b strings.Builder
		for i, cell := range line {
			if !out[i] {
				b.WriteString(runewidth.FillRight(cell, widths[i]) + "  ")
			}
		}
		lines = append(lines, runewidth.Truncate(strings.TrimRight(b.String(), " "), width, "…"))
	}
	return lines
}

func (a *app) printFitted(lines []string) error {
	return writeLines(a.out, [][]string{lines}, func(l []string) string { return strings.Join(l, "\n") })
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// unbelievable is a figure that no worker and no queue has. Workers say what they like.
const unbelievable = 1e12

func number[N int | float64](v *N, format string) string {
	switch {
	case v == nil:
		return "-"
	case float64(*v) >= unbelievable || float64(*v) <= -unbelievable:
		return "?"
	}
	return fmt.Sprintf(format, float64(*v))
}

func whole[N int | float64](v *N) string { return number(v, "%.0f") }
func rate(v *float64) string             { return number(v, "%.1f") }

// long is a number of seconds for a person.
func long(v *float64) string {
	if v == nil || *v < 0 || *v >= unbelievable/1000 {
		return number(v, "%.0f s")
	}
	if *v < 60 {
		return strconv.FormatFloat(*v, 'f', 0, 64) + "s"
	}
	return shown.Brief(time.Duration(*v*float64(time.Second)), true)
}

// screen is the terminal while top draws on it.
type screen struct {
	a    *app
	open bool
}

const (
	// Another screen, without cursor and without line breaks of the terminal's own; and back.
	openScreen  = "\x1b[?1049h\x1b[?25l\x1b[?7l"
	closeScreen = "\x1b[?7h\x1b[?25h\x1b[?1049l"
)

// draw draws over what was drawn before. The size is read each time.
func (s *screen) draw(shot *snapshot) error {
	width, height := s.a.size()
	lines := shot.frame(width)
	if over := len(lines) - height; height > 0 && over > 0 {
		lines = append(lines[:height-1], runewidth.Truncate(fmt.Sprintf("… %d more lines", over+1), width, "…"))
	}
	text := "\x1b[H" + strings.Join(lines, "\x1b[K\r\n") + "\x1b[K\x1b[J"
	if !s.open {
		s.open, text = true, openScreen+text
	}
	return s.write(text)
}

func (s *screen) close() error {
	if !s.open {
		return nil
	}
	return s.write(closeScreen)
}

func (s *screen) write(text string) error {
	if _, err := s.a.out.Write([]byte(text)); err != nil {
		return err
	}
	return s.a.flush()
}

// frame is a snapshot with a head.
func (s *snapshot) frame(width int) []string {
	away := 0
	for _, w := range s.Workers {
		if w.err != nil {
			away++
		}
	}
	head := fmt.Sprintf("sqsonce top  %s UTC  every %s", s.At.Format(time.TimeOnly), topEvery)
	if away > 0 {
		head += fmt.Sprintf("  no answer from %d processes", away)
	}
	lines := append([]string{head, ""}, s.tables(width)...)
	for i, n := range s.Notes {
		if i == 0 {
			lines = append(lines, "")
		}
		lines = append(lines, escaped(n))
	}
	for i, line := range lines {
		lines[i] = runewidth.Truncate(line, width, "…")
	}
	return lines
}
