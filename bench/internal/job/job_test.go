package job

import "testing"

func TestBits(t *testing.T) {
	t.Parallel()
	b := NewBits(10)
	b.Add(9)
	if !b.Has(9) || b.Has(8) || b.Has(100) {
		t.Errorf("got %v %v %v, want only 9", b.Has(9), b.Has(8), b.Has(100))
	}
}
