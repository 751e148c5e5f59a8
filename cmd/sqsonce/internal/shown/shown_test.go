package shown_test

import (
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/shown"
)

func TestEscape(t *testing.T) {
	for _, test := range []struct{ text, keep, want string }{
		{"", "", ""},
		{"plain <b>&amp; é 漢 🙂", "", "plain <b>&amp; é 漢 🙂"},
		{"a\nb\tc", "", `a\nb\tc`},
		{"a\nb\tc\r", "\n\t", "a\nb\tc" + `\r`},
		{"\x1b[31m\x00\x7f", "", `\x1b[31m\x00\x7f`},
		{"\u009b31m", "", `\u009b31m`},
		{"\u202eevil\u200b", "", `\u202eevil\u200b`},
		{"\U000e0041", "", `\U000e0041`}, // a tag: it is drawn as nothing
		{"\xff\xfe", "", `\xff\xfe`},     // not UTF-8
		{"\ufffd", "", "\ufffd"},         // the character itself
		{"\xe2\x80", "\n", `\xe2\x80`},   // cut in the middle
		{"\xff", "\ufffd", `\xff`},       // kept is the character, not the broken byte
		{`back\slash "quoted"`, "", `back\slash "quoted"`},
	} {
		if got := shown.Escape(test.text, test.keep); got != test.want {
			t.Errorf("Escape(%q, %q) is %q, want %q", test.text, test.keep, got, test.want)
		}
	}
}

func TestBrief(t *testing.T) {
	const day = 24 * time.Hour
	for _, test := range []struct {
		d        time.Duration
		one, two string
	}{
		{-time.Hour, "0s", "0s"},
		{0, "0s", "0s"},
		{999 * time.Millisecond, "0s", "0s"},
		{59 * time.Second, "59s", "59s"},
		{time.Minute, "1m", "1m 0s"},
		{time.Hour - time.Second, "59m", "59m 59s"},
		{26*time.Hour + 59*time.Minute, "1d", "1d 2h"},
		{14 * day, "14d", "14d 0h"},
	} {
		if one, two := shown.Brief(test.d, false), shown.Brief(test.d, true); one != test.one || two != test.two {
			t.Errorf("%s is %q and %q, want %q and %q", test.d, one, two, test.one, test.two)
		}
	}
}
