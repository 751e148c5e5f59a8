package limit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/settle"
	"github.com/sqsonce/sqsonce/internal/testlog"
)

// While the counter is down each process goes on at its share, or stops; a backlog does not start at once when it is back.
func TestCounterDown(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		policy      CounterPolicy
		processes   int
		rate        Rate
		least, most float64 // of the limit in the outage
	}{
		{OnCounterDownKeepShare, 5, Rate{N: 10}, 0.95, 1.1}, {OnCounterDownKeepShare, 5, Rate{N: 2}, 0.95, 1.1}, {OnCounterDownKeepShare, 5, Rate{N: 40}, 0.95, 1.1},
		{OnCounterDownKeepShare, 5, Rate{N: 1}, 0.95, 1.1}, {OnCounterDownKeepShare, 5, Rate{N: 1, Per: 2 * time.Second}, 0.95, 1.1},
		{OnCounterDownKeepShare, 20, Rate{N: 1}, 0.95, 1.1},
		{OnCounterDownKeepShare, 5, Rate{N: 1, Per: time.Minute}, 0.95, 1.1}, {OnCounterDownKeepShare, 5, Rate{N: 10, Per: time.Hour}, 0.95, 1.1},
		{OnCounterDownStop, 5, Rate{N: 10}, 0, 0.03},
	} {
		must.RunParallel(t, fmt.Sprint(tt.policy, tt.processes, tt.rate), func(t *testing.T) {
			c, s := newCounter(), newStarts()
			step := Plan{Rate: tt.rate}.resolve(nil, "").step
			lasts := max(time.Minute, 60*step)
			for range tt.processes {
				l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: Plan{Rate: tt.rate}, Counter: c}}, func(o *Options) { o.OnCounterDown = tt.policy })
				h := newHost(t, l, s.handler(0), 10, 5000)
				h.start(messages("a", int(2*lasts/step))...)
			}
			time.Sleep(2 * lasts) // a process knows its rate by then
			c.set(func() { c.err = errors.New("down") })
			before, takes := len(s.all()), c.count(&c.takes)
			time.Sleep(lasts)
			during, whole := len(s.all())-before, float64(lasts/step)
			t.Logf("%.3f of the limit in the outage", float64(during)/whole)
			if n := float64(during); n < tt.least*whole || n > tt.most*whole {
				t.Errorf("%d starts in the outage, want %g to %g of the limit", during, tt.least, tt.most)
			}
			if n := c.count(&c.takes) - takes; n > 2*tt.processes*int(lasts/leastWait) || n < 2*tt.processes*int(lasts/mostWait-2) {
				t.Errorf("%d requests in the outage, want a call and a question in 1 s to 2 s of each process", n)
			}
			c.set(func() { c.err = nil })
			time.Sleep(lasts)
			if n := float64(len(s.all()) - before - during); n < 0.95*whole || n > 1.1*whole {
				t.Errorf("%g starts in as long after the outage, want about %g", n, whole)
			}
			synctest.Wait()
		})
	}
}

// A counter that answers now and then during an outage doesn't take the processes' shares away.
func TestCounterDownAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := newCounter(), newStarts()
		for range 5 {
			l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: perSecond(10), Counter: c}})
			newHost(t, l, s.handler(0), 10, 5000).start(messages("a", 2000)...)
		}
		time.Sleep(3 * time.Minute)
		for i := range 5 {
			c.set(func() { c.err = errors.New("down") })
			before := len(s.all())
			time.Sleep(time.Minute)
			n := len(s.all()) - before
			t.Logf("%d starts in minute %d of the outage", n, i)
			if n < 500 || n > 660 {
				t.Errorf("%d starts in minute %d of the outage, want 600", n, i)
			}
			c.set(func() { c.err = nil })
			time.Sleep(mostWait)
		}
	})
}

// A process that has a token between two outages still owes what it has started at its share.
func TestShareIsOwedInTheNextOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := newCounter(), newStarts()
		down := func() { c.set(func() { c.err = errors.New("down") }) }
		cost := func(m *sqsonce.Message) int { return 1 + 49*strings.Count(m.Group, "big") }
		l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: Plan{Rate: Rate{N: 10, Burst: 50}}, Cost: cost, Counter: c}})
		h := newHost(t, l, s.handler(0), 10, 100)
		down()
		h.start(messages("big", 1)...)
		time.Sleep(5 * time.Second) // a step of the least share
		c.set(func() { c.err = nil })
		h.start(messages("small", 1)...)
		time.Sleep(mostWait)
		if s.count("big") != 1 || s.count("small") != 1 {
			t.Fatalf("%d and %d starts, want one at its share and one with a token", s.count("big"), s.count("small"))
		}
		down()
		h.start(messages("small", 20)...)
		time.Sleep(3 * time.Minute)
		if n := s.count("small") - 1; n > 0 {
			t.Errorf("%d starts at the share, and the process owes 49 of them, or 4 minutes", n)
		}
	})
}

// Events that are done already give their tokens back, and are no part of a process's share.
func TestShareWithoutDuplicates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := newCounter(), newStarts()
		starts := s.handler(0)
		var hosts []*fakeHost
		for range 5 {
			l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: perSecond(10), Counter: c}})
			h := newHost(t, l, func(ctx context.Context, m *sqsonce.Message) error {
				if m.Group == "done" {
					settle.Ran(ctx, false)
					return nil
				}
				return starts(ctx, m)
			}, 10, 5000)
			h.start(messages("done", 1000)...)
			hosts = append(hosts, h)
		}
		time.Sleep(time.Second)
		c.set(func() { c.err = errors.New("down") })
		for _, h := range hosts {
			h.start(messages("a", 1000)...)
		}
		time.Sleep(time.Minute)
		if n := s.count("a"); n > 660 {
			t.Errorf("%d starts in a minute of the outage, want at most 600", n)
		}
	})
}

// A plan that changes in an outage changes the share.
func TestPlanChangesWhileDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := newCounter(), newStarts()
		var rate atomic.Int64
		rate.Store(20)
		for range 5 {
			l := newLimiter(t, []Rule{{Name: "r", Key: All, PlanOf: func(string) Plan { return perSecond(int(rate.Load())) }, Counter: c}})
			h := newHost(t, l, s.handler(0), 10, 5000)
			h.start(messages("a", 2000)...)
			h.done.Go(func() {
				for time.Sleep(4 * time.Minute); h.ctx.Err() == nil; time.Sleep(time.Second) { // has the plan asked for
					h.send(messages("a", 2001)[2000])
				}
			})
		}
		time.Sleep(3 * time.Minute)
		c.set(func() { c.err = errors.New("down") })
		time.Sleep(time.Minute)
		for _, n := range []int64{2, 10} {
			rate.Store(n)
			time.Sleep(time.Second)
			before := len(s.all())
			time.Sleep(time.Minute)
			got := float64(len(s.all()) - before)
			if want := float64(60 * n); got < 0.85*want || got > 1.1*want {
				t.Errorf("%g starts in a minute at %d a second, want %g", got, n, want)
			}
		}
	})
}

// An unseen key gets a fiftieth of its plan in each process, and the processes do not begin together.
func TestUnseenKeyWhileDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounter()
		c.err = errors.New("down")
		s := newStarts()
		for range 50 {
			l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: Plan{Rate: Rate{N: 10}}, Counter: c}})
			h := newHost(t, l, s.handler(0), 10, 1000)
			h.start(messages("a", 100)...)
		}
		time.Sleep(30 * time.Second)
		if n := len(s.all()); n < 200 || n > 310 {
			t.Errorf("%d starts in 30 s, want little less than 300", n)
		}
		first := 0
		for _, at := range s.all() {
			if at < time.Second {
				first++
			}
		}
		if first > 25 {
			t.Errorf("%d starts in the first second, want about 10", first)
		}
	})
}

// Processes that together have a key at its limit give an unseen key a tenth of its plan together, or a fiftieth each if that is more.
func TestUnseenKeyBesideABusyOne(t *testing.T) {
	t.Parallel()
	for processes, part := range map[int]float64{1: 0.1, 2: 0.1, 10: 0.2} {
		must.RunParallel(t, fmt.Sprint(processes), func(t *testing.T) {
			c, s := newCounter(), newStarts()
			var hosts []*fakeHost
			for range processes {
				h := newHost(t, newLimiter(t, []Rule{{Name: "r", Plan: perSecond(10), Counter: c}}), s.handler(0), 10, 5000)
				h.start(messages("busy", 3000)...)
				hosts = append(hosts, h)
			}
			time.Sleep(2 * time.Minute)
			c.set(func() { c.err = errors.New("down") })
			for _, h := range hosts {
				h.start(messages("unseen", 200)...)
			}
			time.Sleep(time.Minute)
			if n := float64(s.count("unseen")); n < 0.9*part*600 || n > 1.05*part*600 {
				t.Errorf("%g starts of an unseen key in a minute, want %g", n, part*600)
			}
		})
	}
}

// Nothing is forgotten in an outage: an unseen key gets its tenth also where the busy one has had no messages for most of it.
func TestUnseenKeyLateInAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := newCounter(), newStarts()
		l := newLimiter(t, []Rule{{Name: "r", Plan: perSecond(10), Counter: c}})
		busy := newHost(t, l, s.handler(0), 10, 5000)
		busy.start(messages("busy", 3000)...)
		time.Sleep(2 * time.Minute)
		c.set(func() { c.err = errors.New("down") })
		time.Sleep(2 * time.Second)
		busy.stop()
		time.Sleep(10 * time.Minute)
		newHost(t, l, s.handler(0), 10, 5000).start(messages("unseen", 200)...)
		time.Sleep(time.Minute)
		if n := s.count("unseen"); n < 54 || n > 63 {
			t.Errorf("%d starts of an unseen key in a minute, want 60", n)
		}
	})
}

// The log says once that a counter is down, and once that it is back.
func TestCounterDownIsLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log testlog.Book
		c := newCounter()
		c.err = errors.New("table missing")
		l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: perSecond(10), Counter: c}}, func(o *Options) {
			o.OnCounterDown, o.Logger = OnCounterDownStop, slog.New(slog.NewTextHandler(&log, nil))
		})
		for range 20 {
			try(t, l, message("a", 1))
			time.Sleep(time.Second)
		}
		if d := l.Stats()[0].Down; d < 19*time.Second {
			t.Errorf("Stats: down for %s, want 20 s", d)
		}
		c.set(func() { c.err = nil })
		for range 10 {
			try(t, l, message("a", 2))
			time.Sleep(time.Second)
		}
		time.Sleep(time.Second)
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], "WARN") || !strings.Contains(lines[0], "table missing") || !strings.Contains(lines[1], "INFO") {
			t.Errorf("%d lines, want a WARN with the error and an INFO:\n%s", len(lines), log.String())
		}
	})
}

// A lost answer, and one that comes too late, waste tokens. The limit holds.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(c *fakeCounter){
		"lost": func(c *fakeCounter) { c.set(func() { c.lose = 2 }) },
		"late": func(c *fakeCounter) {
			c.set(func() { c.delay = 3 * time.Second })
			time.Sleep(3 * time.Second)
			c.set(func() { c.delay = 0 })
		},
	} {
		must.RunParallel(t, name, func(t *testing.T) {
			c, s := newCounter(), newStarts()
			l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: Plan{Rate: Rate{N: 20}}, Counter: c}}, func(o *Options) { o.OnCounterDown = OnCounterDownStop })
			h := newHost(t, l, s.handler(0), 10, 1000)
			h.start(messages("a", 400)...)
			for range 5 {
				time.Sleep(2 * time.Second)
				f(c)
			}
			h.done.Wait()
			s.check(t, 50*time.Millisecond, 20, keep)
		})
	}
}

// A token that is not used within a second of its time is not used at all.
func TestTokensLapse(t *testing.T) {
	t.Parallel()
	for after, want := range map[time.Duration]bool{fresh - time.Millisecond: true, fresh + time.Millisecond: false} {
		must.RunParallel(t, fmt.Sprint(after), func(t *testing.T) {
			c := newCounter()
			l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: Plan{Rate: Rate{N: 10}}, Counter: c}}, func(o *Options) { o.OnCounterDown = OnCounterDownStop })
			if ran, _ := try(t, l, message("a", 1)); !ran {
				t.Fatal("did not run")
			}
			g, now := l.rules[0].gates["*"], time.Now()
			g.counted.stock.add(span{first: now.Add(-time.Second), n: 5, asked: now})
			c.set(func() { c.err = errors.New("down") })
			time.Sleep(after)
			if ran, _ := try(t, l, message("a", 1)); ran != want {
				t.Errorf("with tokens that are %s old: runs %t, want %t", after, ran, want)
			}
		})
	}
}

// Slots that a process has when the counter goes down stay its own. It runs no more than these, and a fiftieth.
func TestSlotsWhileDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := newCounter(), newStarts()
		l := newLimiter(t, []Rule{{Name: "r", Plan: Plan{Concurrency: 3}, Counter: c}})
		h := newHost(t, l, s.handler(time.Second), 10, 1000)
		h.start(messages("a", 1000)...)
		time.Sleep(10 * time.Second)
		c.set(func() { c.err = errors.New("down") })
		h.start(messages("unseen", 10)...)
		before := len(s.all())
		time.Sleep(2 * time.Minute)
		if n := len(s.all()) - before; n < 350 || s.atMost() > 3 || s.count("unseen") > 0 {
			t.Errorf("%d starts in the outage, %d at once, %d of the unseen key; want 360, 3 and 0", n, s.atMost(), s.count("unseen"))
		}
		c.set(func() { c.err = nil })
		time.Sleep(time.Minute)
		if n := s.count("unseen"); n != 10 {
			t.Errorf("%d of 10 have run after the outage", n)
		}
	})
}

// A function's messages wait longer each time while the counter is down: a wait costs a receive.
func TestFunctionWaitsForTheCounter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounter()
		c.err = errors.New("down")
		l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: perSecond(10), Counter: c}}, func(o *Options) { o.OnCounterDown = OnCounterDownStop })
		try(t, l, message("first", 1))
		synctest.Wait()
		for i, want := range []time.Duration{time.Minute, 4 * time.Minute, 16 * time.Minute, 16 * time.Minute} {
			if ran, d := try(t, l, message("a", i+1)); ran || d != want {
				t.Errorf("receive %d: runs %t, postponed for %s, want %s", i+1, ran, d, want)
			}
		}
	})
}
