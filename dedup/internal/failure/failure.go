// Package failure shortens the text of an error that a release stores in a record.
package failure

import (
	"strings"
	"unicode/utf8"
)

// Most is the longest text that a record stores, in bytes. It keeps most records under 1 KB, one write unit a write in
// DynamoDB.
const Most = 256

// Text returns the start of err's text: whole characters, at most Most bytes.
func Text(err error) string {
	s := strings.ToValidUTF8(err.Error(), "\uFFFD")
	if len(s) <= Most {
		return s
	}
	end := Most
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}
