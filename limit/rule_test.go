package limit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/internal/testlog"
)

// A plan that changes holds from the next message on: what waits for it too.
func TestPlanChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var plan atomic.Pointer[Plan]
		set := func(p Plan) { plan.Store(&p) }
		set(Plan{Concurrency: 4, Rate: Rate{N: 1, Per: 24 * time.Hour}})
		l, s := newLimiter(t, []Rule{{Name: "r", PlanOf: func(string) Plan { return *plan.Load() }}}), newStarts()
		h := newHost(t, l, s.handler(time.Minute), 100, 100)
		h.send(messages("a", 10)...)
		time.Sleep(time.Second)
		if n := len(s.all()); n != 1 {
			t.Fatalf("%d started, want 1: one a day", n)
		}
		set(Plan{Concurrency: 4})
		h.send(messages("a", 11)[10])
		time.Sleep(time.Second)
		if n := len(s.all()); n != 4 {
			t.Fatalf("%d started, want 4: four at once", n)
		}
		set(Plan{Concurrency: 1}) // takes nothing from those that run
		time.Sleep(3 * time.Minute)
		if n := s.running(); n != 1 {
			t.Errorf("%d run, want 1", n)
		}
		set(Plan{})
		h.send(messages("a", 12)[11])
		time.Sleep(time.Second)
		if n := len(s.all()); n != 12 {
			t.Errorf("%d started, want all 12: no limit", n)
		}
		h.done.Wait()
	})
}

// A plan that grows does not wait for the time in which the old one would have paid its debt.
func TestOwedStarts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		plan := Plan{Rate: Rate{N: 1, Per: 24 * time.Hour, Burst: 10}}
		l := newLimiter(t, []Rule{{Name: "r", Key: All, PlanOf: func(string) Plan { return plan }}})
		for range 10 {
			try(t, l, message("a", 2))
		}
		plan = Plan{Rate: Rate{N: 1, Burst: 2}}
		for wait, want := range []bool{false, true, true} {
			if ran, _ := try(t, l, message("a", 2)); ran != want {
				t.Errorf("after %d s: runs %t, want %t", wait, ran, want)
			}
			time.Sleep(time.Second)
		}
	})
}

// The user's functions fail their own message, and no other.
func TestBadFunctions(t *testing.T) {
	t.Parallel()
	bad := func(m *sqsonce.Message) bool { return m.Group == "bad" }
	for name, r := range map[string]Rule{
		"key panics": {Key: func(m *sqsonce.Message) string {
			if bad(m) {
				panic("boom")
			}
			return "k"
		}, Plan: Plan{Concurrency: 1}},
		"cost panics": {Cost: func(m *sqsonce.Message) int {
			if bad(m) {
				panic("boom")
			}
			return -3
		}, Plan: perSecond(1)},
		"plan panics": {PlanOf: func(key string) Plan {
			if key == "bad" {
				panic("boom")
			}
			return perSecond(1)
		}},
		"plan can't be used": {PlanOf: func(key string) Plan {
			if key == "bad" {
				return Plan{Concurrency: -1}
			}
			return perSecond(1)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r.Name = "r"
			l := newLimiter(t, []Rule{r})
			ran := 0
			handler := Handler(l, func(context.Context, *sqsonce.Message) error { ran++; return nil })
			err := contain(func() error { return handler(t.Context(), message("bad", 1)) })
			if k := sqsonce.OutcomeOf(err).Kind; k != sqsonce.OutcomeFailed || ran > 0 {
				t.Errorf("outcome %s, %d runs, want failed and none: %v", k, ran, err)
			}
			must.Do(t, handler(t.Context(), message("good", 1)))
			if ran != 1 {
				t.Error("the other message did not run")
			}
		})
	}
}

// A cost below 1 counts as 1.
func TestCostBelowOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: perSecond(1), Cost: func(*sqsonce.Message) int { return -3 }}})
		for _, want := range []bool{true, false} {
			if ran, _ := try(t, l, message("a", 2)); ran != want {
				t.Errorf("runs: %t, want %t", ran, want)
			}
		}
	})
}

// A message without a group is not limited by its group, which the log says once.
func TestMessageWithoutAGroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log testlog.Book
		l := newLimiter(t, []Rule{{Name: "r", Plan: perSecond(1)}}, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		for range 3 {
			if ran, _ := try(t, l, message("", 1)); !ran {
				t.Error("did not run")
			}
		}
		synctest.Wait()
		if n := strings.Count(log.String(), "WARN"); n != 1 {
			t.Errorf("%d lines, want one:\n%s", n, log.String())
		}
	})
}

// A message that nothing limits makes no call of the Counter.
func TestNoLimitCallsNoCounter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounter()
		l := newLimiter(t, []Rule{
			{Name: "plan", Key: All, PlanOf: func(string) Plan { return Plan{} }, Counter: c},
			{Name: "key", Key: func(*sqsonce.Message) string { return "" }, Plan: perSecond(1), Counter: c},
		})
		for i := range 100 {
			if ran, _ := try(t, l, message(fmt.Sprint(i), 1)); !ran {
				t.Fatal("did not run")
			}
		}
		time.Sleep(time.Minute)
		if n := c.count(&c.takes) + c.count(&c.lines) + c.count(&c.others); n > 0 || l.Stats()[0].Calls > 0 {
			t.Errorf("%d calls of the counter, want none", n)
		}
	})
}

// The highest rate and the largest costs overflow nothing.
func TestHugeRate(t *testing.T) {
	t.Parallel()
	for _, c := range []Counter{nil, newCounter()} {
		synctest.Test(t, func(t *testing.T) {
			s := newStarts()
			l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: Plan{Rate: Rate{N: 1e9}}, Cost: func(*sqsonce.Message) int { return math.MaxInt }, Counter: c},
				{Name: "slow", Key: All, Plan: Plan{Rate: Rate{N: 1, Per: maxFill}}}})
			h := newHost(t, l, s.handler(0), 10, 100)
			h.start(messages("a", 3)...)
			time.Sleep(maxFill + maxFill/2)
			if n := len(s.all()); n != 2 {
				t.Errorf("%d of 3 have run in one and a half years, want 2", n)
			}
		})
	}
}

// Any number of keys need the memory of MaxKeys, also while a Counter is down, and keys in use are kept.
func TestMaxKeys(t *testing.T) {
	t.Parallel()
	shared, down := newCounter(), newCounter()
	down.err = errors.New("down")
	for name, c := range map[string]Counter{"no counter": nil, "counter": shared, "counter down": down} {
		must.Run(t, name, func(t *testing.T) {
			synctest.Wait()
			l := newLimiter(t, []Rule{{Name: "r", Plan: Plan{Concurrency: 1, Rate: Rate{N: 1, Per: time.Hour}}, Counter: c}}, func(o *Options) { o.MaxKeys = 100 })
			ran, keys := 0, 20_000
			for i := range keys {
				if ok, _ := try(t, l, message(fmt.Sprint(i), 1)); ok {
					ran++
				}
				synctest.Wait()
			}
			time.Sleep(5 * time.Second) // slots are released
			if n := l.Stats()[0].Keys; n > 100 || ran < keys && c != down {
				t.Errorf("%d keys are remembered, and %d have run; want 100, and %d", n, ran, keys)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, []Rule{{Name: "r", Plan: Plan{Concurrency: 1, Rate: Rate{N: 1, Per: time.Hour}}}}, func(o *Options) { o.MaxKeys = 100 })
		must.Do(t, l.Do(t.Context(), message("busy", 1), func(context.Context) error {
			for i := range 200 {
				try(t, l, message(fmt.Sprint(i), 1))
			}
			if ran, _ := try(t, l, message("busy", 2)); ran {
				t.Error("a key in use was forgotten")
			}
			return nil
		}))
		if s := l.Stats()[0]; s.Forgotten < 90 {
			t.Errorf("%d forgotten, want the keys beyond 100", s.Forgotten)
		}
	})
}

// Messages that an earlier rule keeps back leave no keys behind in the later ones.
func TestMaxKeysBehindAnotherRule(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, []Rule{
			{Name: "all", Key: All, Plan: Plan{Rate: Rate{N: 1, Per: time.Hour}}},
			{Name: "tenant", Plan: Plan{Rate: Rate{N: 1, Per: time.Hour}}},
		}, func(o *Options) { o.MaxKeys = 100 })
		for i := range 1000 {
			try(t, l, message(fmt.Sprint(i), 1))
		}
		if n := l.Stats()[1].Keys; n > 100 {
			t.Errorf("%d keys are remembered, want at most 100", n)
		}
	})
}

// Many tenants, in a soak a million, need the memory of MaxKeys. The test doesn't run in parallel: it measures the heap of the process.
func TestMemoryOfManyKeys(t *testing.T) {
	l := newLimiter(t, []Rule{{Name: "tenant", Plan: Plan{Concurrency: 3, Rate: Rate{N: 1, Per: time.Hour}}}})
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	ran, begun := 0, int64(0)
	f := func(context.Context) error { ran++; return nil }
	m := message("", 1)
	const first = 25_000
	keys := 100_000
	if os.Getenv("SOAK") != "" {
		keys = 1_000_000
	}
	for i := range keys {
		if i == first { // all keys that are remembered are there
			begun = heap()
		}
		m.Group = strconv.Itoa(i)
		err := l.Do(t.Context(), m, f)
		for try := 0; err != nil && try < 10; try++ { // a token lapses where a machine stalls
			err = l.Do(t.Context(), m, f)
		}
		must.Do(t, err)
	}
	if grown := heap() - begun; grown > 1<<20 {
		t.Errorf("%d keys more need %d bytes more", keys-first, grown)
	}
	if n := l.Stats()[0].Keys; ran != keys || n != defaultMaxKeys {
		t.Errorf("%d have run, and %d keys are remembered; want %d, and %d", ran, n, keys, defaultMaxKeys)
	}
}

// A plan that was asked for before another one does not replace it, however late it comes.
func TestPlansInTheirOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var allowed atomic.Int64
		allowed.Store(5)
		late := make(chan struct{})
		l := newLimiter(t, []Rule{{Name: "r", Key: All, PlanOf: func(string) Plan {
			p := Plan{Concurrency: int(allowed.Load())}
			if p.Concurrency == 5 {
				<-late
			}
			return p
		}}})
		var early sync.WaitGroup
		ran := false
		early.Go(func() { ran, _ = try(t, l, message("early", 1)) })
		synctest.Wait()
		allowed.Store(1)
		must.Do(t, l.Do(t.Context(), message("later", 1), func(context.Context) error {
			close(late)
			early.Wait()
			return nil
		}))
		if ran {
			t.Error("two run at once, want one: the plan of five was asked for before that of one")
		}
	})
}

// Two programs with other plans under one name stay within the more generous one together, and each within its own.
func TestTwoPlansOfOneName(t *testing.T) {
	t.Parallel()
	for _, plans := range [][2]Plan{{perSecond(10), perSecond(2)}, {{Concurrency: 6}, {Concurrency: 2}}} {
		must.RunParallel(t, plans[0].String(), func(t *testing.T) {
			c, all := newCounter(), newStarts()
			own := map[string]*starts{"large": newStarts(), "small": newStarts()}
			for i, name := range []string{"large", "small"} {
				l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: plans[i], Counter: c}})
				h, count := own[name].handler(0), all.handler(200*time.Millisecond)
				newHost(t, l, func(ctx context.Context, m *sqsonce.Message) error {
					_ = h(ctx, m)
					return count(ctx, m)
				}, 20, 5000).start(messages(name, 3000)...)
			}
			time.Sleep(2 * time.Minute)
			t.Log(own["large"].count("large"), "and", own["small"].count("small"), "starts, at most", all.atMost(), "at once")
			if plans[0].Concurrency > 0 {
				if all.atMost() > 6 {
					t.Errorf("%d handlers at once, want at most 6", all.atMost())
				}
			} else {
				all.check(t, 100*time.Millisecond, 10, keep)
				own["small"].check(t, 500*time.Millisecond, 2, keep)
			}
			for name, s := range own {
				if n := s.count(name); n < 100 {
					t.Errorf("%d starts of the program with the %s plan in two minutes: it is kept out", n, name)
				}
			}
		})
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	var nilCounter *fakeCounter
	_, err := New([]Rule{
		{Name: "a b", Plan: Plan{Concurrency: -1, Rate: Rate{N: -1, Per: -1, Burst: -1}}},
		{Name: "ok", Plan: Plan{Rate: Rate{Per: time.Minute}}},
		{Name: "ok", Counter: nilCounter},
		{Name: "both", Plan: Plan{Concurrency: 1}, PlanOf: func(string) Plan { return Plan{} }},
		{Name: "fast", Plan: Plan{Rate: Rate{N: 1_000_000_001}}},
		{Name: "az_AZ-0.9", Plan: Plan{Rate: Rate{N: 1_000_000_000}}},
		{Name: "long", Plan: Plan{Rate: Rate{N: 1, Per: 24 * time.Hour, Burst: 367}}},
		{Name: "rare", Plan: Plan{Rate: Rate{N: 2, Per: 2*maxFill + 2}}},
		{Name: "most", Plan: Plan{Rate: Rate{N: math.MaxInt, Per: math.MaxInt64}}},
		{Name: "more", Plan: Plan{Rate: Rate{N: math.MaxInt}}},
	}, func(o *Options) { o.MaxKeys, o.OnCounterDown, o.MaxWait = -1, 2, -1 })
	want := []string{
		"Options.OnCounterDown", "Options.MaxWait", "Options.MaxKeys", "rules[0].Name", "rules[0].Plan.Concurrency", "rules[0].Plan.Rate.N",
		"rules[0].Plan.Rate.Per", "rules[0].Plan.Rate.Burst", "rules[1].Plan.Rate.N", "rules[2].Name", "rules[2].Plan", "rules[2].Counter",
		"rules[3].PlanOf", "rules[4].Plan.Rate.N", "rules[6].Plan.Rate.Burst",
		"rules[7].Plan.Rate.Per", "rules[9].Plan.Rate.N",
	}
	if got := testaws.Fields(err); !slices.Equal(got, want) {
		t.Errorf("fields\n%s\nwant\n%s", got, want)
	}
	if _, err := New(nil); err == nil {
		t.Error("a limiter without rules")
	}
	if Handler(nil, nil) != nil {
		t.Error("a handler of nothing")
	}
}
