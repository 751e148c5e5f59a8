package ops

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sqsonce/sqsonce/internal/cut"
)

// Class groups reasons that differ in details only, such as an order's number.
type Class struct {
	ID   string // six hexadecimal digits of a SHA-256 of the reason with * for each detail
	Text string // its first 1,024 bytes
}

// Crashed reports whether the reason is a crash, also where an operator has freed the event since.
func (c Class) Crashed() bool { return strings.HasPrefix(c.Text, crashedText) }

const (
	maxClass = 1 << 10 // bytes: as long as a reject-reason
	// maxClassed is how many bytes of a reason are read for its class: whoever sends a message decides how long a reason is, and of
	// 256 KiB a search takes 200 ms.
	maxClassed = 4 << 10
)

// details are the parts in which two reasons of one class differ: ARNs, times, UUIDs, quoted strings, hexadecimal numbers of
// eight digits or more, IDs of requests, and numbers with their sign. An apostrophe within a word quotes nothing. The groups are found
// first, and stay, because they tell causes apart: the host of a URL, of which only a quoted one ends with its path, the address of a
// failed dial or lookup, and a number after a word for codes.
var details = regexp.MustCompile(`(?i)` + strings.Join([]string{
	`"([a-z][a-z0-9+.-]*://[^\s/?#"@]+)(?:[/?#][^\s"]*)?"`,
	`(\b[a-z][a-z0-9+.-]*://(?:\[[0-9a-f:]+\]|[^\s/?#"'@:,;()\[\]]+)(?::\d+)?(?:[/?#\s:,;]|$)` +
		`|\bdial (?:tcp|udp)[46]? (?:\[[0-9a-f:]+\]|[^\s:\[]+):\d+|\blookup [\w.-]+` +
		`|\b\w*(?:status|http|code|sqlstate|errno)(?:/[\d.]+)?\W{0,3}\b[0-9a-z]{1,9}\b|\berror \d{4} \([0-9a-z]{5}\))`,
	`\barn:[^\s"'` + "`" + `,;()]+`,
	`\b\d{4}-\d\d-\d\d[t ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:z\b|[+-]\d\d:?\d\d)?`,
	`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`,
	`"(?:[^"\\]|\\.)*"`, "`[^`]*`", `\B'[^']*'\B`,
	`\b(?:0x)?[0-9a-f]{8,}\b`, `\bRequestID: [0-9a-z]+`,
	`(?:\B[+-])?\d+(?:[.,:]\d+)*`,
}, "|"))

func classOf(reason string) Class {
	reason = cut.Text(reason, maxClassed)
	var text strings.Builder
	end := 0
	for _, at := range details.FindAllStringSubmatchIndex(reason, -1) {
		text.WriteString(reason[end:at[0]])
		switch end = at[1]; {
		case at[2] >= 0: // a quoted URL
			text.WriteString(reason[at[2]:at[3]])
			if at[3] < end-1 {
				text.WriteString("/*")
			}
		case at[4] >= 0 || isStatus(reason, at[0], end):
			text.WriteString(reason[at[0]:end])
		default:
			text.WriteByte('*')
		}
	}
	text.WriteString(reason[end:])
	sum := sha256.Sum256([]byte(text.String()))
	return Class{ID: hex.EncodeToString(sum[:3]), Text: strings.Clone(cut.Text(text.String(), maxClass))} // kept for longer than the rest
}

// isStatus reports whether a detail is a number of three digits, such as HTTP's 404, beside blanks and marks.
func isStatus(reason string, from, to int) bool {
	if _, err := strconv.Atoi(reason[from:to]); err != nil || to-from != 3 {
		return false
	}
	apart := func(r rune, beside string) bool {
		return r == utf8.RuneError || unicode.IsSpace(r) || strings.ContainsRune(beside, r)
	}
	before, _ := utf8.DecodeLastRuneInString(reason[:from])
	after, _ := utf8.DecodeRuneInString(reason[to:])
	return apart(before, "([:=") && apart(after, ")].,:;")
}
