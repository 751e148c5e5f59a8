package scenario

import "testing"

// Count returns how many messages a contestant gets.
var Count = (*Bench).count

func TestFind(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"worker": 1, "fifo": 3, "fifo/0.1": 1, "lambda": 3, "bodies": 2, "stop": 2, "nonsense": 0} {
		if got := len(Find(name)); got != want {
			t.Errorf("%s: %d scenarios, want %d", name, got, want)
		}
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	if n := len(failures(0).Rules); n != 0 {
		t.Errorf("%d rules without failures, want none", n)
	}
	if n := len(failures(0.01).Rules); n != 11 {
		t.Errorf("%d rules, want one for lost replies and one for each entry of a batch", n)
	}
}
