package console

import (
	"bytes"
	"fmt"
	"html/template"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/shown"
	"github.com/sqsonce/sqsonce/internal/opsview"
)

// funcs are those of the templates.
var funcs = template.FuncMap{
	"clock":   clock,
	"day":     func(t time.Time) string { return formatTime(t, "2006-01-02 15:04:05 UTC") },
	"iso":     func(t time.Time) string { return formatTime(t, time.RFC3339) },
	"ago":     ago,
	"brief":   func(d time.Duration) string { return shown.Brief(d, true) },
	"count":   count,
	"dlqPath": func(q Queue) string { return dlqPath(q.Name) },
	"link":    newNavLink,
	"left":    left, "means": opsview.Means, "do": opsview.Do, "cause": cause, "mood": mood, "verdictMood": verdictMood, "cut": cut,

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
