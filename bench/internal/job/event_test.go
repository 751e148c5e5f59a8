package job

import "testing"

func TestNumberOfBody(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 64, 256, 64 << 10} {
		for _, n := range []int{0, 7, 999_999} {
			body := Body(n, size)
			if got := Number(body); got != n {
				t.Errorf("body of %d: got %d", n, got)
			}
			if want := max(size, SmallestBody); len(body) != want {
				t.Errorf("body of %d bytes, want %d", len(body), want)
			}
		}
	}
	for _, body := range []string{"", "hello", `{"id":"00x0042","pad":""}`} {
		if got := Number(body); got != -1 {
			t.Errorf("%q: got %d, want -1", body, got)
		}
	}
}

func TestBacklog(t *testing.T) {
	t.Parallel()
	events := Backlog(5000, 320)
	if len(events) != 5000 {
		t.Fatalf("%d events, want 5000", len(events))
	}
	groups := map[int]int{}
	for i, e := range events {
		if e.N != i {
			t.Fatalf("event %d is at %d: the backlog is the order of the numbers", e.N, i)
		}
		groups[e.Group]++
	}
	if len(groups) < 300 {
		t.Errorf("%d groups of 320 have events", len(groups))
	}
}

func TestBits(t *testing.T) {
	t.Parallel()
	b := NewBits(10)
	b.Add(9)
	if !b.Has(9) || b.Has(8) || b.Has(100) {
		t.Errorf("got %v %v %v, want 9 alone", b.Has(9), b.Has(8), b.Has(100))
	}
}
