package sqldb

import "strings"

// Cut shortens a text to whole characters that every database accepts, in at most limit bytes.
func Cut(text string, limit int) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text[:min(len(text), limit)], "\x00", ""), "")
}
