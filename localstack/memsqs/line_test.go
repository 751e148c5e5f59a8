package memsqs

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A line gives up its items in order, whatever was pushed and removed in between.
func TestLine(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := line[*heapItem]{heap: heap[*heapItem]{
			less:  func(a, b *heapItem) bool { return a.key < b.key },
			place: func(i *heapItem) *int { return &i.place },
		}}
		var in []*heapItem
		next := 0
		push := func(key int) {
			i := &heapItem{key: key}
			in = append(in, i)
			l.push(i)
		}
		remove := func(n int) {
			l.remove(in[n])
			l.remove(in[n]) // not there any more
			in = slices.Delete(in, n, n+1)
		}
		t.Repeat(map[string]func(*rapid.T){
			"push many in order": func(t *rapid.T) {
				for range rapid.IntRange(1, 100).Draw(t, "how many") {
					next++
					push(next)
				}
			},
			"push any": func(t *rapid.T) { push(rapid.IntRange(0, next+1).Draw(t, "key")) },
			"remove": func(t *rapid.T) {
				if len(in) == 0 {
					t.Skip("empty")
				}
				remove(rapid.IntRange(0, len(in)-1).Draw(t, "which"))
			},
			"remove all but the first": func(t *rapid.T) {
				for len(in) > 1 {
					remove(len(in) / 2)
				}
			},
			"": func(t *rapid.T) {
				if l.len() != len(in) {
					t.Fatalf("%d items, want %d", l.len(), len(in))
				}
				for _, i := range in {
					if !l.has(i) {
						t.Fatalf("item %d is not in the line", i.key)
					}
				}
				if len(in) == 0 {
					return
				}
				least := slices.MinFunc(in, func(a, b *heapItem) int { return a.key - b.key })
				if got := l.top(); got.key != least.key {
					t.Fatalf("top is %d, want %d", got.key, least.key)
				}
				if l.gaps > 64 && l.gaps > len(l.slots)/2 {
					t.Fatalf("%d gaps in %d slots", l.gaps, len(l.slots))
				}
			},
		})
	})
}
