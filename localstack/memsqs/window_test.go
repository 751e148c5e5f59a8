package memsqs

import (
	"testing"
	"time"
)

func TestWindowForgetsByTheLastPut(t *testing.T) {
	t.Parallel()
	var w intervalMap[string, int]
	start := time.Unix(0, 0)
	w.put("a", 1, start)
	w.put("b", 1, start)
	w.drop("a")
	if _, ok := w.get("a"); ok {
		t.Error("a dropped key is remembered")
	}
	w.put("a", 2, start.Add(time.Minute))
	w.expire(start.Add(dedupInterval))
	if _, ok := w.get("b"); ok {
		t.Error("b is remembered after five minutes")
	}
	if v, ok := w.get("a"); !ok || v != 2 {
		t.Errorf("got %d, %v four minutes after the second put, want 2", v, ok)
	}
	w.expire(start.Add(time.Minute + dedupInterval))
	if len(w.values) != 0 || len(w.order) != 0 {
		t.Errorf("remembers %v %v, want nothing", w.values, w.order)
	}
}
