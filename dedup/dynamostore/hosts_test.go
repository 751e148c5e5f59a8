package dynamostore

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/granted"
)

// Two hosts with clocks up to a minute apart, in every combination of known and unknown clocks.
func TestHostsApart(t *testing.T) {
	t.Parallel()
	for _, holder := range []time.Duration{-30 * time.Second, 0, 30 * time.Second} {
		for _, taker := range []time.Duration{-30 * time.Second, 0, 30 * time.Second} {
			for _, first := range []bool{true, false} {
				name := "holder " + holder.String() + " taker " + taker.String()
				if first {
					name += ", before any date"
				}
				t.Run(name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { apartCase(newBed(t), holder, taker, first) })
				})
			}
		}
	}
}

func apartCase(b *bed, holder, taker time.Duration, first bool) {
	const length = 40 * time.Second
	h, k := b.store(off(holder)), b.store(off(taker))
	if !first {
		for _, s := range []*Store{h, k} {
			if _, err := s.Inspect(b.Context(), testKey); !errors.Is(err, dedup.ErrNotFound) {
				b.Fatal(err)
			}
		}
	}
	c := claim("holder")
	c.Lease = length
	start := time.Now()
	l := b.acquire(h, c)
	// By the holder's own clock.
	left := l.Until.Sub(h.clock.look().host)
	if left < length/2 || left > length {
		b.Errorf("left of a lease of %s by the holder's clock: %s", length, left)
	}
	for elapsed := time.Duration(0); elapsed < left; elapsed += 3 * time.Second {
		g, err := k.Acquire(b.Context(), claim("taker"))
		if g.Verdict != dedup.VerdictInProgress {
			b.Fatalf("Acquire %s after the holder's: got %+v and error %v, want in progress", time.Since(start), g, err)
		}
		if wait := g.Until.Sub(k.clock.look().host); wait < left-elapsed {
			b.Errorf("in progress for %s by the taker's clock, but the holder has %s left", wait, left-elapsed)
		}
		time.Sleep(3 * time.Second)
	}
	// A holder that was ahead before its first answer has asked for a lease that is longer by as much.
	time.Sleep(max(0, holder) + 8*time.Second)
	if got := b.acquire(k, claim("taker")); !got.Takeover || got.Fence <= l.Fence {
		b.Errorf("lease after the holder vanished: got %+v, want a Takeover and a fence over %d", got, l.Fence)
	}
	if err := h.Complete(b.Context(), l, dedup.Result{}); !errors.Is(err, sqsonce.ErrLeaseLost) {
		b.Errorf("Complete by the first holder: got %v, want ErrLeaseLost", err)
	}
}

// A host's wall clock is set, or its monotonic clock jumps, after its store has read a Date. The taker does not take over a
// live lease, and the holder does not get one that is over.
func TestHostJumps(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		wall, mono time.Duration
	}{
		{"wall clock set forward", time.Hour, 0},
		{"wall clock set back", -time.Hour, 0},
		{"monotonic clock jumps", 0, time.Hour},
	} {
		runStore(t, c.name, func(t *testing.T, b *bed, s *Store) {
			look := s.clock.look
			if _, err := s.Inspect(t.Context(), testKey); !errors.Is(err, dedup.ErrNotFound) {
				t.Fatal(err)
			}
			b.acquire(b.store(), claim("holder"))
			s.clock.look = func() moment {
				m := look()
				return moment{host: m.host.Add(c.wall), wall: m.wall + c.wall, mono: m.mono + c.mono}
			}
			if _, err := granted.Lease(s.Acquire(t.Context(), claim("taker"))); !errors.Is(err, sqsonce.ErrInProgress) {
				t.Errorf("Acquire during the holder's lease: got error %v, want in progress", err)
			}
			time.Sleep(lease + 5*time.Second)
			l := b.acquire(s, claim("taker"))
			if left := l.Until.Sub(s.clock.look().host); left < lease/2 || left > lease {
				t.Errorf("left of a lease of %s by the host's clock: %s", lease, left)
			}
		})
	}
}

// The retention of a completed event ends by the server's clock, for a host that is hours ahead and for one that is behind.
func TestRetentionByTheServersClock(t *testing.T) {
	t.Parallel()
	for _, skew := range []time.Duration{-3 * time.Hour, 3 * time.Hour} {
		runBed(t, skew.String(), func(t *testing.T, b *bed) {
			c := claim("a")
			c.Retention = 2 * time.Hour
			first := b.store()
			b.complete(first, b.acquire(first, c))
			if g, err := b.store(off(skew)).Acquire(t.Context(), claim("b")); g.Verdict != dedup.VerdictCompleted {
				t.Errorf("Acquire within the retention: got %+v and error %v, want completed", g, err)
			}
			time.Sleep(c.Retention + 5*time.Second)
			b.acquire(b.store(off(skew)), claim("b"))
		})
	}
}

func isCompleted(err error) bool { return errors.Is(err, granted.ErrCompleted) }
