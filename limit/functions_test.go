package limit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
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

// The messages of a function, which can't hold them, wait for tokens that are good in a part of a second: a place in the line costs a receive.
func TestFunctionWaitsForItsToken(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rate Rate
		n    int // messages, of two groups
	}{{Rate{N: 1, Burst: 1}, 1}, {Rate{N: 10, Burst: 10}, 10}, {Rate{N: 100, Burst: 10}, 10}} {
		must.RunParallel(t, fmt.Sprintf("%+v", tt), func(t *testing.T) {
			c, s := newCounter(), newStarts()
			c.delay = 10 * time.Millisecond
			plan := Plan{Rate: tt.rate}
			h := newHost(t, newLimiter(t, []Rule{{Name: "r", Key: All, Plan: plan, Counter: lateClock{c}}}), s.handler(0), 10, 0)
			h.send(append(messages("a", tt.n-tt.n/2), messages("b", tt.n/2)...)...)
			h.done.Wait()
			if h.calls != tt.n {
				t.Errorf("%d receives of %d messages", h.calls, tt.n)
			}
			p := plan.resolve(nil, "")
			for i, at := range s.all() {
				good := 505*time.Millisecond - p.tolerance() + time.Duration(i)*p.step
				if at > max(good, 2*c.delay) || at < good {
					t.Errorf("start %d at %s, and its token is good at %s", i, at, good)
				}
			}
		})
	}
}

// A message of a function whose cost is above the burst takes a full burst or nothing.
func TestFunctionLargeCost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounter()
		tat := time.Now().Add(600 * time.Millisecond) // four tokens are good
		c.items["r#*"] = &item{tat: tat}
		l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: Plan{Rate: Rate{N: 10, Burst: 10}}, Cost: onlyCost(50), Counter: c}})
		if ran, _ := try(t, l, message("a", 2)); ran || c.items["r#*"].tat != tat {
			t.Errorf("ran %t, and took %s of tokens", ran, c.items["r#*"].tat.Sub(tat))
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

// Messages of a function whose hosts are slow to say whether they must run, as while SQS is down, have no turns meanwhile: they would start
// together when it answers, and keep those that are here from starting.
func TestFunctionAsksItsHost(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 10} {
		synctest.Test(t, func(t *testing.T) {
			l, s := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: Plan{Rate: Rate{N: n}}}}), newStarts()
			h := Handler(l, s.handler(0))
			send := func(m *sqsonce.Message, slow time.Duration) {
				ctx, _ := settle.New(t.Context())
				settle.HeldBy(ctx, holder{slow: slow})
				_ = h(ctx, m)
			}
			var asked sync.WaitGroup
			for _, m := range messages("a", 100*n) {
				asked.Go(func() { send(next(m), 10*time.Second) })
			}
			time.Sleep(9400 * time.Millisecond)
			send(message("b", 2), 0)
			asked.Wait()
			s.check(t, time.Second/time.Duration(n), n, keep)
			if s.count("b") == 0 {
				t.Error("a message that is here did not start")
			}
		})
	}
}
