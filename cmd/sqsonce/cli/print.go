package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/mattn/go-runewidth"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/shown"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/ops"
)

// note prints something other than the result. Others decide what a text in it is: a line end of theirs begins no line.
func (a *app) note(format string, args ...any) {
	for i, arg := range args {
		if text, ok := arg.(string); ok {
			args[i] = escaped(text)
		}
	}
	fmt.Fprintln(a.err, escapedLines(fmt.Sprintf(format, args...)))
}

// printJSON prints v as one line. What a terminal acts on, and JSON allows, is escaped: DEL, C1 controls, marks of direction.
func (a *app) printJSON(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, r := range string(text) { // valid UTF-8: Marshal replaces what is not
		switch {
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	_, err = fmt.Fprintln(a.out, b.String())
	return err
}

// printTable prints a table with a header on a terminal, where its last column is wrapped, and lines with tabs in a pipe.
func (a *app) printTable(header []string, rows [][]string) error {
	return writeTable(a.out, a.width, header, rows)
}

// writeTable writes a table of this width, or lines with tabs where that is 0.
func writeTable(w io.Writer, width int, header []string, rows [][]string) error {
	for _, row := range rows {
		for i, cell := range row {
			row[i] = escaped(cell)
		}
	}
	if width == 0 {
		return writeLines(w, rows, func(row []string) string { return strings.Join(row, "\t") })
	}
	if header != nil && len(rows) > 0 {
		rows = append([][]string{header}, rows...)
	}
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], runewidth.StringWidth(cell))
		}
	}
	return writeLines(w, rows, func(row []string) string {
		var line strings.Builder
		last, left := len(row)-1, width
		for i, cell := range row[:last] {
			line.WriteString(runewidth.FillRight(cell, widths[i]) + "  ")
			left -= widths[i] + 2
		}
		if text := runewidth.StringWidth(row[last]); text > left && left < leastColumn && last > 0 { // below the others
			const indent = "\n    "
			return strings.TrimRight(line.String(), " ") + indent + strings.Join(wrapped(row[last], max(width-len(indent)+1, leastColumn)), indent)
		}
		// A terminal that is too narrow breaks the line rather than show nothing.
		indent := "\n" + strings.Repeat(" ", runewidth.StringWidth(line.String()))
		return strings.TrimRight(line.String()+strings.Join(wrapped(row[last], max(left, leastColumn)), indent), " ")
	})
}

// wrapped breaks a line between words, and within those that are too long.
func wrapped(text string, width int) (lines []string) {
	for runewidth.StringWidth(text) > width {
		line := runewidth.Truncate(text, width, "")
		if at := strings.LastIndexByte(line, ' '); at > 0 && text[len(line)] != ' ' {
			line = line[:at]
		}
		lines, text = append(lines, strings.TrimRight(line, " ")), strings.TrimLeft(text[len(line):], " ")
	}
	return append(lines, text)
}

const leastColumn = 30

func writeLines(w io.Writer, rows [][]string, line func([]string) string) error {
	for _, row := range rows {
		if _, err := fmt.Fprintln(w, line(row)); err != nil {
			return err
		}
	}
	return nil
}

// pair is a line of a single thing that is shown.
type pair struct{ name, value string }

// printPairs prints those that have a value.
func (a *app) printPairs(pairs []pair) error {
	var rows [][]string
	for _, p := range pairs {
		if p.value != "" {
			rows = append(rows, []string{p.name, p.value})
		}
	}
	saved := a.width
	if a.width > 0 {
		a.width = 1 << 20 // one thing is shown whole
	}
	defer func() { a.width = saved }()
	return a.printTable(nil, rows)
}

// escaped is for one line: others decide what the text of a message is.
func escaped(s string) string { return shown.Escape(s, "") }

// escapedLines leaves line ends and tabs as they are.
func escapedLines(s string) string { return shown.Escape(s, "\n\t") }

// when is a time for a person, or exact for a program. A zero time is not known.
func (a *app) when(t time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case a.width == 0:
		return t.UTC().Format(time.RFC3339)
	case t.After(time.Now()):
		return "in " + shown.Brief(time.Until(t), false)
	default:
		return shown.Brief(time.Since(t), false) + " ago"
	}
}

const progressEvery = 10 * time.Second

// progress shows on standard error how far a redrive is: on a terminal as a bar, where the plan says of how many, else as a line
// every ten seconds.
type progress struct {
	a *app

	actions  map[string]ops.Action // by message ID
	counts   map[ops.Action]int
	cameBack atomic.Int64
	sent     time.Time // when the canary was sent that is awaited
	shown    time.Time // when the last line was
	bars     *mpb.Progress
	bar      *mpb.Bar // nil: lines
}

func (a *app) newProgress(total int) *progress {
	p := &progress{a: a, actions: map[string]ops.Action{}, counts: map[ops.Action]int{}, shown: time.Now()}
	if a.bars && total > 0 {
		p.bars = mpb.New(mpb.WithOutput(a.err), mpb.WithWidth(40), mpb.WithAutoRefresh())
		p.bar = p.bars.AddBar(int64(total),
			mpb.PrependDecorators(decor.CountersNoUnit("%d / %d redriven ")),
			mpb.AppendDecorators(decor.Elapsed(decor.ET_STYLE_MMSS), decor.Any(func(decor.Statistics) string {
				return fmt.Sprintf(" %d came back", p.cameBack.Load())
			})))
	}
	return p
}

// result takes the result of a message, or what has become of it since.
func (p *progress) result(res *ops.Result) {
	if errors.Is(res.Err, ops.ErrNotSelected) {
		return // the end says how many
	}
	last, seen := p.actions[res.ID]
	if seen {
		p.counts[last]--
	}
	action := res.Action
	if res.After == dedup.StateCrashed {
		action = ops.Action(res.After)
	}
	p.actions[res.ID] = action
	p.counts[action]++
	if errors.Is(res.Err, ops.ErrCameBack) && !seen {
		p.cameBack.Add(1)
	}
	p.showCanary(res, seen)
	if p.bar != nil {
		p.bar.SetCurrent(int64(p.counts[ops.ActionRedriven]))
	} else if res.Canary == 0 && time.Since(p.shown) >= progressEvery { // a canary has its own lines
		p.shown = time.Now()
		p.line("so far %d redriven, %d left of those selected, %d came back", p.counts[ops.ActionRedriven], p.counts[ops.ActionLeft], p.cameBack.Load())
	}
}

// showCanary says what is waited for.
func (p *progress) showCanary(res *ops.Result, seen bool) {
	switch {
	case res.Canary == 0 || res.Action != ops.ActionRedriven:
	case res.After == "" && !seen:
		p.sent = time.Now()
		p.line("canary %s sent, %s: waiting for its end, %s at most", res.ID, res.RecordKey, shown.Brief(res.Canary, true))
		if res.State == ops.StateUnknown {
			p.line("a consumer with a key function or another store writes no record under this key: --canary 0 sends without a canary")
		}
	case res.After != "":
		p.line("canary %s is %s, after %.1f s", res.ID, res.After, time.Since(p.sent).Seconds())
	}
}

// line prints a line, above the bar.
func (p *progress) line(format string, args ...any) {
	if p.bar == nil {
		p.a.note(format, args...)
		return
	}
	fmt.Fprintln(p.bars, escapedLines(fmt.Sprintf(format, args...)))
}

func (p *progress) stop() {
	if p.bar != nil {
		p.bar.Abort(false) // Wait would wait for a bar that is not full
		p.bars.Wait()
	}
}
