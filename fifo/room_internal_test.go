package fifo

import "testing"

func given(w *waiter) bool {
	select {
	case <-w.given:
		return true
	default:
		return false
	}
}

// Room is given in the order of those that wait, and nothing of it is lost when one of them leaves.
func TestRoomIsGivenInOrder(t *testing.T) {
	t.Parallel()
	r := room{messages: 3, bytes: 100}
	if r.take(60) != nil || r.take(30) != nil {
		t.Fatal("there is room, and it is waited for")
	}
	large, small, last := r.take(50), r.take(10), r.take(10)
	if large == nil || small == nil || last == nil {
		t.Fatal("a small message overtakes a large one that waits")
	}
	r.leave(large)
	if !given(small) || given(last) {
		t.Errorf("after the large one has left: given %t, %t; want the next, and not the third of three messages", given(small), given(last))
	}
	r.leave(small) // it was given room meanwhile
	if !given(last) {
		t.Error("room that was given to one that left is lost")
	}
	for _, size := range []int64{60, 30, 10} {
		r.give(size)
	}
	if r.messages != 3 || r.bytes != 100 || len(r.waiting) != 0 {
		t.Errorf("in the end: %+v, want all of it", r)
	}
}
