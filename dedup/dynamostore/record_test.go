package dynamostore

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestErrorText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want string }{
		{"short", "card declined", "card declined"},
		{"empty", "", ""},
		{"exactly as long", strings.Repeat("e", maxError), strings.Repeat("e", maxError)},
		{"too long", strings.Repeat("e", maxError+1), strings.Repeat("e", maxError)},
		{"a character across the end", strings.Repeat("e", maxError-1) + "ż!", strings.Repeat("e", maxError-1)},
		{"no text", "a\xffb", "a\uFFFDb"},
		{"no text, longer as text", strings.Repeat("a\xff", maxError/2), strings.Repeat("a\uFFFD", maxError/4)},
	} {
		got := errorText(errors.New(c.in))
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		if len(got) > maxError || !utf8.ValidString(got) {
			t.Errorf("%s: %d bytes, valid UTF-8 %t; want at most %d, valid", c.name, len(got), utf8.ValidString(got), maxError)
		}
	}
}

// A result that is no text comes back as it was, too.
func TestDataRoundTrip(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"", `{"id":1}`, "zażółć", "\x00\xff\xfe"} {
		out, err := decodeData(encodeData([]byte(in)))
		if err != nil || string(out) != in {
			t.Errorf("%q: got %q, %v", in, out, err)
		}
	}
}
