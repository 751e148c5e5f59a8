package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// report collects what one check finds. A check may find several things, and see only a part.
type report struct {
	id      string
	verdict Verdict // "": nothing found
	texts   []string
	fixes   []string
	missed  []string // why something was not seen
}

func (r *report) fail(fix, format string, args ...any) { r.found(Fail, fix, format, args...) }
func (r *report) warn(fix, format string, args ...any) { r.found(Warn, fix, format, args...) }

func (r *report) found(v Verdict, fix, format string, args ...any) {
	if r.verdict != Fail {
		r.verdict = v
	}
	r.texts = append(r.texts, fmt.Sprintf(format, args...))
	if fix != "" && !slices.Contains(r.fixes, fix) {
		r.fixes = append(r.fixes, fix)
	}
}

// miss says that something was not seen. With a nil error it says nothing.
func (r *report) miss(err error) {
	if err == nil {
		return
	}
	if text := reason(err); !slices.Contains(r.missed, text) {
		r.missed = append(r.missed, text)
	}
}

// finding is what was found. Only where nothing was, and all was seen, it is OK, with that text.
func (r *report) finding(format string, args ...any) Finding {
	f := Finding{ID: r.id, Verdict: r.verdict, Text: strings.Join(r.texts, "; "), Fix: joinFixes(r.fixes)}
	missed := strings.Join(r.missed, ", ")
	switch {
	case r.verdict == "" && missed != "":
		f.Verdict, f.Text = Skip, missed
	case r.verdict == "":
		f.Verdict, f.Text = OK, fmt.Sprintf(format, args...)
	case missed != "":
		f.Text += "; not all was seen: " + missed
	}
	return f
}

// joinFixes makes one line: commands that a shell runs one after the other, or words.
func joinFixes(fixes []string) string {
	words := slices.ContainsFunc(fixes, func(f string) bool { return !strings.HasPrefix(f, "aws ") })
	if words {
		return strings.Join(fixes, "; ")
	}
	return strings.Join(fixes, " && ")
}

// span is a duration in days and what remains, exactly.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	days, rest := d/day, d%day
	text := ""
	if days > 0 {
		text = fmt.Sprintf("%dd", days)
	}
	if rest == 0 && days > 0 {
		return text
	}
	short := rest.String()
	if strings.HasSuffix(short, "m0s") {
		short = strings.TrimSuffix(short, "0s")
	}
	if strings.HasSuffix(short, "h0m") {
		short = strings.TrimSuffix(short, "0m")
	}
	return strings.TrimSpace(text + " " + short)
}
