package fifo

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// The timer of a backoff may fire while the head is being removed. It then waits for the lock, and must not make the group,
// which has a new head by then, ready a second time.
func TestBackoffOfARemovedHead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		l := newLane(t.Context(), t.Context(), 0)
		gs := newGroups(true)
		first, second := &entry{lane: l}, &entry{lane: l}
		mu.Lock()
		gs.add(first, "g")
		gs.add(second, "g")
		first.request = &request{entries: gs.ready.take()}
		gs.retry(first, time.Second, &mu, func() { t.Error("the timer of a removed head made something ready") })
		time.Sleep(time.Second) // the timer has fired and waits for the lock, or is about to
		gs.remove(first)
		mu.Unlock()
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if batch := gs.ready.take(); gs.ready.n != 0 || len(batch) != 1 || batch[0] != second {
			t.Errorf("%d groups ready, want the group once, with its second entry", len(batch))
		}
	})
}
