package limit

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// Messages that get their places in one call of the Counter get places of their own, as far apart as their costs, at most the burst.
func TestPlacesOfOneCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounter()
		c.delay = 100 * time.Millisecond
		l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: Plan{Rate: Rate{N: 1, Burst: 2}}, Cost: onlyCost(3), Counter: c}})
		try(t, l, message("first", 1))
		var all sync.WaitGroup
		places := make([]time.Time, 10)
		for i := range places {
			all.Go(func() {
				_, d := try(t, l, message("a", 1))
				places[i] = time.Now().Add(d)
			})
		}
		all.Wait()
		slices.SortFunc(places, time.Time.Compare)
		for i := 1; i < len(places); i++ {
			if d := places[i].Sub(places[i-1]) - 2100*time.Millisecond; d.Abs() > time.Second {
				t.Errorf("place %d is %s after the one before, want about 2.1 s", i, places[i].Sub(places[i-1]))
			}
		}
		if n := c.count(&c.lines); n > 5 {
			t.Errorf("%d calls for 10 places, want few", n)
		}
	})
}

// The places of a limit without a rate are as far apart as its handlers take.
func TestPlacesOfSlots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: Plan{Concurrency: 2}}})
		handler := func(context.Context) error { time.Sleep(10 * time.Second); return nil }
		must.Do(t, l.Do(t.Context(), message("first", 1), handler))
		for range 2 {
			go func() { _ = l.Do(t.Context(), message("running", 1), handler) }()
		}
		synctest.Wait()
		for _, want := range []time.Duration{time.Second, 5250 * time.Millisecond, 10500 * time.Millisecond} {
			if ran, d := try(t, l, message("a", 1)); ran || d != want {
				t.Errorf("ran %t, postponed for %s, want %s", ran, d, want)
			}
		}
		time.Sleep(10 * time.Second)
	})
}

// The places of a host that holds messages, but has no room, are 1% further apart than the rate.
func TestPlacesWithoutRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: perSecond(1)}})
		try(t, l, message("first", 1))
		for i := range 20 {
			ctx, _ := settle.New(settle.WithHolding(t.Context()))
			settle.HeldBy(ctx, holder{room: func(string) bool { return false }})
			o := sqsonce.OutcomeOf(l.Do(ctx, message("a", 1), func(context.Context) error { return nil }))
			if want := time.Second + time.Duration(i)*1010*time.Millisecond; !o.Postpone || o.After != want {
				t.Errorf("postponed: %t, for %s, want %s", o.Postpone, o.After, want)
			}
		}
	})
}

// The places of a process whose Counter is down are as far apart as its share.
func TestPlacesWhileDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounter()
		c.err = errors.New("down")
		l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: perSecond(1), Counter: c}})
		try(t, l, message("first", 1))
		synctest.Wait()
		_, first := try(t, l, message("a", 1))
		for i := range 10 {
			want := first + time.Duration(i+1)*(shareLeast*time.Second+shareLeast*time.Second/20)
			if ran, d := try(t, l, message("a", 1)); ran || d != want {
				t.Errorf("ran %t, postponed for %s, want %s", ran, d, want)
			}
		}
	})
}

// A place is behind the starts that are owed.
func TestPlacesBehindDebt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: perSecond(1)}})
		for range 10 {
			ctx, _ := settle.New(t.Context())
			settle.HeldBy(ctx, holder{debt: true})
			must.Do(t, l.Do(ctx, message("owes", 5), func(context.Context) error { return nil }))
		}
		if ran, d := try(t, l, message("a", 1)); ran || d != 10*time.Second {
			t.Errorf("ran %t, postponed for %s, want 10 s", ran, d)
		}
	})
}

// A host that doesn't count waits, as a processor, has its messages run when they come at their places, also where two of them are
// further apart than the line of a first receive may be long.
func TestPlacesOfAProcessor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: Plan{Rate: Rate{N: 1}}}})
		ctx := settle.CountsAttempts(t.Context())
		for _, id := range []string{"a", "b", "c"} {
			for waits := 0; ; waits++ {
				ran := false
				err := l.Do(ctx, message(id, 1), func(context.Context) error { ran = true; return nil })
				if ran {
					break
				}
				if waits == 3 {
					t.Fatalf("%s was postponed %d times", id, waits)
				}
				time.Sleep(sqsonce.OutcomeOf(err).After)
			}
		}
	})
}

// A message that must wait for longer than MaxWait since it was sent is rejected, also at its last receive. Until then it is
// postponed, and comes again when that time is over.
func TestMaxWait(t *testing.T) {
	t.Parallel()
	const most = 10 * time.Minute
	for name, host := range map[string]func(ctx context.Context) context.Context{
		"processor": settle.CountsAttempts, "worker": heldHost,
		"function": func(ctx context.Context) context.Context { ctx, _ = settle.New(ctx); return ctx },
	} {
		must.RunParallel(t, name, func(t *testing.T) {
			l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: Plan{Rate: Rate{N: 1, Per: time.Hour}}}}, func(o *Options) { o.MaxWait = most })
			ran := 0
			f := func(context.Context) error { ran++; return nil }
			must.Do(t, l.Do(host(t.Context()), message("first", 1), f))
			m := message("a", 1)
			m.SentAt = time.Now()
			for begun := time.Now(); ; m = next(m) {
				err := l.Do(host(t.Context()), m, f)
				o := sqsonce.OutcomeOf(err)
				if o.Kind == sqsonce.OutcomePostponed && time.Since(begun) < most {
					time.Sleep(o.After)
					continue
				}
				if o.Kind != sqsonce.OutcomeRejected || !errors.Is(err, ErrMaxWait) || time.Since(begun) != most {
					t.Errorf("after %s: outcome %s, %v; want it rejected after %s", time.Since(begun), o.Kind, err, most)
				}
				break
			}
			last, _ := settle.New(t.Context())
			settle.HeldBy(last, holder{debt: true})
			if err := l.Do(last, m, f); !errors.Is(err, ErrMaxWait) || ran != 1 {
				t.Errorf("at its last receive: %v, %d ran; want it rejected", err, ran)
			}
			if s := l.Stats()[0]; s.Waiting != 0 || s.Running != 0 {
				t.Errorf("%d wait, %d run, want none", s.Waiting, s.Running)
			}
		})
	}
}
