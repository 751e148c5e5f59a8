// Package shown writes what people read, on a terminal and on pages: how long, and text that others have chosen.
package shown

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sqsonce/sqsonce/internal/cut"
)

// Escape shows what a terminal or a browser would act on: controls, marks of direction, bytes that are not UTF-8. Others decide what
// the text of a message is. The characters of keep, such as line ends, stay as they are.
func Escape(s, keep string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		broken := r == utf8.RuneError && size == 1
		if !broken && (unicode.IsPrint(r) || strings.ContainsRune(keep, r)) {
			b.WriteRune(r)
		} else {
			quoted := strconv.QuoteToASCII(s[:size])
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		s = s[size:]
	}
	return b.String()
}

// Short is the start of a text in at most so many bytes, and a mark where it goes on.
func Short(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return cut.Text(s, most) + "…"
}

// Count is so many things: "1 message", "2 messages".
func Count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return strconv.Itoa(n) + " " + thing
}

const mostNamed = 3

// Some names the first three of several.
func Some(all []string) string {
	text := strings.Join(all[:min(len(all), mostNamed)], ", ")
	if more := len(all) - mostNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Brief is a duration in one unit, or in two. A negative one is 0 s.
func Brief(d time.Duration, two bool) string {
	units := []struct {
		name string
		unit time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}}
	d = max(d, 0)
	for i, u := range units {
		if d < u.unit && u.unit > time.Second {
			continue
		}
		text := fmt.Sprint(int64(d/u.unit)) + u.name
		if two && i+1 < len(units) {
			text += " " + fmt.Sprint(int64(d%u.unit/units[i+1].unit)) + units[i+1].name
		}
		return text
	}
	return ""
}
