package fifo

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// The timer of a backoff may fire while the head is being removed. It then waits for the lock, and must not make the group,
// which has a new head by then, ready a second time.
func TestBackoffOfARemovedHead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &Publisher{groups: newGroups(true)} // dispatch sends nothing
		l := newLane(t.Context(), t.Context(), 0)
		gs := &p.groups
		first, second := &entry{lane: l}, &entry{lane: l}
		p.mu.Lock()
		gs.add(first, "g")
		gs.add(second, "g")
		gs.take()
		gs.retry(first, time.Second, p)
		time.Sleep(time.Second) // the timer has fired and waits for the lock, or is about to
		gs.remove(first)
		p.mu.Unlock()
		synctest.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		if batch := gs.take(); gs.ready.n != 0 || len(batch) != 1 || batch[0] != second {
			t.Errorf("%d groups ready, want the group once, with its second entry", len(batch))
		}
	})
}

// A head that is ready stays so in the lane that it is handed to; those of a lane that has ended are not sent.
func TestHand(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	from, to := newLane(ended, t.Context(), 0), newLane(t.Context(), t.Context(), 0)
	gs := newGroups(true)
	handed, left := new(entry), new(entry)
	for id, e := range map[string]*entry{"g": handed, "h": left} {
		e.joinLane(from)
		gs.add(e, id)
	}
	cancel()
	gs.hand(handed, to)
	if gs.ready.n != 2 || handed.lane != to || len(from.entries) != 1 || len(to.entries) != 1 {
		t.Errorf("%d groups ready, %d entries in the lane, %d in the other; want 2, 1, 1", gs.ready.n, len(from.entries), len(to.entries))
	}
	var batch []*entry
	for gs.ready.n > 0 {
		batch = append(batch, gs.take()...)
	}
	if len(batch) != 1 || batch[0] != handed {
		t.Errorf("%d entries to send, want the one that was handed on", len(batch))
	}
}

func TestRetryDelayIsBounded(t *testing.T) {
	t.Parallel()
	for n, most := range map[int]time.Duration{1: 100 * time.Millisecond, 2: 200 * time.Millisecond, 6: 3200 * time.Millisecond,
		7: 5 * time.Second, 1000: 5 * time.Second} {
		longest := time.Duration(0)
		for range 2000 {
			d := retryDelay(n)
			if d < 0 || d > most {
				t.Fatalf("retryDelay(%d) = %v, want 0 to %v", n, d, most)
			}
			longest = max(longest, d)
		}
		if longest < most*9/10 {
			t.Errorf("retryDelay(%d) was at most %v in 2000 draws, want up to %v", n, longest, most)
		}
	}
}
