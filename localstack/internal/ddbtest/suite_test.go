package ddbtest

import (
	"errors"
	"slices"
	"testing"
)

func TestCasesHaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, c := range cases() {
		if seen[c.name] {
			t.Errorf("two cases are named %q", c.name)
		}
		seen[c.name] = true
	}
	if len(seen) < 120 {
		t.Errorf("%d cases, want at least 120", len(seen))
	}
}

// A list of known defects that nobody keeps up is worth nothing.
func TestKnownDefectsDoNotRot(t *testing.T) {
	t.Parallel()
	b := Backend{Known: map[string]string{"put/no table": "why", "no such case": "why"}}
	if got := b.unknown(cases()); !slices.Equal(got, []string{"no such case"}) {
		t.Errorf("unknown names: got %q, want the one that is no case's", got)
	}
	for _, c := range []struct {
		name string
		err  error
		want bool // a failure of the test
	}{
		{"put/no table", errors.New("failed"), false},
		{"put/no table", nil, true},
		{"get/no table", errors.New("failed"), true},
		{"get/no table", nil, false},
	} {
		if got := b.verdict(c.name, c.err) != nil; got != c.want {
			t.Errorf("verdict of %q with %v: got failure %t, want %t", c.name, c.err, got, c.want)
		}
	}
}
