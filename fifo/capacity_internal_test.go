package fifo

import "testing"

func granted(w *waiter) bool {
	select {
	case <-w.granted:
		return true
	default:
		return false
	}
}

// Waiters get capacity in the order they came, and no capacity is lost when one of them stops waiting.
func TestCapacityIsGrantedInOrder(t *testing.T) {
	t.Parallel()
	c := capacity{messages: 3, bytes: 100}
	if c.reserve(60) != nil || c.reserve(30) != nil {
		t.Fatal("there is capacity, and reserve returned a waiter")
	}
	large, small, last := c.reserve(50), c.reserve(10), c.reserve(10)
	if large == nil || small == nil || last == nil {
		t.Fatal("a small message overtakes a large one that waits")
	}
	c.cancel(large)
	if !granted(small) || granted(last) {
		t.Errorf("after the large one is cancelled: granted %t, %t; want the next, and not the third of three messages", granted(small), granted(last))
	}
	c.cancel(small) // it got its capacity meanwhile
	if !granted(last) {
		t.Error("the capacity of a cancelled waiter is lost")
	}
	for _, size := range []int64{60, 30, 10} {
		c.free(size)
	}
	if c.messages != 3 || c.bytes != 100 || c.waiters.Len() != 0 {
		t.Errorf("in the end: %+v, want all of it", c)
	}
}
