package memsqs

import "container/heap"

// indexedHeap is a heap whose items know their index in it, so that any item can be removed in O(log n).
type indexedHeap[T any] struct {
	items    []T
	less     func(a, b T) bool
	position func(T) *int // the item's index + 1; 0: not in the heap
}

func (h *indexedHeap[T]) has(x T) bool { return *h.position(x) != 0 }

// top returns the least item; the heap must not be empty.
func (h *indexedHeap[T]) top() T { return h.items[0] }

func (h *indexedHeap[T]) push(x T) { heap.Push(h, x) }

// remove removes x. If x is not in the heap, it does nothing.
func (h *indexedHeap[T]) remove(x T) {
	if h.has(x) {
		heap.Remove(h, *h.position(x)-1)
	}
}

// The methods of heap.Interface.

func (h *indexedHeap[T]) Len() int           { return len(h.items) }
func (h *indexedHeap[T]) Less(i, j int) bool { return h.less(h.items[i], h.items[j]) }

func (h *indexedHeap[T]) Swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	*h.position(h.items[i]), *h.position(h.items[j]) = i+1, j+1
}

func (h *indexedHeap[T]) Push(x any) {
	h.items = append(h.items, x.(T))
	*h.position(x.(T)) = len(h.items)
}

func (h *indexedHeap[T]) Pop() any {
	last := len(h.items) - 1
	x := h.items[last]
	clear(h.items[last:])
	h.items = h.items[:last]
	*h.position(x) = 0
	return x
}
