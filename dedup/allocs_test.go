//go:build !race

package dedup

import "testing"

// The name of the process costs each delivery one allocation.
func TestAllocationsOfAnOwner(t *testing.T) {
	newOwner() // the first one asks for the host's name
	if n := testing.AllocsPerRun(100, func() { _ = newOwner() }); n > 2 {
		t.Errorf("%v allocations, want at most 2", n)
	}
}
