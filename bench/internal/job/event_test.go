package job

import (
	"slices"
	"testing"
)

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
	for _, c := range []struct{ events, groups int }{{5000, 320}, {35_000, 320}, {3200, 320}, {100, 320}, {7, 1}, {0, 320}} {
		backlog := Backlog(c.events, c.groups)
		if len(backlog) != c.events {
			t.Fatalf("%d events, want %d", len(backlog), c.events)
		}
		sent := make([]int, c.groups)
		for i, e := range backlog {
			if e.N != i {
				t.Fatalf("event %d is at position %d: the backlog must be in the order of the numbers", e.N, i)
			}
			sent[e.Group]++
			// Two bursts: one group has had its burst of a round, another has not.
			if i%1000 == 0 && slices.Max(sent)-slices.Min(sent) > 8 {
				t.Errorf("of %d events the first %d have from %d to %d of a group, want at most 8 between them", c.events, i+1, slices.Min(sent), slices.Max(sent))
			}
		}
		if least, most := slices.Min(sent), slices.Max(sent); most-least > 1 {
			t.Errorf("%d events in %d groups: the groups have from %d to %d, want the same number or one more", c.events, c.groups, least, most)
		}
		if !slices.Equal(backlog, Backlog(c.events, c.groups)) {
			t.Errorf("%d events in %d groups: the second backlog differs from the first", c.events, c.groups)
		}
	}
}

// Bursts of one to four, and groups in no fixed order.
func TestBacklogIsMixed(t *testing.T) {
	t.Parallel()
	bursts := map[int]int{} // by length
	length, following := 1, 0
	backlog := Backlog(35_000, 320)
	for i, e := range backlog[1:] {
		before := backlog[i]
		if e.Group == before.Group {
			length++
			continue
		}
		bursts[length]++
		length = 1
		if e.Group == before.Group+1 {
			following++
		}
	}
	for n := 1; n <= 4; n++ {
		if bursts[n] < 3000 {
			t.Errorf("%d bursts of %d events, want about 3,500: %v", bursts[n], n, bursts)
		}
	}
	if following > 500 {
		t.Errorf("%d bursts follow one of the group before: the order is not mixed", following)
	}
}
