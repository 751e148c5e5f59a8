package failure

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want string }{
		{"short", "card declined", "card declined"},
		{"empty", "", ""},
		{"exactly as long", strings.Repeat("e", Most), strings.Repeat("e", Most)},
		{"too long", strings.Repeat("e", Most+1), strings.Repeat("e", Most)},
		{"a character across the end", strings.Repeat("e", Most-1) + "ż!", strings.Repeat("e", Most-1)},
		{"no text", "a\xffb", "a\uFFFDb"},
		{"no text, longer as text", strings.Repeat("a\xff", Most/2), strings.Repeat("a\uFFFD", Most/4)},
	} {
		got := Text(errors.New(c.in))
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		if len(got) > Most || !utf8.ValidString(got) {
			t.Errorf("%s: %d bytes, valid UTF-8 %t; want at most %d, valid", c.name, len(got), utf8.ValidString(got), Most)
		}
	}
}
