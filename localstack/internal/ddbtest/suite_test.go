package ddbtest

import "testing"

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
