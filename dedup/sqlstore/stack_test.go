package sqlstore

import "testing"

// On the heap the frame would make the stack no larger.
func TestGrowStack(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { growStack() }); n != 0 {
		t.Errorf("growStack: got %v allocations, want none", n)
	}
}
