package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/doctor"
	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/shown"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/ops"
)

// funcs are those of the templates.
var funcs = template.FuncMap{
	"clock":   clock,
	"day":     func(t time.Time) string { return formatTime(t, "2006-01-02 15:04:05 UTC") },
	"milli":   func(t time.Time) string { return formatTime(t, "2006-01-02 15:04:05.000 UTC") },
	"iso":     func(t time.Time) string { return formatTime(t, time.RFC3339) },
	"ago":     ago,
	"brief":   func(d time.Duration) string { return shown.Brief(d, true) },
	"count":   count,
	"title":   func(s string) string { return strings.ToUpper(s[:1]) + s[1:] },
	"dlqPath": func(q Queue) string { return dlqPath(q.Name) },
	"link":    newNavLink,
	"left":    left, "means": ops.Means, "do": ops.Do, "cause": cause, "mood": mood, "verdictMood": verdictMood, "cut": short, "reason": reason,

	"classPath": classPath, "messagePath": messagePath, "recordPath": recordPath,
}

// dlqPath is the page of the dead-letter queue of a queue.
func dlqPath(queue string) string { return "/dlq/" + url.PathEscape(queue) }

// navLink is a link of the navigation.
type navLink struct{ To, Text, Current string }

// newNavLink links to a page, from the page at path. Its aria-current is "page", "true" for one below it, or "".
func newNavLink(path, to, text string) navLink {
	l := navLink{To: to, Text: text}
	switch {
	case path == to:
		l.Current = "page"
	case to != "/" && strings.HasPrefix(path, to+"/"):
		l.Current = "true"
	}
	return l
}

func clock(t time.Time) string { return formatTime(t, "15:04:05 UTC") }

func ago(t time.Time) string {
	if t.IsZero() {
		return "unknown"
	}
	return shown.Brief(time.Since(t), true) + " ago"
}

func formatTime(t time.Time, layout string) string {
	if t.IsZero() {
		return "unknown"
	}
	return t.UTC().Format(layout)
}

// count writes a number with its thousands apart.
func count(n int) string {
	digits := strconv.Itoa(n)
	var b strings.Builder
	for i, d := range digits {
		if left := len(digits) - i; i > 0 && left%3 == 0 && digits[i-1] != '-' {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// visible shows the characters of a page that a browser acts on, or draws as nothing: controls, marks of direction. They come from
// strangers: no template writes any. It does so in the text, where they are shown; inside a tag, as in the value of a field that
// is sent again, they stay what they are. html/template writes no < or > into an attribute, so a tag ends at its >.
func visible(html []byte) []byte {
	if bytes.IndexFunc(html, special) < 0 {
		return html
	}
	var b bytes.Buffer
	inTag := false
	for len(html) > 0 {
		r, size := utf8.DecodeRune(html)
		switch {
		case r == '<' || r == '>':
			inTag = r == '<'
			b.WriteRune(r)
		case !special(r):
			b.Write(html[:size])
		case inTag:
			fmt.Fprintf(&b, "&#%d;", r)
		default:
			b.WriteString(shown.Escape(string(html[:size]), ""))
		}
		html = html[size:]
	}
	return b.Bytes()
}

// special also takes the rune of bytes that are not UTF-8.
func special(r rune) bool {
	return r != '\n' && r != '\t' && (!unicode.IsPrint(r) || r == utf8.RuneError)
}

// pageSize is how many classes, or messages of one, a page has.
const pageSize = 100

// pager is one page of a long list: templates/fragments/pager.html.
type pager struct {
	Page, Pages int
	First, Last int    // numbers from 1, of n
	list        string // the address of the list, without a page
}

// newPager reads which page of n things is asked for.
func newPager(r *http.Request, n int, list string) (pager, error) {
	p := pager{Page: 1, Pages: max(1, (n+pageSize-1)/pageSize), list: list}
	if text := r.FormValue("page"); text != "" {
		var err error
		if p.Page, err = strconv.Atoi(text); err != nil || p.Page < 1 || p.Page > p.Pages {
			return pager{}, &pageError{http.StatusBadRequest, fmt.Errorf("page is %q, must be 1 to %d", text, p.Pages)}
		}
	}
	p.First, p.Last = (p.Page-1)*pageSize+1, min(n, p.Page*pageSize)
	return p, nil
}

func (p pager) Earlier() string { return p.list + "page=" + strconv.Itoa(p.Page-1) }
func (p pager) Next() string    { return p.list + "page=" + strconv.Itoa(p.Page+1) }

// left is the time until then.
func left(t time.Time) string {
	if d := time.Until(t); d > 0 {
		return "in " + shown.Brief(d, true)
	}
	return "now"
}

// cause says how a message came into the dead-letter queue.
func cause(c ops.Cause) string {
	switch c {
	case ops.CauseRejected:
		return "its consumer rejected it"
	case ops.CauseReceivesUsedUp:
		return "SQS moved it after its last receive"
	default:
		return "a program sent it here, and its source queue is unknown"
	}
}

// mood is the class of a badge: it only repeats what the state's name says.
func mood(s dedup.RecordState) string {
	switch s {
	case dedup.StateCompleted:
		return "good"
	case dedup.StateCrashed, dedup.StateForeign, ops.StateUnknown:
		return "bad"
	case dedup.StateRunning:
		return "warn"
	default:
		return ""
	}
}

// verdictMood is the class of a badge: it only repeats what the verdict says.
func verdictMood(v doctor.Verdict) string {
	return map[doctor.Verdict]string{doctor.OK: "good", doctor.Warn: "warn", doctor.Fail: "bad"}[v]
}

const mostCut = 200 // bytes of a reason in a list

func short(s string) string { return shown.Short(s, mostCut) }

// pageError is an error with the status of the answer. Its text is shown.
type pageError struct {
	status int
	err    error
}

func (e *pageError) Error() string { return e.err.Error() }
func (e *pageError) Unwrap() error { return e.err }

var errNoPage = &pageError{http.StatusNotFound, errors.New("page not found")}

// errorData is the page of an error.
type errorData struct {
	Text    string
	NoToken bool
}

// fail answers with the page of an error. One of the console, or of AWS, is logged too.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	status := statusOf(err)
	if status >= http.StatusInternalServerError && r.Context().Err() == nil {
		s.log.Error("console: a page failed", append([]any{"method", r.Method, "path", r.URL.Path}, host.ErrorAttrs(err)...)...)
	}
	s.showError(w, status, page{Path: r.URL.Path, Write: s.opts.Write, Queues: s.opts.Queues}, err)
}

// turnAway answers who may not come in, and shows nothing.
func (s *Server) turnAway(w http.ResponseWriter, err error) {
	s.showError(w, http.StatusForbidden, page{Closed: true}, err)
}

func (s *Server) showError(w http.ResponseWriter, status int, p page, err error) {
	p.Title = http.StatusText(status)
	p.Data = errorData{err.Error(), errors.Is(err, errNoToken)}
	s.execute(w, status, s.errorPage, p)
}

func statusOf(err error) int {
	_, tooLarge := errors.AsType[*http.MaxBytesError](err)
	own, ok := errors.AsType[*pageError](err)
	switch {
	case tooLarge:
		return http.StatusRequestEntityTooLarge
	case ok:
		return own.status
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout
	default:
		return http.StatusInternalServerError
	}
}
