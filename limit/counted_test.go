package limit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/counting"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/settle"
)

func onlyCost(n int) func(*sqsonce.Message) int { return func(*sqsonce.Message) int { return n } }

// A process starts no handler before the time of its last token.
func TestTokenTimes(t *testing.T) {
	t.Parallel()
	for _, cost := range []int{1, 2} {
		must.RunParallel(t, fmt.Sprint("cost ", cost), func(t *testing.T) {
			l, s := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: Plan{Rate: Rate{N: 100, Burst: cost}}, Cost: onlyCost(cost), Counter: newCounter()}}), newStarts()
			h := newHost(t, l, s.handler(0), 10, 1000)
			h.send(messages("a", 500)...)
			h.done.Wait()
			s.check(t, time.Duration(cost)*10*time.Millisecond, 1, 0)
			if last, want := s.all()[499], time.Duration(500*cost)*10*time.Millisecond; last > want*105/100 {
				t.Errorf("500 messages took %s, want %s", last, want)
			}
		})
	}
}

// Messages whose tokens come in a minute and more have them one after another: processes that gathered theirs at the same time would start together.
func TestFleetLargeCost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := newCounter(), newStarts()
		for i := range 5 {
			l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: Plan{Rate: Rate{N: 1, Burst: 100}}, Cost: onlyCost(100), Counter: c}})
			newHost(t, l, s.handler(0), 10, 1000).start(messages(fmt.Sprint(i), 10)...)
		}
		time.Sleep(time.Hour)
		s.check(t, 100*time.Second, 1, keep)
		if n := len(s.all()); n < 34 {
			t.Errorf("%d starts of 100 tokens in an hour, want 36", n)
		}
	})
}

// tokens gives the process n tokens of key "*", the first one good at that time.
func (l *Limiter) tokens(first time.Time, step time.Duration, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := use{rule: l.rules[0], key: "*", plan: l.rules[0].fixed}.gate(time.Now())
	g.counted.stock.add(span{first: first, step: step, n: n, asked: first})
}

// ranHeld reports whether a message that its host can hold runs, and else its turn.
func ranHeld(t *testing.T, l *Limiter, m *sqsonce.Message) (ran bool, turn settle.Turn) {
	t.Helper()
	err := l.Do(heldHost(t.Context()), m, func(context.Context) error { ran = true; return nil })
	turn, held := settle.TurnOf(err)
	if ran == held {
		t.Fatalf("ran %t, held %t: %v", ran, held, err)
	}
	return ran, turn
}

// A turn lasts as long as its token: a second from the token's time, and from the call that brought it.
func TestTurnLastsAsLongAsItsToken(t *testing.T) {
	t.Parallel()
	must.RunParallel(t, "used late", func(t *testing.T) {
		c := newCounter()
		l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: perSecond(1), Counter: c}}, func(o *Options) { o.OnCounterDown = OnCounterDownStop })
		c.set(func() { c.err = errors.New("down") })
		_ = l.Pause(t.Context(), "r", "*", 500*time.Millisecond) // here it holds
		l.tokens(time.Now(), 0, 1)
		_, turn := ranHeld(t, l, message("a", 1))
		<-turn.Ready
		time.Sleep(keep - 500*time.Millisecond + time.Millisecond)
		if ran, _ := ranHeld(t, l, message("a", 1)); ran {
			t.Error("the message ran more than a second after its token's time")
		}
	})
	must.RunParallel(t, "of a burst", func(t *testing.T) {
		c := newCounter()
		c.delay = 2 * patience
		l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: Plan{Rate: Rate{N: 1, Burst: 10}}, Counter: c}})
		_, turn := ranHeld(t, l, message("a", 1))
		<-turn.Ready
		time.Sleep(patience)
		if ran, _ := ranHeld(t, l, message("a", 1)); !ran {
			t.Error("the message did not run in its turn")
		}
	})
}

// A token that goes back is used before later ones.
func TestTokensGoBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounter()
		l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: perSecond(1), Counter: c}}, func(o *Options) { o.OnCounterDown = OnCounterDownStop })
		c.set(func() { c.err = errors.New("down") })
		l.tokens(time.Now(), 500*time.Millisecond, 2)
		for range 2 {
			ctx, _ := settle.New(t.Context())
			must.Do(t, l.Do(ctx, message("a", 2), func(ctx context.Context) error {
				settle.Ran(ctx, false)
				return nil
			}))
		}
	})
}

// A process whose counter has no token asks again in a minute at most, and never all the time.
func TestAsksAgain(t *testing.T) {
	t.Parallel()
	must.RunParallel(t, "a key that is reset", func(t *testing.T) {
		c, s := newCounter(), newStarts()
		l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: perSecond(1), Counter: c}})
		c.item("r#*", time.Now()).tat = time.Now().Add(24 * time.Hour)
		newHost(t, l, s.handler(0), 10, 10).start(messages("a", 1)...)
		time.Sleep(10 * time.Second)
		c.set(func() { delete(c.items, "r#*") })
		time.Sleep(mostAfter)
		if n := len(s.all()); n != 1 {
			t.Errorf("%d messages have started a minute after the key was reset, want 1", n)
		}
	})
	must.RunParallel(t, "a counter that says at once", func(t *testing.T) {
		c := atOnce{newCounter()}
		l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: perSecond(1), Counter: c}})
		newHost(t, l, newStarts().handler(0), 10, 10).start(messages("a", 1)...)
		time.Sleep(time.Second)
		if n := c.count(&c.takes); n > int(time.Second/leastAfter) {
			t.Errorf("%d takes in a second, want at most %d", n, time.Second/leastAfter)
		}
	})
}

// atOnce is a counter without tokens, which wants to be asked again at once.
type atOnce struct{ *fakeCounter }

func (c atOnce) Take(ctx context.Context, t counting.Take) (counting.Grant, error) {
	return counting.Grant{}, c.call(ctx, &c.takes, func(time.Time) error { time.Sleep(time.Microsecond); return nil })
}

// In an outage the processes have no more than the rate together, by cost, also where they have just used up a large burst.
func TestSharesOfACostAndABurst(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rate  Rate
		cost  int
		after time.Duration
		least int // starts in ten minutes
	}{
		{Rate{N: 10}, 5, 3 * time.Minute, 1100}, {Rate{N: 1, Burst: 100}, 1, 30 * time.Second, 200},
	} {
		must.RunParallel(t, fmt.Sprintf("%+v, cost %d", tt.rate, tt.cost), func(t *testing.T) {
			c, s := newCounter(), newStarts()
			p := Plan{Rate: tt.rate}.resolve(nil, "")
			for i := range 5 {
				l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: Plan{Rate: tt.rate}, Cost: onlyCost(tt.cost), Counter: c}})
				newHost(t, l, s.handler(0), 10, 1000).start(messages(strings.Repeat("x", i+1), 1000)...)
			}
			time.Sleep(tt.after)
			c.set(func() { c.err = errors.New("down") })
			before := len(s.all())
			time.Sleep(10 * time.Minute)
			n, whole := len(s.all())-before, int(10*time.Minute/p.step)/tt.cost
			if n < tt.least || n > whole*110/100+5 {
				t.Errorf("%d starts in ten minutes of an outage, want %d to %d", n, tt.least, whole*110/100)
			}
		})
	}
}

// In an outage a process has no more than its plan, also where that was larger before.
func TestShareOfASmallerPlan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := newCounter(), newStarts()
		var n atomic.Int64
		n.Store(50)
		l := newLimiter(t, []Rule{{Name: "r", Key: All, PlanOf: func(string) Plan { return perSecond(int(n.Load())) }, Counter: c}})
		newHost(t, l, s.handler(0), 10, 10_000).start(messages("a", 3000)...)
		time.Sleep(30 * time.Second)
		n.Store(1)
		c.set(func() { c.err = errors.New("down") })
		time.Sleep(time.Second)
		before := len(s.all())
		time.Sleep(10 * time.Second)
		if n := len(s.all()) - before; n > 11 {
			t.Errorf("%d starts in 10 s, want 10", n)
		}
	})
}

// A message doesn't wait for an answer when its context has ended, nor in a slot of its host while the counter is down.
func TestDoesNotWaitForAnAnswer(t *testing.T) {
	t.Parallel()
	must.RunParallel(t, "context", func(t *testing.T) {
		c := newCounter()
		c.delay = fresh
		l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: perSecond(1), Counter: c}})
		ctx, cancel := context.WithTimeout(t.Context(), fresh/4)
		defer cancel()
		began := time.Now()
		_ = l.Do(ctx, message("a", 1), func(context.Context) error { return nil })
		if took := time.Since(began); took > fresh/4 {
			t.Errorf("waited for %s, want %s", took, fresh/4)
		}
	})
	must.RunParallel(t, "down", func(t *testing.T) {
		c := newCounter()
		c.err, c.delay = errors.New("down"), fresh
		l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: perSecond(1), Counter: c}}, func(o *Options) { o.OnCounterDown = OnCounterDownStop })
		ranHeld(t, l, message("a", 1))
		time.Sleep(fresh)
		for i := range 100 { // some of them while it is asked again
			began := time.Now()
			ranHeld(t, l, message(fmt.Sprint(i), 1))
			if took := time.Since(began); took > 0 {
				t.Errorf("waited for %s in its slot, want 0 s", took)
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
}
