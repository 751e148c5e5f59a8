package limit

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/must"
)

// fleet runs a number of processes with the same rule and the same messages each, and returns their starts.
func fleet(t *testing.T, c *fakeCounter, p Plan, processes, each int, took time.Duration, optFns ...func(*Options)) *starts {
	t.Helper()
	s := newStarts()
	var all sync.WaitGroup
	for i := range processes {
		l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: p, Counter: c}}, optFns...)
		all.Go(func() {
			h := newHost(t, l, s.handler(took), 10, 1000)
			h.send(messages(fmt.Sprint(i), each)...)
			h.done.Wait()
		})
	}
	all.Wait()
	return s
}

// A fleet never runs more handlers of a key than its plan, and its slots are kept between handlers.
func TestFleetSlots(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		n        int
		each     int
		took     time.Duration
		use      float64
		requests float64 // a handler
	}{
		{"short handlers", 3, 300, 900 * time.Millisecond, 0.75, 1},
		{"of 0.2 s", 3, 300, 200 * time.Millisecond, 0.8, 0.25},
		{"of 2 s", 3, 60, 2 * time.Second, 0.7, 3.5},
		{"longer than a lease", 2, 4, 70 * time.Second, 0.6, 45},
		{"records of several slots", 40, 200, 300 * time.Millisecond, 0.4, 1},
	} {
		must.RunParallel(t, tt.name, func(t *testing.T) {
			c := newCounter()
			c.delay = 5 * time.Millisecond
			s := fleet(t, c, Plan{Concurrency: tt.n}, 5, tt.each, tt.took)
			took := time.Since(s.begun)
			best := time.Duration(5*tt.each/tt.n) * tt.took
			use, requests := float64(best)/float64(took), float64(c.count(&c.others))/float64(5*tt.each)
			t.Logf("%d at once, use %.2f, %.2f requests a handler", s.atMost(), use, requests)
			if s.atMost() > tt.n {
				t.Errorf("%d handlers at once, want at most %d", s.atMost(), tt.n)
			}
			if tt.took > 500*time.Millisecond && tt.took < time.Second { // the processes take turns
				for i := range 5 {
					if share := float64(s.before(fmt.Sprint(i), took*3/4)) / float64(5*tt.each*3/4); share == 0 || share > 0.5 {
						t.Errorf("process %d has had %.2f of the first handlers, want about 0.2", i, share)
					}
				}
			}
			if use < tt.use || requests > tt.requests {
				t.Errorf("use %.2f and %.2f requests a handler, want %.2f and %.2f", use, requests, tt.use, tt.requests)
			}
		})
	}
}

// A process that crashes keeps its slots for a lease.
func TestSlotOfACrashedProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounter()
		must.Do(t, c.Acquire(t.Context(), "r#*#0", "crashed", lease))
		s := fleet(t, c, Plan{Concurrency: 1}, 1, 1, 0)
		if at := s.all()[0]; at < lease || at > lease+3*time.Second {
			t.Errorf("started after %s, want 30 s and little more", at)
		}
	})
}

// A handler whose slot is lost runs on. A lost slot is not used again.
func TestSlotIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := newCounter(), newStarts()
		l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: Plan{Concurrency: 1}, Counter: c}})
		h := newHost(t, l, s.handler(15*time.Second), 10, 10)
		h.send(messages("a", 2)...)
		time.Sleep(5 * time.Second)
		c.set(func() { c.slots["r#*#0"] = owned{"another", time.Now().Add(time.Minute)} })
		h.done.Wait()
		if at := s.all()[1]; at < 65*time.Second || at > 70*time.Second {
			t.Errorf("the second started after %s, want 65 s, when the other owner's lease has ended, and little more", at)
		}
	})
}

// A process gives its slots back when nothing waits, and at Close. A host that can't hold gives them back at once.
func TestSlotsAreReleased(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		room  int
		close bool
		after time.Duration
	}{
		"idle": {10, false, idleKept + time.Millisecond}, "close": {10, true, time.Millisecond}, "function": {0, false, time.Millisecond},
	} {
		must.RunParallel(t, name, func(t *testing.T) {
			c := newCounter()
			l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: Plan{Concurrency: 2}, Counter: c}})
			h := newHost(t, l, newStarts().handler(time.Second), 10, tt.room)
			h.send(messages("a", 2)...)
			h.done.Wait()
			if tt.close {
				must.Do(t, l.Close(t.Context()))
			}
			time.Sleep(tt.after)
			synctest.Wait()
			c.set(func() {
				if len(c.slots) > 0 {
					t.Errorf("%d slots are not free", len(c.slots))
				}
			})
		})
	}
}

// A slot whose acquire has no answer is released.
func TestLostAcquire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounter()
		c.lose = 1
		s := fleet(t, c, Plan{Concurrency: 1}, 1, 1, 0)
		if at := s.all()[0]; at > 3*time.Second {
			t.Errorf("started after %s, want little more than 1 s: the slot was not released", at)
		}
	})
}

// A smaller plan takes no slot from a running handler, and holds from its end on.
func TestFewerSlots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := newCounter(), newStarts()
		var n atomic.Int64
		n.Store(4)
		l := newLimiter(t, []Rule{{Name: "r", Key: All, PlanOf: func(string) Plan { return Plan{Concurrency: int(n.Load())} }, Counter: c}})
		h := newHost(t, l, s.handler(20*time.Second), 10, 20)
		h.send(messages("a", 6)...)
		time.Sleep(time.Second)
		if r := s.running(); r != 4 {
			t.Fatalf("%d run, want 4", r)
		}
		n.Store(1)
		h.send(messages("a", 7)[6])
		time.Sleep(18 * time.Second)
		if r := s.running(); r != 4 {
			t.Errorf("%d run, want the 4 that had started", r)
		}
		time.Sleep(5 * time.Second)
		if r := s.running(); r > 1 {
			t.Errorf("%d run, want 1 at most", r)
		}
		h.done.Wait()
	})
}

// Keys and slots have names of their own, whatever a key holds, and each name is text of a length that stores keep.
func TestNames(t *testing.T) {
	t.Parallel()
	r := &rule{Rule: Rule{Name: "r"}}
	seen := map[string]string{}
	for _, key := range []string{"a", "a#1", "a%231", "a#", "%", "\x00", "\xff", strings.Repeat("k", 2000), strings.Repeat("#", 300), "sha256:x", "sha256:y", escape(strings.Repeat("k", 2000))} {
		g := &gate{rule: r, key: key}
		for _, name := range []string{g.name(), g.slotName(1)} {
			if other, ok := seen[name]; ok || len(name) > 600 || !utf8.ValidString(name) || strings.Contains(name, "\x00") {
				t.Errorf("key %q has the name %q, as %q has", key, name, other)
			}
			seen[name] = key
		}
	}
}

// Both limits of a plan hold together.
func TestFleetSlotsAndRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounter()
		s := fleet(t, c, Plan{Concurrency: 2, Rate: Rate{N: 5}}, 3, 30, 200*time.Millisecond)
		s.check(t, 200*time.Millisecond, 5, keep)
		if took := time.Since(s.begun); s.atMost() > 2 || took > 25*time.Second {
			t.Errorf("%d at once, in %s; want 2 and 18 s", s.atMost(), took)
		}
	})
}

// A slot that is given back after its time is asked for again, also where no message comes that would do it.
func TestSlotIsAskedForAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStarts()
		l := newLimiter(t, []Rule{{Name: "r", Plan: Plan{Concurrency: 1}, Counter: newCounter()}})
		newHost(t, l, s.handler(100*time.Millisecond), 10, 1000).start(messages("a", 1000)...)
		time.Sleep(90 * time.Second)
		if n := s.count("a"); n < 850 {
			t.Errorf("%d starts in 90 s, want 10 a second but for the pauses between two slots", n)
		}
	})
}

// A handler starts only in a slot with 5 s of its lease left.
func TestSlotHasTimeLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounter()
		l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: Plan{Concurrency: 1, Rate: Rate{N: 1, Per: lease - leastLease/2}}, Counter: c}})
		var runs atomic.Int64
		h := newHost(t, l, func(context.Context, *sqsonce.Message) error {
			runs.Add(1)
			c.set(func() {
				if left := time.Until(c.slots["r#*#0"].until); left < leastLease {
					t.Errorf("run %d starts with %s left of its lease, want at least %s", runs.Load(), left, leastLease)
				}
			})
			return nil
		}, 10, 10)
		h.start(messages("a", 10)...)
		time.Sleep(3 * time.Minute)
		if n := runs.Load(); n < 3 {
			t.Errorf("%d runs in three minutes, want about 6", n)
		}
	})
}
