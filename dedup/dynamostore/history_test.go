package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// Five hosts with different clocks compete for one event over a bad network. They crash, fail, renew, return after their
// lease and succeed at random. No two have a live lease, fences grow, and a completed record stays completed.
func TestHistories(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBed(t)
				b.srv.Set(fault.Plan{Seed: seed, Rules: []fault.Rule{
					{Prob: 0.10, Do: fault.LoseReply},
					{Prob: 0.10, Do: fault.Error, After: seed%2 == 0},
					{Prob: 0.10, Do: fault.Error, Code: "TransactionConflictException"},
					{Prob: 0.10, Do: fault.Delay, Delay: 3 * time.Second},
					{Prob: 0.10, Do: fault.Replay, Delay: 17 * time.Second},
					{Prob: 0.10, Do: fault.Replay, Delay: 900 * time.Millisecond},
				}})
				h := &history{T: t}
				var wg sync.WaitGroup
				for i, skew := range []time.Duration{-30 * time.Second, -time.Second, 0, 2 * time.Second, 30 * time.Second} {
					s, rng := b.store(off(skew)), rand.New(rand.NewPCG(seed, uint64(i)))
					wg.Go(func() { h.host(s, rng, i, skew) })
				}
				wg.Wait()
				h.check(b)
			})
		})
	}
}

// span is one owner's lease in the server's time.
type span struct {
	owner     string
	fence     int64
	from      time.Time
	until     time.Time // as the holder knows it; the time of the call where it has completed or released
	completed bool
}

type history struct {
	*testing.T
	mu    sync.Mutex
	spans []*span
}

func (h *history) host(s *Store, rng *rand.Rand, host int, skew time.Duration) {
	for n := range 8 {
		time.Sleep(time.Duration(rng.IntN(5000)) * time.Millisecond)
		c := claim(fmt.Sprintf("host %d, attempt %d", host, n))
		c.Lease = 10 * time.Second
		l, err := s.Acquire(context.Background(), c)
		if err != nil {
			var done *dedup.CompletedError
			if h.acquired(nil); errors.As(err, &done) && !h.completed() {
				h.Errorf("%s got the answer that the event was completed, and nobody had completed it", c.Owner)
			}
			continue
		}
		k := &span{owner: l.Owner, fence: l.Fence, from: time.Now(), until: l.Until.Add(-skew)}
		h.acquired(k)
		for range rng.IntN(3) {
			time.Sleep(time.Duration(rng.IntN(4000)) * time.Millisecond)
			if r, err := s.Renew(context.Background(), l, c.Lease); err == nil {
				l = r
				h.set(k, r.Until.Add(-skew))
			}
		}
		switch rng.IntN(12) {
		case 0, 1, 2: // crashes: the lease ends
		case 3, 4: // returns after its lease
			time.Sleep(15 * time.Second)
			_ = s.Release(context.Background(), l, errors.New("late"))
		case 5: // succeeds after its lease, which counts where nobody took over
			time.Sleep(15 * time.Second)
			h.attemptComplete(k)
			_ = s.Complete(context.Background(), l, dedup.Result{})
		case 6:
			h.attemptComplete(k)
			if err := s.Complete(context.Background(), l, dedup.Result{}); err == nil {
				h.set(k, time.Now())
			}
		default:
			h.set(k, time.Now())
			_ = s.Release(context.Background(), l, errors.New("failed"))
		}
	}
}

// acquired checks a new lease against all others. It may overlap only those that have ended.
func (h *history) acquired(k *span) {
	if k == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range h.spans {
		if o.until.After(k.from) && k.until.After(k.from) {
			h.Errorf("%s acquired at %s, and %s has the lease until %s", k.owner, k.from.Format("05.000"), o.owner, o.until.Format("05.000"))
		}
	}
	h.spans = append(h.spans, k)
}

func (h *history) set(k *span, until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k.until = until
}

// attemptComplete is called before Complete, whose effect may be seen before its answer.
func (h *history) attemptComplete(k *span) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k.completed = true
}

func (h *history) completed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, k := range h.spans {
		if k.completed {
			return true
		}
	}
	return false
}

func (h *history) check(b *bed) {
	seen := map[int64]string{}
	var last int64
	for _, k := range h.spans { // in the order of their acquires
		if other := seen[k.fence]; other != "" {
			h.Errorf("%s and %s have one fence, %d", other, k.owner, k.fence)
		}
		if k.fence < last {
			h.Errorf("the fence of %s, %d, is behind an earlier one, %d", k.owner, k.fence, last)
		}
		seen[k.fence], last = k.owner, k.fence
	}
	if len(h.spans) == 0 {
		h.Error("no acquire was granted")
	}
	if item := b.item(testTable); item[attrStatus] == completed {
		if last := h.spans[len(h.spans)-1]; last.owner != item[attrOwner] {
			h.Errorf("completed by %s, but %s acquired it later", item[attrOwner], last.owner)
		} else if !last.completed {
			h.Errorf("%s owns the completed record and never completed it", last.owner)
		}
	}
}
