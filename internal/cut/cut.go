// Package cut shortens texts that others wrote, for places that limit their bytes.
package cut

import (
	"strings"
	"unicode/utf8"
)

// Text returns the start of s: whole characters, at most so many bytes. Bytes that are not UTF-8 become U+FFFD, and NUL is
// left out, which SQL databases refuse.
func Text(s string, most int) string {
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "\uFFFD")
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}

// Cause is the text of an error as a record or an outbox stores it, "" for nil. At most MostCause bytes keep most records
// under 1 KB, one write unit a write in DynamoDB.
func Cause(err error) string {
	if err == nil {
		return ""
	}
	return Text(err.Error(), MostCause)
}

// MostCause is the longest text of [Cause], in bytes.
const MostCause = 256
