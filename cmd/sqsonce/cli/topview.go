package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/fleet"
	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/shown"
)

// The columns of top, and the heads of those that are left out on a narrow terminal, in this order.
var (
	workerColumns = []column[*workerRow]{
		{"", `"worker"`, "", "", func(w *workerRow) any { return "worker" }},
		{"", "name", "", "", func(w *workerRow) any { return w.Name }},
		{"WORKER", "URL", "", "", func(w *workerRow) any { return onScreen{strings.TrimPrefix(w.URL, "http://"), w.URL} }},
		{"NAME", "", "", "", func(w *workerRow) any { return orDash(w.Name) }},
		{"QUEUE", "queue", "", "", func(w *workerRow) any { return onScreen{orDash(w.Queue), w.Queue} }},
		{"STATE", "state", "", "", func(w *workerRow) any { return onScreen{orDash(w.State), w.State} }},
		{"DONE/S", "done a second", "", "", func(w *workerRow) any { return rate(w.Done) }},
		{"FAILED/S", "failed a second", "", "", func(w *workerRow) any { return rate(w.Failed) }},
		{"RECEIVED/S", "received a second", "", "", func(w *workerRow) any { return rate(w.Received) }},
		{"RUNNING", "running", "", "", func(w *workerRow) any { return onScreen{w.ofConcurrency(), whole(w.Running)} }},
		{"", "concurrency", "", "", func(w *workerRow) any { return whole(w.Concurrency) }},
		{"IN FLIGHT", "in flight", "", "", func(w *workerRow) any { return whole(w.InFlight) }},
		{"HELD", "held", "", "", func(w *workerRow) any { return whole(w.Held) }},
		{"OLDEST", "oldest running in seconds", "", "", func(w *workerRow) any { return onScreen{long(w.OldestRunning), whole(w.OldestRunning)} }},
		{"STUCK", "stuck", "", "", func(w *workerRow) any { return whole(w.Stuck) }},
		{"LOST", "leases lost", "", "", func(w *workerRow) any { return whole(w.LeasesLost) }},
		{"WHY", "why", "", "", func(w *workerRow) any { return w.why() }},
	}
	workersLeaveOut = []string{"NAME", "RECEIVED/S", "HELD", "IN FLIGHT", "LOST", "STATE", "OLDEST", "FAILED/S", "STUCK", "RUNNING"}

	queueColumns = []column[*queueRow]{
		{"", `"queue"`, "", "", func(q *queueRow) any { return "queue" }},
		{"QUEUE", "name", "", "", func(q *queueRow) any { return onScreen{orDash(q.Queue), q.Queue} }},
		{"VISIBLE", "visible", "", "", func(q *queueRow) any { return whole(q.Visible) }},
		{"IN FLIGHT", "in flight", "", "", func(q *queueRow) any { return whole(q.InFlight) }},
		{"DELAYED", "delayed", "", "", func(q *queueRow) any { return whole(q.Delayed) }},
		{"OLDEST", "oldest in seconds", "", "", func(q *queueRow) any { return onScreen{long(q.Oldest), whole(q.Oldest)} }},
		{noisyHead, "", "", "", func(q *queueRow) any { return whole(q.Noisy) }},
		{quietHead, "", "", "", func(q *queueRow) any { return long(q.OldestQuiet) }},
		{"DONE/S", "done a second", "", "", func(q *queueRow) any { return rate(q.Done) }},
		{"CHANGE/S", "change a second", "", "", func(q *queueRow) any { return rate(q.Change) }},
		{"EMPTY IN", "seconds until it is empty", "", "", func(q *queueRow) any { return onScreen{q.emptyIn(), whole(q.EmptyIn)} }},
		{"", "DLQ", "", "", func(q *queueRow) any { return orDash(q.DLQ) }},
		{"IN DLQ", "messages of the DLQ", "", "", func(q *queueRow) any { return whole(q.InDLQ) }},
		{"DLQ", "", "", "", func(q *queueRow) any { return orDash(q.DLQ) }},
		{"WHY", "why", "", "", func(q *queueRow) any { return q.why() }},
		{"", "noisy groups", "", "", func(q *queueRow) any { return whole(q.Noisy) }},
		{"", "oldest of quiet groups in seconds", "", "", func(q *queueRow) any { return whole(q.OldestQuiet) }},
	}
	limitColumns = []column[*fleet.Limit]{
		{"", `"limit"`, "", "", func(*fleet.Limit) any { return "limit" }},
		{"LIMIT", "rule", "", "", func(l *fleet.Limit) any { return l.Name }},
		{"PLAN", "plan", "", "", func(l *fleet.Limit) any { return orDash(l.Plan) }},
		{"PROCESSES", "processes", "", "", func(l *fleet.Limit) any { return len(l.Processes) }},
		{"RUNNING", "running", "", "", func(l *fleet.Limit) any { return whole(l.Running) }},
		{"WAITING", "waiting", "", "", func(l *fleet.Limit) any { return whole(l.Waiting) }},
		{"NEXT IN", "next in seconds", "", "", func(l *fleet.Limit) any { return onScreen{soon(l.Next), number(l.Next, "%.1f")} }},
		{"WHY", "why", "", "", func(l *fleet.Limit) any { return l.Why() }},
	}
	limitsLeaveOut = []string{"PROCESSES", "RUNNING", "PLAN"}

	queuesLeaveOut = []string{"DLQ", "DELAYED", "DONE/S", "CHANGE/S", "IN FLIGHT", "OLDEST", "EMPTY IN", quietHead, noisyHead}
)

// Heads of columns that a terminal has only while a queue has noisy groups.
const (
	noisyHead = "NOISY"
	quietHead = "QUIET"
)

// queueColumnsOf are those of a terminal.
func queueColumnsOf(rows []*queueRow) []column[*queueRow] {
	if slices.ContainsFunc(rows, func(q *queueRow) bool { return q.Noisy != nil && *q.Noisy > 0 }) {
		return queueColumns
	}
	return slices.DeleteFunc(slices.Clone(queueColumns), func(c column[*queueRow]) bool { return c.head == noisyHead || c.head == quietHead })
}

func (w *workerRow) ofConcurrency() string {
	if w.Concurrency == nil {
		return whole(w.Running)
	}
	return whole(w.Running) + " of " + whole(w.Concurrency)
}

func (q *queueRow) emptyIn() string {
	if q.EmptyIn == nil {
		return long(q.EmptyIn)
	}
	return "about " + long(q.EmptyIn)
}

// lines are those of a pipe.
func (s *snapshot) lines(a *app) [][]string {
	_, workers := cellsOf(a, workerColumns, s.Workers)
	_, queues := cellsOf(a, queueColumns, s.Queues)
	_, limits := cellsOf(a, limitColumns, s.Limits)
	return slices.Concat(workers, queues, limits)
}

// tables are the lines of a terminal.
func (s *snapshot) tables(a *app, width int) (lines []string) {
	add := func(table []string) {
		if len(lines) > 0 && len(table) > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, table...)
	}
	heads, cells := cellsOf(a, workerColumns, s.Workers)
	add(fitted(width, heads, workersLeaveOut, cells))
	heads, cells = cellsOf(a, queueColumnsOf(s.Queues), s.Queues)
	add(fitted(width, heads, queuesLeaveOut, cells))
	heads, cells = cellsOf(a, limitColumns, s.Limits)
	add(fitted(width, heads, limitsLeaveOut, cells))
	return lines
}

const (
	widestCell  = 32 // but for the last column
	leastReason = 30 // columns are left out for so much of the last one
)

// fitted makes the lines of a table, which are no wider than the terminal: columns are left out first, then lines are cut. The last
// column is left out where it has nothing.
func fitted(width int, heads, leaveOut []string, rows [][]string) []string {
	if len(rows) == 0 {
		return nil
	}
	last := len(heads) - 1
	cells := [][]string{heads}
	widths := make([]int, len(heads))
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
	for i := range heads {
		for j, line := range cells {
			if j > 0 || i < last {
				widths[i] = max(widths[i], runewidth.StringWidth(line[i]))
			}
		}
	}
	out := make([]bool, len(heads))
	out[last] = widths[last] == 0
	widths[last] = min(widths[last], leastReason)
	total := 2*last - 2
	for _, w := range widths {
		total += w
	}
	if !out[last] {
		total += 2
	}
	for _, head := range leaveOut {
		if total <= width {
			break
		}
		if i := slices.Index(heads, head); i >= 0 {
			out[i] = true
			total -= widths[i] + 2
		}
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

// soon is long, with a tenth of a second where there is less than ten of them.
func soon(v *float64) string {
	if v != nil && *v >= 0 && *v < 9.95 {
		return fmt.Sprintf("%.1fs", *v)
	}
	return long(v)
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
	lines := shot.frame(s.a, width)
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
func (s *snapshot) frame(a *app, width int) []string {
	away := 0
	for _, w := range s.Workers {
		if w.err != nil {
			away++
		}
	}
	head := fmt.Sprintf("%s top  %s UTC  every %s", a.name(), s.At.Format(time.TimeOnly), topEvery)
	if away > 0 {
		head += fmt.Sprintf("  no answer from %d processes", away)
	}
	lines := append([]string{head, ""}, s.tables(a, width)...)
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
