package memsqs

// line is a heap for items that mostly arrive in order, as messages do by age and by place. Those that do stand in slots,
// where every step is O(1) and touches one place in memory, however many stand behind; the others go to the heap.
type line[T comparable] struct {
	heap[T]
	slots []T // the zero value where an item was taken out; never at either end
	first int // number of slots[0], counted from the first slot there ever was
	gaps  int // zero values in slots
}

// An item's place is its index in the heap + 1, or -(its slot's number + 1).

func (l *line[T]) len() int { return l.heap.len() + len(l.slots) - l.gaps }

// top returns the least item; the line must not be empty.
func (l *line[T]) top() T {
	if len(l.slots) == 0 || l.heap.len() > 0 && l.less(l.heap.top(), l.slots[0]) {
		return l.heap.top()
	}
	return l.slots[0]
}

func (l *line[T]) push(x T) {
	if n := len(l.slots); n > 0 && l.less(x, l.slots[n-1]) {
		l.heap.push(x)
		return
	}
	*l.place(x) = -(l.first + len(l.slots) + 1)
	l.slots = append(l.slots, x)
}

// remove takes x out; without x in the line it does nothing.
func (l *line[T]) remove(x T) {
	p := l.place(x)
	if *p >= 0 {
		l.heap.remove(x)
		return
	}
	var none T
	l.slots[-*p-1-l.first] = none
	*p = 0
	l.gaps++
	for len(l.slots) > 0 && l.slots[0] == none {
		l.slots = l.slots[1:]
		l.first++
		l.gaps--
	}
	for n := len(l.slots); n > 0 && l.slots[n-1] == none; n = len(l.slots) {
		l.slots = l.slots[:n-1]
		l.gaps--
	}
	// An old item that stays would otherwise keep the slots of all that came and went behind it.
	if l.gaps > 64 && l.gaps > len(l.slots)/2 {
		l.close()
	}
}

// close moves the items together.
func (l *line[T]) close() {
	var none T
	n := 0
	for _, x := range l.slots {
		if x != none {
			l.slots[n] = x
			*l.place(x) = -(l.first + n + 1)
			n++
		}
	}
	clear(l.slots[n:])
	l.slots, l.gaps = l.slots[:n], 0
}
