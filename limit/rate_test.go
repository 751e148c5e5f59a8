package limit

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/must"
)

// Held messages run at the rate, each at its turn and with one more call only.
func TestRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, []Rule{{Name: "payments", Key: All, Plan: Plan{Rate: Rate{N: 10, Burst: 5}}}})
		s := newStarts()
		h := newHost(t, l, s.handler(time.Millisecond), 10, 200)
		h.send(messages("a", 105)...)
		h.done.Wait()
		s.check(t, 100*time.Millisecond, 5, 0)
		if at := s.all(); at[104] > 10*time.Second+10*time.Millisecond || at[4] > time.Millisecond {
			t.Errorf("the fifth started after %s, the last after %s; want at once and after 10 s", at[4], at[104])
		}
		if most := 105 + 100 + 10; h.calls > most {
			t.Errorf("%d calls of the handler, want at most %d: each held message needs two", h.calls, most)
		}
	})
}

// A fleet shares the limit: no more than it, and nearly all of it, at few writes.
func TestFleetRate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		rate      Rate
		processes int
		perProc   int
		writes    float64 // a start
	}{
		{"10 a second", Rate{N: 10}, 5, 60, 0.6},
		{"100 a second", Rate{N: 100}, 5, 600, 0.06},
		{"20 processes", Rate{N: 10}, 20, 20, 1.1},
		{"one a minute", Rate{N: 1, Per: time.Minute}, 3, 5, 2},
	} {
		must.Run(t, tt.name, func(t *testing.T) {
			c, s := newCounter(), newStarts()
			c.delay = 10 * time.Millisecond
			var hosts []*fakeHost
			var senders sync.WaitGroup
			for i := range tt.processes {
				l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: Plan{Rate: tt.rate}, Counter: c}})
				h := newHost(t, l, s.handler(time.Millisecond), 10, 1000)
				hosts = append(hosts, h)
				senders.Go(func() { h.send(messages(fmt.Sprint(i), tt.perProc)...) })
			}
			senders.Wait()
			for _, h := range hosts {
				h.done.Wait()
			}
			for i := range tt.processes { // of the first half
				share := float64(s.before(fmt.Sprint(i), s.all()[tt.processes*tt.perProc/2])) / float64(tt.processes*tt.perProc/2)
				if fair := 1 / float64(tt.processes); tt.processes*tt.perProc >= 300 && (share < fair/2 || share > 2*fair) {
					t.Errorf("process %d has had %.2f of the starts, want %.2f", i, share, fair)
				}
			}
			p := Plan{Rate: tt.rate}.resolve(nil, "")
			s.check(t, p.step, p.burst, keep)
			all := s.all()
			n, took := len(all), all[len(all)-1]
			best := time.Duration(n-p.burst) * p.step
			writes := float64(c.count(&c.takes)) / float64(n)
			t.Logf("%d starts in %s, at best %s; %.2f writes a start", n, took, best, writes)
			if took > best*105/100+time.Second {
				t.Errorf("%d starts took %s, want %s", n, took, best)
			}
			if writes > tt.writes {
				t.Errorf("%.2f writes for each start, want at most %.2f", writes, tt.writes)
			}
		})
	}
}

// Functions can't hold messages: they come back at their places in the line, most of them once, and the limit holds.
func TestFunctionFleet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := newCounter(), newStarts()
		c.delay = 10 * time.Millisecond
		var hosts []*fakeHost
		for i := range 5 {
			l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: Plan{Rate: Rate{N: 10}}, Counter: c}})
			h := newHost(t, l, s.handler(time.Millisecond), 10, 0)
			h.start(messages(fmt.Sprint(i), 200)...)
			hosts = append(hosts, h)
		}
		calls := 0
		for _, h := range hosts {
			h.done.Wait()
			calls += h.calls
		}
		s.check(t, 100*time.Millisecond, 10, keep)
		all := s.all()
		t.Logf("%d receives of 1,000 messages in %s, %d places in %d calls", calls, all[999], calls-1000, c.count(&c.lines))
		if calls > 2500 || all[999] > 115*time.Second {
			t.Errorf("%d receives of 1,000 messages in %s, want at most 2,500 in 105 s and little more", calls, all[999])
		}
		if n := c.count(&c.lines); n > 500 {
			t.Errorf("%d calls for %d places, want fewer: they share calls", n, calls-1000)
		}
	})
}

// A process that may be frozen takes no token that no message needs.
func TestFunctionTakesNothingAhead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounter()
		l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: Plan{Rate: Rate{N: 100}}, Counter: c}})
		begun := time.Now()
		for range 30 {
			if ran, _ := try(t, l, message("a", 1)); !ran {
				t.Fatal("postponed below the limit")
			}
		}
		c.set(func() {
			if taken := c.items["r#*"].tat.Sub(begun) / (10 * time.Millisecond); taken != 30 {
				t.Errorf("%d tokens are taken for 30 messages", taken)
			}
		})
	})
}

// The messages of a function's batch ask together.
func TestFunctionAsksForABatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := newCounter(), newStarts()
		c.delay = 10 * time.Millisecond
		newHost(t, newLimiter(t, []Rule{{Name: "r", Key: All, Plan: Plan{Rate: Rate{N: 10}}, Counter: c}}), s.handler(0), 10, 0).start(messages("a", 10)...)
		time.Sleep(time.Second)
		if n, takes := len(s.all()), c.count(&c.takes); n != 10 || takes > 2 {
			t.Errorf("%d of 10 have run after %d takes, want all after 2", n, takes)
		}
	})
}

// A process whose messages are few takes few tokens: those that lapse are lost to the others.
func TestFewMessagesTakeFewTokens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := newCounter(), newStarts()
		c.delay = 10 * time.Millisecond
		hosts := map[string]*fakeHost{}
		for _, name := range []string{"few", "many"} {
			hosts[name] = newHost(t, newLimiter(t, []Rule{{Name: "r", Key: All, Plan: perSecond(100), Counter: c}}), s.handler(0), 10, 10_000)
		}
		hosts["many"].start(messages("many", 8000)...)
		for _, m := range messages("few", 300) {
			hosts["few"].start(m)
			time.Sleep(200 * time.Millisecond)
		}
		if n := s.count("many"); n < 60*90 {
			t.Errorf("%d starts in a minute beside 5 a second, want nearly 5,700", n)
		}
	})
}

// Messages of several tokens share the rate of a fleet by their cost.
func TestFleetCost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := newCounter(), newStarts()
		c.delay = 10 * time.Millisecond
		cost := func(*sqsonce.Message) int { return 5 }
		for i := range 3 {
			l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: Plan{Rate: Rate{N: 10}}, Cost: cost, Counter: c}})
			newHost(t, l, s.handler(0), 10, 1000).start(messages(fmt.Sprint(i), 100)...)
		}
		time.Sleep(time.Minute)
		s.check(t, 500*time.Millisecond, 2, keep)
		if n := len(s.all()); n < 115 {
			t.Errorf("%d starts of 5 tokens in a minute, want 120", n)
		}
	})
}

// A process whose messages do not come in their turn, because all slots of its host are taken, leaves the limit to the others.
func TestBusyHost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := newCounter(), newStarts()
		c.delay = 10 * time.Millisecond
		hosts := map[string]*fakeHost{}
		for _, name := range []string{"busy", "free"} {
			l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: perSecond(10), Counter: c}})
			hosts[name] = newHost(t, l, s.handler(0), 4, 1000)
			hosts[name].start(messages(name, 1500)...)
		}
		time.Sleep(10 * time.Second)
		for range 4 {
			hosts["busy"].slots <- struct{}{}
		}
		time.Sleep(10 * time.Second)
		before := s.count("free")
		time.Sleep(time.Minute)
		if n := s.count("free") - before; n < 480 {
			t.Errorf("%d starts of the free process in a minute, want nearly 600", n)
		}
		for range 4 {
			<-hosts["busy"].slots
		}
		time.Sleep(mostRest + time.Second)
		before = s.count("busy")
		time.Sleep(time.Minute)
		if n := s.count("busy") - before; n < 200 {
			t.Errorf("%d starts in a minute of the process that was busy, want nearly 300", n)
		}
	})
}

// A worker that asks before it receives: no more than the rate and ten messages, nearly all of it, and few writes.
func TestIntake(t *testing.T) {
	t.Parallel()
	for _, counted := range []bool{false, true} {
		must.RunParallel(t, fmt.Sprint("counter ", counted), func(t *testing.T) {
			c := newCounter()
			c.delay = 10 * time.Millisecond
			r := Rule{Name: "import", Key: All, Plan: Plan{Rate: Rate{N: 20}}}
			workers := 1
			if counted {
				r.Counter, workers = c, 5
			}
			var all sync.WaitGroup
			var mu sync.Mutex
			s := newStarts()
			for range workers {
				intake := must.Get(newLimiter(t, []Rule{r}).Intake("import"))(t)
				all.Go(func() {
					for time.Since(s.begun) < time.Minute {
						n, again := intake(t.Context(), 10)
						mu.Lock()
						for range n {
							s.at["*"] = append(s.at["*"], time.Since(s.begun))
						}
						mu.Unlock()
						if n == 0 {
							time.Sleep(again)
						}
						time.Sleep(time.Millisecond)
					}
				})
			}
			all.Wait()
			s.check(t, 50*time.Millisecond, 20, keep)
			n, takes := len(s.all()), c.count(&c.takes)
			t.Logf("%d in a minute, %d takes", n, takes)
			if n < 1180 || takes > n/2 {
				t.Errorf("%d messages in a minute and %d takes, want 1,200 and few", n, takes)
			}
		})
	}
	l := newLimiter(t, []Rule{{Name: "r", Plan: Plan{Concurrency: 1}}})
	for _, name := range []string{"r", "none"} {
		if _, err := l.Intake(name); err == nil {
			t.Errorf("rule %s: no error", name)
		}
	}
}
