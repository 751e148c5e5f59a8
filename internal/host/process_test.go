package host

import (
	"strings"
	"testing"
)

// A process's name fits into an owner whatever its host is called, and is read again.
func TestProcessName(t *testing.T) {
	t.Parallel()
	const id = "ABCDEFGH"
	for host, want := range map[string]string{
		"orders-7c9f-x2x8q":                                    "orders-7c9f-x2x8q",
		"ip-10-0-1-5.eu-west-1.compute.internal":               "ip-10-0-1-5",
		"2026/11/29/[$LATEST]0123456789abcdef0123456789abcdef": "0123456789abcdef0123456789abcdef",
		strings.Repeat("a", 30) + "-x2x8q":                     strings.Repeat("a", 26) + "-x2x8q",
		"pod 1@ä":                                              "pod-1--",
		"":                                                     "host",
	} {
		got := processName(host, id)
		if got != want+"."+id || ValidProcess(got) != got {
			t.Errorf("%q: got %q, read as %q, want %q", host, got, ValidProcess(got), want)
		}
	}
}
