package memsqs

import (
	"cmp"
)

// heap is a binary heap whose items know their place in it, so that any item can be removed or moved in O(log n).
type heap[T any] struct {
	items []T
	less  func(a, b T) bool
	place func(T) *int // index + 1; 0: not in the heap
}

func (h *heap[T]) len() int { return len(h.items) }

func (h *heap[T]) has(x T) bool { return *h.place(x) != 0 }

// top returns the least item; the heap must not be empty.
func (h *heap[T]) top() T { return h.items[0] }

func (h *heap[T]) push(x T) {
	h.items = append(h.items, x)
	*h.place(x) = len(h.items)
	h.up(len(h.items) - 1)
}

// remove takes x out; without x in the heap it does nothing.
func (h *heap[T]) remove(x T) {
	i := *h.place(x) - 1
	if i < 0 {
		return
	}
	last := len(h.items) - 1
	h.swap(i, last)
	var none T
	h.items[last] = none
	h.items = h.items[:last]
	*h.place(x) = 0
	if i < last {
		h.down(h.up(i))
	}
}

func (h *heap[T]) up(i int) int {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.less(h.items[i], h.items[parent]) {
			break
		}
		h.swap(i, parent)
		i = parent
	}
	return i
}

func (h *heap[T]) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h.items) {
			return
		}
		if right := child + 1; right < len(h.items) && h.less(h.items[right], h.items[child]) {
			child = right
		}
		if !h.less(h.items[child], h.items[i]) {
			return
		}
		h.swap(i, child)
		i = child
	}
}

func (h *heap[T]) swap(i, j int) {
	if i == j {
		return
	}
	h.items[i], h.items[j] = h.items[j], h.items[i]
	*h.place(h.items[i]), *h.place(h.items[j]) = i+1, j+1
}

func byTime(a, b int64, tieA, tieB uint64) bool {
	return cmp.Or(cmp.Compare(a, b), cmp.Compare(tieA, tieB)) < 0
}
