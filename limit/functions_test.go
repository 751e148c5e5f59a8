package limit

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/counting"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// A key whose messages have started at their shares in an outage has no burst after it, in a function either, whatever a message costs.
func TestNoBurstAfterAnOutage(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		host func(context.Context) context.Context
		cost int
	}{
		"function":         {func(ctx context.Context) context.Context { ctx, _ = settle.New(ctx); return ctx }, 1},
		"function, cost 5": {func(ctx context.Context) context.Context { ctx, _ = settle.New(ctx); return ctx }, 5},
		"worker":           {heldHost, 1},
		"worker, cost 5":   {heldHost, 5},
	} {
		must.RunParallel(t, name, func(t *testing.T) {
			c, s := newCounter(), newStarts()
			step := time.Duration(tt.cost) * 100 * time.Millisecond
			l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: Plan{Rate: Rate{N: 10, Burst: 50}}, Cost: onlyCost(tt.cost), Counter: c}})
			handler := Handler(l, s.handler(0))
			run := func(times int) {
				for range times {
					_ = handler(tt.host(t.Context()), message("a", 2))
					time.Sleep(step)
				}
			}
			run(int(2 * time.Minute / step)) // at the limit
			c.set(func() { c.err = errors.New("down") })
			run(int(10 * time.Second / step))
			before := len(s.all())
			run(int(10 * time.Second / step))
			if n := len(s.all()) - before; n < int(8*time.Second/step) {
				t.Fatalf("%d starts in 10 s of an outage", n)
			}
			c.set(func() { c.err = nil })
			run(int(3 * time.Second / step)) // it answers again
			before = len(s.all())
			var all sync.WaitGroup
			for range 50 {
				all.Go(func() { _ = handler(tt.host(t.Context()), message("a", 2)) })
			}
			all.Wait()
			if n := len(s.all()) - before; n > 5 {
				t.Errorf("%d starts at once after the outage", n)
			}
		})
	}
}

// lateClock is a counter whose tokens have their times a part of a second ahead, as on DynamoDB.
type lateClock struct{ *fakeCounter }

func (c lateClock) Take(ctx context.Context, t counting.Take) (counting.Grant, error) {
	g, err := c.fakeCounter.Take(ctx, t)
	g.From += 500 * time.Millisecond
	return g, err
}

// A message of a function, which can't hold it, waits for a token that is good in a part of a second: a place in the line costs a receive.
func TestFunctionWaitsForItsToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: perSecond(1), Counter: lateClock{newCounter()}}})
		begun := time.Now()
		if ran, d := try(t, l, message("a", 1)); !ran || time.Since(begun) != 500*time.Millisecond {
			t.Errorf("ran %t after %s, postponed for %s; want it to run after 0.5 s", ran, time.Since(begun), d)
		}
	})
}

// A message whose token of one rule has lapsed while it waited for other rules is postponed.
func TestTokenLapsesBehindOtherRules(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fast, slow := newCounter(), newCounter()
		slow.delay = fresh - 50*time.Millisecond
		rule := func(name string, c *fakeCounter) Rule {
			return Rule{Name: name, Key: All, Plan: perSecond(1), Counter: c}
		}
		l := newLimiter(t, []Rule{rule("first", fast), rule("second", slow), rule("third", slow)})
		if ran, _ := try(t, l, message("a", 1)); ran {
			t.Error("the message ran with a token of more than a second ago")
		}
	})
}
