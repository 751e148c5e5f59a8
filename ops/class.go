package ops

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Class groups reasons that differ in details only, such as an order's number.
type Class struct {
	ID   string // six hexadecimal digits of the SHA-256 of Text
	Text string // the reason in lower case, with * for each detail; at most 160 bytes
}

const (
	maxClass = 160 // bytes
	// maxClassed is how many bytes of a reason are read for its class: whoever sends a message decides how long a reason is, and of
	// 256 KiB a search takes 200 ms.
	maxClassed = 4 << 10
)

// details are what two reasons of one class differ in: ARNs, times, UUIDs, quoted strings, hexadecimal numbers of eight digits or
// more, and numbers. An apostrophe within a word quotes nothing.
var details = regexp.MustCompile(strings.Join([]string{
	`\barn:[^\s"'` + "`" + `,;()]+`,
	`\b\d{4}-\d\d-\d\d[t ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:z\b|[+-]\d\d:?\d\d)?`,
	`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`,
	`"(?:[^"\\]|\\.)*"`, "`[^`]*`", `\B'[^']*'\B`,
	`\b(?:0x)?[0-9a-f]{8,}\b`,
	`\d+(?:[.,:]\d+)*`,
}, "|"))

func classOf(reason string) Class {
	text := details.ReplaceAllString(strings.ToLower(upTo(reason, maxClassed)), "*")
	text = strings.Clone(upTo(text, maxClass)) // the class is kept for longer than the rest
	sum := sha256.Sum256([]byte(text))
	return Class{ID: hex.EncodeToString(sum[:3]), Text: text}
}

// upTo returns the first n bytes of a text, without a part of a character at their end.
func upTo(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
