package lambda

import (
	"strings"
	"testing"
)

func TestFIFOFailureEndsItsGroupOnly(t *testing.T) {
	t.Parallel()
	for name, h := range bad {
		var r runs
		f := wrap(t, r.wrap(handlers{"a2": h}.handle))
		got := invoke(t, f, t.Context(), fifoBatch("a1", "b1", "a2", "a3", "b2", "c1", "a4", "b3"))
		if got != "a2 a3 a4" {
			t.Errorf("%s: failed: got %q, want a2 a3 a4", name, got)
		}
		if started := strings.Join(r.list(), " "); strings.Contains(started, "a3") || strings.Contains(started, "a4") {
			t.Errorf("%s: ran %s: one of them is behind a failed message", name, started)
		}
	}
}
