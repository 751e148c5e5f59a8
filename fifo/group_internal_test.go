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
		l := &lane{ctx: t.Context()}
		gs := newGroups(true)
		first, second := &entry{lane: l}, &entry{lane: l}
		mu.Lock()
		gs.add(first, "g")
		gs.add(second, "g")
		l.next()
		gs.retry(first, time.Second, &mu, func() { t.Error("the timer of a removed head made something ready") })
		time.Sleep(time.Second) // the timer has fired and waits for the lock, or is about to
		gs.remove(first)
		mu.Unlock()
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if len(l.ready) != 1 || l.ready[0].head() != second {
			t.Errorf("%d groups ready, want the group once, with its second entry", len(l.ready))
		}
	})
}
