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

	"github.com/sqsonce/sqsonce/internal/counting"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/question"
	"github.com/sqsonce/sqsonce/internal/testlog"
)

// brokenKey is a fleet's counter that fails for one key, such as one whose record can't be read.
type brokenKey struct {
	*fakeCounter
	name string // of the key
}

func (c brokenKey) fails(name string) error {
	if name == c.name || strings.HasPrefix(name, c.name+"#") {
		return errors.New("a record that can't be read")
	}
	return nil
}

func (c brokenKey) Take(ctx context.Context, t counting.Take) (counting.Grant, error) {
	if err := c.fails(t.Key); err != nil {
		return counting.Grant{}, err
	}
	return c.fakeCounter.Take(ctx, t)
}

func (c brokenKey) Acquire(ctx context.Context, slot, owner string, lease time.Duration) error {
	if err := c.fails(slot); err != nil {
		return err
	}
	return c.fakeCounter.Acquire(ctx, slot, owner, lease)
}

// A host hears that messages stand where the Counter is down for the whole rule and none of them starts soon, until it answers again.
func TestStandingMessages(t *testing.T) {
	t.Parallel()
	daily := Plan{Rate: Rate{N: 1, Per: 24 * time.Hour, Burst: 1}}
	for _, tt := range []struct {
		plan   Plan
		policy CounterPolicy
		broken bool // the key alone
		want   bool
	}{
		{perSecond(10), OnCounterDownStop, false, true}, {perSecond(10), OnCounterDownStop, true, false},
		{perSecond(10), OnCounterDownKeepShare, false, false}, {daily, OnCounterDownKeepShare, false, true},
		{Plan{Concurrency: 3}, OnCounterDownKeepShare, false, true},
	} {
		must.RunParallel(t, fmt.Sprint(tt), func(t *testing.T) {
			c := newCounter()
			r := Rule{Name: "r", Plan: tt.plan, Counter: c}
			if tt.broken {
				r.Counter = brokenKey{c, "r#a"}
			}
			l := newLimiter(t, []Rule{r}, func(o *Options) { o.OnCounterDown = tt.policy })
			if tt.plan == daily {
				try(t, l, message("a", 1)) // the next start is a step of the process after this one
			}
			if !tt.broken {
				c.set(func() { c.err = errors.New("down") })
			}
			turn, _ := hold(t, l, message("a", 1), nothing)
			if time.Sleep(time.Second); turn.Stands() != tt.want {
				t.Errorf("stands: %t", !tt.want)
			}
			c.set(func() { c.err = nil })
			if time.Sleep(2 * mostWait); turn.Stands() {
				t.Error("stands, and the counter answers")
			}
		})
	}
}

// The error of one key is no outage of the rule: the others go on, and its messages follow the policy. It doesn't prolong an outage.
func TestKeyDown(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		plan        Plan
		policy      CounterPolicy
		least, most int // starts of the broken key in a minute
		others      int // least starts of all others
	}{
		{perSecond(10), OnCounterDownStop, 0, 0, 5 * 590},
		{perSecond(10), OnCounterDownKeepShare, 5, 60, 5 * 590},
		{Plan{Concurrency: 1}, OnCounterDownStop, 0, 0, 5 * 500},
	} {
		must.RunParallel(t, fmt.Sprint(tt.plan, tt.policy), func(t *testing.T) {
			c, s := newCounter(), newStarts()
			var log testlog.Book
			l := newLimiter(t, []Rule{{Name: "r", Plan: tt.plan, Counter: brokenKey{c, "r#bad"}}}, func(o *Options) {
				o.OnCounterDown, o.Logger = tt.policy, slog.New(slog.NewTextHandler(&log, nil))
			})
			h := newHost(t, l, s.handler(100*time.Millisecond), 100, 1000)
			h.start(messages("bad", 200)...)
			for i := range 5 {
				h.start(messages(fmt.Sprint(i), 1000)...)
			}
			others := func() int { return len(s.all()) - s.count("bad") }
			time.Sleep(time.Minute)
			if n := s.count("bad"); n < tt.least || n > tt.most || others() < tt.others {
				t.Errorf("%d starts of the broken key, want %d to %d; %d of others, want %d", n, tt.least, tt.most, others(), tt.others)
			}
			if st := l.Stats()[0]; st.Down != 0 || st.Outages != 0 || st.KeysDown != 1 {
				t.Errorf("%+v, want one key down and no outage", st)
			}
			if n := strings.Count(log.String(), "fails for one key"); n != 1 || !strings.Contains(log.String(), "can't be read") {
				t.Errorf("%d lines about the key, want one with the error:\n%s", n, log.String())
			}
			if n := c.count(&c.takes); n > 5*60*11+200 {
				t.Errorf("%d takes", n)
			}
			c.set(func() { c.err = errors.New("down") })
			time.Sleep(20 * time.Second)
			if st := l.Stats()[0]; st.Down < 10*time.Second || st.Outages != 1 || st.KeysDown != 0 {
				t.Errorf("%+v, want an outage", st)
			}
			c.set(func() { c.err = nil })
			time.Sleep(mostWait + 2*time.Second)
			before := others()
			time.Sleep(10 * time.Second)
			if n := others() - before; n < tt.others/7 || l.Stats()[0].Down != 0 {
				t.Errorf("%d starts in the 10 s after the outage", n)
			}
			synctest.Wait()
		})
	}
}

// The state of a rule: when its next message has its turn, and until when a key is paused.
func TestStats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: Plan{Rate: Rate{N: 2, Per: time.Minute, Burst: 1}}}, {Name: "g", Plan: perSecond(5)}})
		s := newStarts()
		h := newHost(t, l, s.handler(0), 10, 100)
		begun := time.Now()
		h.start(messages("", 3)...)
		time.Sleep(time.Second)
		if r := l.Stats()[0]; r.Waiting != 2 || !r.Next.Equal(begun.Add(30*time.Second)) || r.Paused != 0 || r.Plan != "2/1m" || r.Shared {
			t.Errorf("%+v", r)
		}
		if r := l.Stats()[1]; r.NoGroup < 3 || !r.Next.IsZero() {
			t.Errorf("%+v", r)
		}
		must.Do(t, l.Pause(t.Context(), "r", "*", time.Hour))
		if r := l.Stats()[0]; r.Paused != 1 || !r.PausedUntil.Equal(begun.Add(time.Hour+time.Second)) || !r.Next.Equal(r.PausedUntil) {
			t.Errorf("%+v", r)
		}
	})
}

func TestPlanInWords(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]Plan{
		"":                  {},
		"10/s":              {Rate: Rate{N: 10}},
		"3 at once, 100/1m": {Concurrency: 3, Rate: Rate{N: 100, Per: time.Minute}},
		"1000/24h":          {Rate: Rate{N: 1000, Per: 24 * time.Hour, Burst: 5}},
		"5/10m":             {Rate: Rate{N: 5, Per: 10 * time.Minute}},
		"1/500ms":           {Rate: Rate{N: 1, Per: 500 * time.Millisecond}},
	} {
		if got := p.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// brokenKeys is a fleet's counter that fails for all keys, and answers questions.
type brokenKeys struct {
	*fakeCounter
	questions *int
}

func (c brokenKeys) Take(ctx context.Context, t counting.Take) (counting.Grant, error) {
	if strings.Contains(t.Key, question.KeyPrefix) {
		c.set(func() { *c.questions++ })
		return c.fakeCounter.Take(ctx, t)
	}
	_, _ = c.fakeCounter.Take(ctx, t)
	return counting.Grant{}, errors.New("a record that can't be read")
}

// There is one question at a time, and its answer holds for a second, however many keys fail.
func TestFewQuestions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		questions := 0
		c := newCounter()
		c.delay = fresh / 2
		l := newLimiter(t, []Rule{{Name: "r", Plan: perSecond(1), Counter: brokenKeys{c, &questions}}}, func(o *Options) { o.OnCounterDown = OnCounterDownStop })
		h := newHost(t, l, newStarts().handler(0), 1000, 1000)
		for i := range 200 {
			h.start(messages(fmt.Sprint(i), 1)...)
		}
		time.Sleep(10 * time.Second)
		if n := c.count(&questions); n > 10 || n < 1 {
			t.Errorf("%d questions in 10 s, want at most one in a second", n)
		}
		if s := l.Stats()[0]; s.Outages > 0 || s.KeysDown != 200 {
			t.Errorf("%+v, want 200 keys down and no outage", s)
		}
	})
}

// The calls of many keys that fail when an outage begins are one failure: the next call is a second later.
func TestOutageBeginsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounter()
		c.delay, c.err = 300*time.Millisecond, errors.New("down")
		l := newLimiter(t, []Rule{{Name: "r", Plan: perSecond(1), Counter: c}}, func(o *Options) { o.OnCounterDown = OnCounterDownStop })
		h := newHost(t, l, newStarts().handler(0), 1000, 1000)
		for i := range 12 {
			h.start(messages(fmt.Sprint(i), 1)...)
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(350 * time.Millisecond) // all of them have failed
		l.mu.Lock()
		defer l.mu.Unlock()
		if o := l.rules[0].outage; !o.down() || o.askAt.Sub(o.since) > mostWait {
			t.Errorf("down %t, the next call after %s, want %s at most", o.down(), o.askAt.Sub(o.since), mostWait)
		}
	})
}

// An outage ends although the only key that is asked for can't be read.
func TestOutageEndsByAQuestion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		questions := 0
		c := newCounter()
		c.err = errors.New("down")
		l := newLimiter(t, []Rule{{Name: "r", Plan: perSecond(1), Counter: brokenKeys{c, &questions}}}, func(o *Options) { o.OnCounterDown = OnCounterDownStop })
		newHost(t, l, newStarts().handler(0), 10, 10).start(messages("bad", 3)...)
		time.Sleep(20 * time.Second)
		if s := l.Stats()[0]; s.Down == 0 || s.Outages != 1 {
			t.Errorf("%+v, want an outage", s)
		}
		c.set(func() { c.err = nil })
		time.Sleep(3 * mostWait)
		if s := l.Stats()[0]; s.Down > 0 || s.Outages != 1 || s.KeysDown != 1 {
			t.Errorf("%+v, want the outage to have ended, and the key to be down", s)
		}
	})
}

// failsFor is a fleet's counter that begins to fail for one key.
type failsFor struct {
	*fakeCounter
	key   string
	fails atomic.Bool
}

func (c *failsFor) Take(ctx context.Context, t counting.Take) (counting.Grant, error) {
	if c.fails.Load() && t.Key == c.key {
		return counting.Grant{}, errors.New("a record that can't be read")
	}
	return c.fakeCounter.Take(ctx, t)
}

// An outage without a call goes on for an hour. Then it is unknown whether the Counter is down, and what a process knew of its keys grows
// old again.
func TestOutageWithoutACall(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		ofKey     bool
		after     time.Duration
		stats     bool
		busy, new int // starts in a minute, at least
	}{
		{true, 50 * time.Minute, true, 540, 54}, {true, 2 * time.Hour, true, 11, 11}, {true, 2 * time.Hour, false, 11, 11},
		{false, 50 * time.Minute, true, 540, 54}, {false, 2 * time.Hour, true, 11, 11}, {false, 2 * time.Hour, false, 11, 11},
	} {
		must.RunParallel(t, fmt.Sprintf("%+v", tt), func(t *testing.T) {
			c, s := &failsFor{fakeCounter: newCounter(), key: "r#busy"}, newStarts()
			down := func() { c.set(func() { c.err = errors.New("down") }) }
			l := newLimiter(t, []Rule{{Name: "r", Plan: perSecond(10), Counter: c}})
			h := newHost(t, l, s.handler(0), 10, 5000)
			h.start(messages("busy", 3000)...)
			time.Sleep(2 * time.Minute)
			if c.fails.Store(tt.ofKey); !tt.ofKey {
				down()
			}
			time.Sleep(5 * time.Second)
			h.stop()
			time.Sleep(tt.after)
			if tt.stats {
				if st := l.Stats()[0]; (st.Down > 0 || st.KeysDown > 0) != (tt.after < unasked) {
					t.Errorf("down for %s, %d keys down after %s", st.Down, st.KeysDown, tt.after)
				}
			}
			down()
			for key, least := range map[string]int{"busy": tt.busy, "new": tt.new} {
				before := s.count(key)
				newHost(t, l, s.handler(0), 10, 5000).start(messages(key, 1000)...)
				time.Sleep(time.Minute)
				if n := s.count(key) - before; n < least || n > least*6/5+2 {
					t.Errorf("%d starts of key %s in a minute, want about %d", n, key, least*11/10)
				}
			}
		})
	}
}
