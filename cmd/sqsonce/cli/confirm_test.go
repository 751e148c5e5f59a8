package cli

import (
	"fmt"
	"strings"
	"testing"
)

// What cannot be undone is asked for by number.
func TestConfirmNumber(t *testing.T) {
	for _, test := range []struct {
		n      int
		answer string // "": nobody can be asked
		yes    bool
		expect int
		code   exitCode
		asks   string
	}{
		{10, "y", false, -1, exitDone, "[y/N]"},
		{10, "orders-dlq", false, -1, exitRefused, "[y/N]"},
		{11, "y", false, -1, exitRefused, "Type the queue's name to delete it"},
		{11, "orders-dlq", false, -1, exitDone, "Type the queue's name"},
		{10, "n", true, -1, exitDone, ""},
		{11, "y", true, -1, exitRefused, "Type"},
		{11, "orders-dlq", true, 11, exitDone, "Type"},
		{11, "orders-dlq", true, 12, exitRefused, ""},
		{11, "", true, -1, exitRefused, ""},
		{11, "", false, 11, exitRefused, ""},
		{11, "", true, 11, exitDone, ""},
		{11, "", true, 10, exitRefused, ""},
		{0, "", true, 0, exitDone, ""},
	} {
		t.Run(fmt.Sprintf("%+v", test), func(t *testing.T) {
			var errs strings.Builder
			a := &app{in: strings.NewReader(test.answer + "\n"), err: &errs, asks: test.answer != "", flags: flags{yes: test.yes, expect: test.expect}}
			err := a.confirmNumber(t.Context(), "delete", test.n, "orders-dlq")
			if code := codeOf(t.Context(), err); code != test.code || !strings.Contains(errs.String(), test.asks) || (errs.Len() > 0) != (test.asks != "") {
				t.Errorf("exit %d, %v, asks %q", code, err, errs.String())
			}
		})
	}
}
