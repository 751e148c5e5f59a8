package memsqs

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

type heapItem struct{ key, position int }

// The heap is valid after any sequence of push and remove.
func TestHeap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := indexedHeap[*heapItem]{
			less:     func(a, b *heapItem) bool { return a.key < b.key },
			position: func(i *heapItem) *int { return &i.position },
		}
		var in []*heapItem
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				i := &heapItem{key: rapid.IntRange(0, 50).Draw(t, "key")}
				in = append(in, i)
				h.push(i)
			},
			"remove": func(t *rapid.T) {
				if len(in) == 0 {
					t.Skip("empty")
				}
				n := rapid.IntRange(0, len(in)-1).Draw(t, "which")
				h.remove(in[n])
				h.remove(in[n]) // not in the heap any more
				in = slices.Delete(in, n, n+1)
			},
			"": func(t *rapid.T) {
				if h.Len() != len(in) {
					t.Fatalf("%d items, want %d", h.Len(), len(in))
				}
				for n, i := range h.items {
					if !h.has(i) || i.position != n+1 {
						t.Fatalf("item at %d thinks it is at %d", n, i.position-1)
					}
					if parent := (n - 1) / 2; n > 0 && h.items[parent].key > i.key {
						t.Fatalf("item %d under %d", i.key, h.items[parent].key)
					}
				}
			},
		})
	})
}
