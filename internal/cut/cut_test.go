package cut_test

import (
	"testing"

	"github.com/sqsonce/sqsonce/internal/cut"
)

func TestText(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text string
		most int
		want string
	}{
		{"äb", 3, "äb"}, {"äb", 2, "ä"}, {"äb", 1, ""}, {"", 0, ""},
		{"a\xffb", 9, "a\uFFFDb"}, {"a\xffb", 3, "a"}, {"a🚲", 4, "a"}, {"a🚲", 5, "a🚲"}, {"a\x00b", 2, "ab"}, {"a\xf0\x9f", 4, "a\uFFFD"},
	} {
		if got := cut.Text(tc.text, tc.most); got != tc.want {
			t.Errorf("Text(%q, %d) = %q, want %q", tc.text, tc.most, got, tc.want)
		}
	}
}
