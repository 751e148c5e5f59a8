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
// eight digits or more, IDs of requests, words of ten characters or more that have digits, and numbers with their sign. An apostrophe
// within a word quotes nothing. The groups are found first, and stay, because they tell causes apart: the host of a URL, of which only a
// quoted one ends with its path, the address of a failed dial or lookup, and the value of a code. The last group may be a word.
var details = regexp.MustCompile(`(?i)` + strings.Join([]string{
	`"([a-z][a-z0-9+.-]*://[^\s/?#"@]+)(?:[/?#][^\s"]*)?"`,
	`(\b[a-z][a-z0-9+.-]*://(?:\[[0-9a-f:]+\]|[^\s/?#"'@:,;()\[\]]+)(?::\d+)?(?:[/?#\s:,;]|$)` +
		`|\bdial (?:tcp|udp)[46]? (?:\[[0-9a-f:]+\]|[^\s:\[]+):\d+|\blookup [\w.-]+` +
		`|` + codeAndValue + `|\berror \d{4} \([0-9a-z]{5}\))`,
	`\barn:[^\s"'` + "`" + `,;()]+`,
	`\b\d{4}-\d\d-\d\d[t ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:z\b|[+-]\d\d:?\d\d)?`,
	`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`,
	`"(?:[^"\\]|\\.)*"`, "`[^`]*`", `\B'[^']*'\B`,
	`\b(?:0x)?[0-9a-f]{8,}\b`, `\bRequestID: [0-9a-z]+`,
	`([0-9a-z]{10,})`,
	`(?:\B[+-])?\d+(?:[.,:]\d+)*`,
}, "|"))

// codeAndValue is a name of codes with its value, each of which may be in quotes. A name may follow another: "status code 14". Within a
// word it begins with a capital, so that a postcode is none.
const (
	codeName = `(?:\b(?:\w*_)?(?:(?:http)?status|http|(?:err(?:or)?|exit|ret(?:urn)?|sql|status)?code|sqlstate|errno)` +
		`|(?-i:\b\w*(?:Status|Http|Code|Errno|SQLState|SqlState)))`
	codeNames    = codeName + `(?:` + betweenCodes + `{1,3}\b(?:status|code|sqlstate|errno))*`
	betweenCodes = "[^\\w\"'`\\\\]"
	codeQuote    = "\\\\?[\"'`]"
	codeValue    = `(?:\w{1,10}|[a-z]+(?:[_./-][a-z]+)*)`
	codeAndValue = `(?:` + codeQuote + codeName + codeQuote + `|` + codeNames + `(?:/[\d.]+)?)` + betweenCodes + `{0,3}` +
		`(?:` + codeQuote + codeValue + codeQuote + `|\b` + codeValue + `\b)`
)

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
		case at[4] >= 0 || isStatus(reason, at[0], end) || at[6] >= 0 && !strings.ContainsAny(reason[at[0]:end], "0123456789"):
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
