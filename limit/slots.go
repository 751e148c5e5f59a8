package limit

import (
	"context"
	crand "crypto/rand"
	"encoding/hex"
	"errors"
	"github.com/sqsonce/sqsonce/internal/counting"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

const (
	lease = 30 * time.Second // of a slot
	// kept is how long a process keeps a slot between handlers while messages wait, idleKept without any.
	kept, idleKept = 30 * time.Second, 2 * time.Second
	// mostPoll is the longest time between two tries: an eighth of a handler's time.
	mostPoll = 15 * time.Second
	// leastLease is what must be left of a slot's lease for a handler to start.
	leastLease = 5 * time.Second
	// mostSlots is the most records of a key. Above it a record stands for several slots.
	mostSlots = 32
)

// slots is what this process has of a key's Concurrency in the Counter.
type slots struct {
	owned  []*slot
	asking bool
	tries  int // since a slot was free
	askAt  time.Time
}

// slot is a record of the Counter that this process owns.
type slot struct {
	index    int
	owner    string
	acquired time.Time
	proven   time.Time // the lease counts from here
	busy     int       // handlers, and reserved tickets
	idle     time.Time // since when it has none
	renewing bool
	renewAt  time.Time // not before
	lost     bool
	timer    timer
}

// records returns how many records a plan has.
func (p plan) records() int { return (p.slots + p.perRecord() - 1) / p.perRecord() }

func (p plan) perRecord() int { return max(1, (p.slots+mostSlots-1)/mostSlots) }

// room is how many handlers record i stands for.
func (p plan) room(i int) int { return min(p.perRecord(), p.slots-i*p.perRecord()) }

// slotFor returns a slot with room for another handler, or nil.
func (g *gate) slotFor(now time.Time) *slot {
	for _, s := range g.slots.owned {
		if s.busy < g.plan.room(s.index) && g.usable(s, now) {
			return s
		}
	}
	return nil
}

// usable reports whether a handler may start in a slot. While the Counter is down nobody can acquire it.
func (g *gate) usable(s *slot, now time.Time) bool {
	return !s.lost && (g.keeps() || now.Before(s.acquired.Add(kept)) && now.Before(s.proven.Add(lease-leastLease)))
}

// hasSlot reports whether a handler may start now. While the Counter is down each process has a fiftieth of the slots.
func (g *gate) hasSlot(now time.Time) bool {
	if g.rule.Counter == nil {
		return g.running < g.plan.slots
	}
	return g.slotFor(now) != nil || g.keeps() && g.running < g.plan.slots/shareLeast
}

// slotAt is at for a slot.
func (g *gate) slotAt(now time.Time) (at time.Time, known bool) {
	switch {
	case g.hasSlot(now):
		return now, true
	case g.rule.Counter == nil || g.slots.asking || len(g.free()) == 0:
		return time.Time{}, false
	}
	return g.out().notBefore(g.slots.askAt), true
}

// free returns the records that this process does not own.
func (g *gate) free() (indexes []int) {
	for i := range g.plan.records() {
		if !slices.ContainsFunc(g.slots.owned, func(s *slot) bool { return s.index == i }) {
			indexes = append(indexes, i)
		}
	}
	return indexes
}

func (g *gate) slotName(i int) string { return g.name() + "#" + strconv.Itoa(i) }

// askSlot tries to acquire a slot: all of them in random order at first, later one of eight of them.
func (g *gate) askSlot(now time.Time) {
	free := g.free()
	rand.Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] })
	if now.Sub(g.slots.askAt) > kept {
		g.slots.tries = 0
	}
	if g.slots.tries > 0 {
		free = free[:min(len(free), 1+g.plan.records()/8)]
	}
	g.slots.asking = true
	var got *slot
	g.call(now, func(ctx context.Context) error {
		for _, i := range free {
			s := &slot{index: i, owner: newOwner(), acquired: time.Now()}
			s.proven = s.acquired
			switch err := g.rule.Counter.Acquire(ctx, g.slotName(i), s.owner, lease); {
			case err == nil:
				got = s
				return nil
			case !errors.Is(err, counting.ErrTaken):
				g.release(s) // the answer may be what was lost
				return err
			}
		}
		return nil
	}, g.rule.asksSlots, func(now time.Time, err error) {
		q := &g.slots
		q.asking = false
		switch {
		case err != nil:
			return
		case got == nil:
			q.tries++
		case g.rule.l.closed:
			g.rule.l.calls.Go(func() { g.release(got) })
		default:
			got.idle = now
			q.owned = append(q.owned, got)
			g.tend(got, now)
		}
		if q.tries > 0 { // others want slots too, and those that have none go first
			wait := max(min(time.Duration(q.tries), 2)*time.Second, min(g.mean/8, mostPoll))
			wait += wait * 6 * time.Duration(len(q.owned)) / time.Duration(max(1, g.plan.records()))
			q.askAt = now.Add(wait*7/10 + rand.N(wait*6/10))
		}
	})
}

// tend renews a slot under a running handler, and releases one that is not needed.
func (g *gate) tend(s *slot, now time.Time) {
	var next time.Time
	end := s.acquired.Add(kept)
	switch i := slices.Index(g.slots.owned, s); {
	case i < 0: // Close has it released
		return
	case s.busy > 0:
		if next = s.proven.Add(lease / 3); next.Before(s.renewAt) {
			next = s.renewAt
		}
		if s.lost || s.renewing {
			next = time.Time{}
		} else if !next.After(now) {
			next = time.Time{}
			g.renew(s, now)
		}
	default:
		if g.line.n == 0 {
			end = sooner(end, s.idle.Add(g.idleKept()))
		}
		if g.keeps() && !s.lost {
			end = now.Add(idleKept)
		}
		if next = end; s.lost || !end.After(now) {
			next = time.Time{}
			g.slots.owned = slices.Delete(g.slots.owned, i, i+1)
			if g.line.n > 0 {
				// Others may want it: they try one slot each 2 s, and so does this process from now on.
				g.slots.tries, g.slots.askAt = 1, now.Add(time.Second+rand.N(time.Second/2))
			}
			if !s.lost {
				g.rule.l.calls.Go(func() { g.release(s) })
			}
		}
	}
	s.timer.set(g.rule.l, next, now, func(now time.Time) {
		g.tend(s, now)
		g.advance(now)
	})
}

// idleKept is how long a slot stays without messages. A host that can't hold may be a function, which freezes.
func (g *gate) idleKept() time.Duration {
	if g.follows {
		return idleKept
	}
	return 0
}

// renew extends a slot's lease. A handler whose slot is lost runs on: a limit is no lock.
func (g *gate) renew(s *slot, now time.Time) {
	s.renewing = true
	lost := false
	g.call(now, func(ctx context.Context) error {
		err := g.rule.Counter.Renew(ctx, g.slotName(s.index), s.owner, lease)
		if lost = errors.Is(err, counting.ErrLeaseLost); lost {
			return nil
		}
		return err
	}, g.rule.asksSlots, func(then time.Time, err error) {
		s.renewing, s.lost = false, lost
		if err == nil && !lost {
			s.proven = now
		}
		s.renewAt = then.Add(idleKept)
		g.tend(s, then)
	})
}

// release frees a slot, without the Limiter's lock. Where that fails the slot is free at the end of its lease.
func (g *gate) release(s *slot) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(g.rule.l.callCtx), callTimeout)
	defer cancel()
	_ = contain(func() error { return g.rule.Counter.Release(ctx, g.slotName(s.index), s.owner) })
}

func newOwner() string {
	var b [16]byte
	crand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
