package main

import (
	"slices"
	"testing"
)

func TestQuickTests(t *testing.T) {
	output := "=== RUN   TestA\n--- PASS: TestA (0.05s)\n--- PASS: TestSlow (0.06s)\n    --- PASS: TestA/sub (0.00s)\n--- SKIP: TestSkipped (0.00s)\n--- PASS: TestB_c (0.00s)\nPASS\n"
	if got, want := quickTests(output), "^(TestA|TestB_c)$"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSkipping(t *testing.T) {
	for name, c := range map[string]struct{ command, want []string }{
		"none before": {[]string{"x.test", "-test.v"}, []string{"x.test", "-test.v", "-test.skip=^(A)$"}},
		"some before": {[]string{"x.test", "-test.skip=^B$", "-test.v"}, []string{"x.test", "-test.skip=^B$|^(A)$", "-test.v"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := skipping(c.command, "^(A)$"); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
