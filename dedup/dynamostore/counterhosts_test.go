package dynamostore

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/counting"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/limit"
)

// use is a token that a host was granted: its true time, and when its call was sent.
type use struct {
	host     int
	at, sent time.Time
}

// from is when the token could be used.
func (u use) from() time.Time {
	if u.sent.After(u.at) {
		return u.sent
	}
	return u.at
}

// tooMany returns an error if there are more than T/step + burst tokens in a time T, or two less than a step apart.
func tooMany(uses []use, step time.Duration, burst int) error {
	slices.SortFunc(uses, func(a, b use) int { return a.at.Compare(b.at) })
	for i := 1; i < len(uses); i++ {
		if d := uses[i].at.Sub(uses[i-1].at); d < step {
			return fmt.Errorf("tokens %d and %d are %s apart, want a step of %s", i-1, i, d, step)
		}
	}
	slices.SortFunc(uses, func(a, b use) int { return a.from().Compare(b.from()) })
	var empty time.Time // when a bucket of burst tokens, which loses one in each step, is empty
	for i, u := range uses {
		if u.from().After(empty) {
			empty = u.from()
		}
		if empty = empty.Add(step); empty.Sub(u.from()) > time.Duration(burst)*step {
			return fmt.Errorf("token %d comes %s too soon for a burst of %d", i, empty.Sub(u.from())-time.Duration(burst)*step, burst)
		}
	}
	return nil
}

// Hosts whose clocks are up to ten minutes apart, jump and stand still take all tokens of a schedule together, none of
// them twice or too soon, and each host its share.
func TestCounterHostsApart(t *testing.T) {
	for _, c := range []struct {
		name string
		rate counting.Take
		rest time.Duration // between two takes
	}{
		{"10 a second", counting.Take{N: 3, Step: 100 * time.Millisecond, Burst: 10, Ahead: time.Second}, 0},
		{"100 a second", counting.Take{N: 25, Step: 10 * time.Millisecond, Burst: 100, Ahead: time.Second}, 0},
		{"one in 2 s", counting.Take{N: 1, Step: 2 * time.Second, Burst: 1}, 0},
		{"bursts after a rest", counting.Take{N: 100, Step: 10 * time.Millisecond, Burst: 50}, 3 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			onBed(t, func(t *testing.T, b *bed) { countApart(t, b, c.rate, c.rest) })
		})
	}
}

func countApart(t *testing.T, b *bed, rate counting.Take, rest time.Duration) {
	const d = 2 * time.Minute
	skews := []time.Duration{-5 * time.Minute, -7 * time.Second, 0, 7 * time.Second, 5 * time.Minute}
	rate.Key, rate.Reach = "limits#apart", time.Minute
	var mu sync.Mutex
	var uses []use
	var wg sync.WaitGroup
	start := time.Now()
	for host, skew := range skews {
		r := rand.New(rand.NewPCG(1, uint64(host)))
		s := must.Get(New(b.client(transport(func(req *http.Request) (*http.Response, error) {
			time.Sleep(time.Duration(r.IntN(30)) * time.Millisecond)
			before, after := 0*time.Second, 0*time.Second
			if host == 3 && r.IntN(15) == 0 { // it is frozen with a request under way, which arrives late, or its answer does
				before = time.Duration(r.IntN(2)) * 3 * time.Second
				after = 3*time.Second - before
			}
			time.Sleep(before)
			resp, err := b.srv.RoundTrip(req)
			time.Sleep(after)
			time.Sleep(time.Duration(r.IntN(30)) * time.Millisecond)
			return resp, err
		})), testTable, off(skew)))(t)
		look := s.clock.look
		s.clock.look = func() moment {
			m, passed := look(), time.Since(start)
			switch {
			case host == 0 && passed > 20*time.Second: // its wall clock is set
				m.host, m.wall = m.host.Add(time.Hour), m.wall+time.Hour
			case host == 1 && passed > 40*time.Second:
				m.host, m.wall = m.host.Add(-time.Hour), m.wall-time.Hour
			case host == 2 && passed > 60*time.Second: // it was suspended
				m.mono -= 10 * time.Second
			}
			return m
		}
		count := NewCounter(s)
		wg.Go(func() {
			for time.Since(start) < d {
				sent := time.Now()
				g, err := count.Take(t.Context(), rate)
				if err != nil {
					t.Error(err)
					return
				}
				now := time.Now()
				early := now.Sub(time.UnixMicro(s.clock.earliest()))
				if early < 0 {
					t.Errorf("host %d: its tokens are %s too soon", host, -early)
				}
				mu.Lock()
				for i := range g.N {
					uses = append(uses, use{host, now.Add(g.From + time.Duration(i)*g.Step - early), sent})
				}
				mu.Unlock()
				// Until the last token is due, as a process that has much to do.
				time.Sleep(rest + max(time.Millisecond, g.From+time.Duration(g.N-1)*g.Step, g.After))
			}
		})
	}
	wg.Wait()
	must.Do(t, tooMany(uses, rate.Step, rate.Burst))
	share := make([]int, len(skews))
	for _, u := range uses {
		share[u.host]++
	}
	t.Logf("%d tokens in %s, by host %d, %g writes", len(uses), d, share, b.units(0))
	if rest > 0 {
		if n := int(d/(rest+time.Second)) * rate.Burst; len(uses) < n {
			t.Errorf("%d tokens in %s, want a burst after each rest, %d", len(uses), d, n)
		}
		return
	}
	if n := int(d / rate.Step); len(uses) < n*97/100 {
		t.Errorf("%d tokens in %s, want nearly %d", len(uses), d, n)
	}
	for host, n := range share {
		if n < len(uses)/len(skews)/2 {
			t.Errorf("host %d got %d of %d tokens, want about a fifth", host, n, len(uses))
		}
	}
}

// A host whose clock was set asks for the time before it takes: a take in a wrong hour would let all hosts wait for it.
func TestCounterAfterAJump(t *testing.T) {
	t.Parallel()
	for _, jump := range []time.Duration{-time.Hour, time.Hour} {
		runStore(t, jump.String(), func(t *testing.T, b *bed, s *Store) {
			rate := counting.Take{Key: "limits#jump", N: 1, Step: time.Second, Burst: 1}
			look, c, other := s.clock.look, NewCounter(s), NewCounter(b.store())
			must.Get(c.Take(t.Context(), rate))(t)
			time.Sleep(10 * time.Second)
			s.clock.look = func() moment {
				m := look()
				return moment{m.host.Add(jump), m.wall + jump, m.mono}
			}
			for _, c := range []limit.Counter{c, other} {
				if g, err := c.Take(t.Context(), rate); err != nil || g.N != 1 || g.From > 2*time.Second {
					t.Errorf("Take after a jump: got %+v and error %v, want a token within 2 s", g, err)
				}
				time.Sleep(2 * time.Second)
			}
		})
	}
}

// The item of a key outlives its tokens: TTL doesn't end a pause.
func TestCounterRetention(t *testing.T) {
	onStore(t, func(t *testing.T, b *bed, s *Store) {
		c, other := NewCounter(s), NewCounter(b.store())
		rate := counting.Take{Key: "limits#pause", N: 1, Step: time.Second, Burst: 1}
		few, pause := rate, rate
		few.N, few.Ahead, pause.NotBefore = 60, time.Minute, 10*24*time.Hour
		must.Get(other.Take(t.Context(), few))(t)
		must.Get(c.Take(t.Context(), pause))(t)
		must.Get(other.Line(t.Context(), rate.Key, 1, time.Second))(t) // it doesn't know of the pause
		for day := 1; day < 10; day++ {
			time.Sleep(24 * time.Hour)
			b.srv.SweepTTL()
			if g, err := other.Take(t.Context(), rate); err != nil || g.N != 0 {
				t.Fatalf("Take on day %d of a pause of 10: got %+v and error %v, want no token", day, g, err)
			}
		}
		time.Sleep(3 * 24 * time.Hour)
		if b.srv.SweepTTL(); len(b.srv.Items(testTable)) > 0 {
			t.Errorf("after the retention of a key: got %v, want no item", b.item(testTable))
		}
	})
}

// The item of a key outlives its line: those who come later get places behind it.
func TestCounterRetentionOfALine(t *testing.T) {
	onStore(t, func(t *testing.T, b *bed, s *Store) {
		c, key, day := NewCounter(s), "limits#line", 24*time.Hour
		must.Get(c.Line(t.Context(), key, 10, day))(t)
		for _, left := range []int{10, 6, 2} {
			b.srv.SweepTTL()
			if d := must.Get(c.Line(t.Context(), key, 1, time.Second))(t); d < time.Duration(left)*day-time.Minute {
				t.Fatalf("a place in %s, want it behind a line of %d days", d, left)
			}
			time.Sleep(4 * day)
		}
	})
}
