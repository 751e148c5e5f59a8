// Package failure is what a record keeps of the error that a release was for.
package failure

import (
	"strings"
	"unicode/utf8"
)

// Most is how much of an error is kept, in bytes: a record under 1 KB costs one write unit a write in DynamoDB.
const Most = 256

// Text is what is kept of err: whole characters, at most Most bytes of them.
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
