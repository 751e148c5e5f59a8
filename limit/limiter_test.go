package limit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// try calls the limiter as a host that can't hold does, and returns whether the handler ran, and else the delay.
func try(t *testing.T, l *Limiter, m *sqsonce.Message) (ran bool, delay time.Duration) {
	t.Helper()
	ctx, _ := settle.New(t.Context())
	err := l.Do(ctx, m, func(context.Context) error { ran = true; return nil })
	o := sqsonce.OutcomeOf(err)
	if !ran && o.Kind != sqsonce.OutcomePostponed {
		t.Fatalf("outcome %s, want done or postponed: %v", o.Kind, err)
	}
	if o.Postpone {
		delay = o.After
	}
	return ran, delay
}

func message(group string, receives int) *sqsonce.Message {
	return &sqsonce.Message{ID: group, Group: group, ReceiveCount: receives}
}

// heldHost is a host's context for a message that it holds.
func heldHost(ctx context.Context) context.Context {
	ctx, _ = settle.New(settle.WithHolding(ctx))
	settle.HeldBy(ctx, holder{room: func(string) bool { return true }})
	return ctx
}

func perSecond(n int) Plan { return Plan{Rate: Rate{N: n, Burst: 1}} }

func TestConcurrency(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, s := newLimiter(t, []Rule{{Name: "r", Plan: Plan{Concurrency: 3}}}), newStarts()
		h := newHost(t, l, s.handler(time.Second), 10, 100)
		h.send(messages("a", 30)...)
		h.send(messages("b", 1)...)
		h.done.Wait()
		if at := s.all(); s.atMost() != 4 || at[30] > 9*time.Second+time.Millisecond || s.at["b"][0] > time.Millisecond {
			t.Errorf("%d at once, the last after %s, the other key's after %s; want 3 and 1, 9 s, at once", s.atMost(), at[30], s.at["b"])
		}
	})
}

// Under one key the groups take turns, by cost, and in a group the message with more receives goes first.
func TestGroupsTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cost := func(m *sqsonce.Message) int { return 1 + strings.Count(m.Group, "big") }
		l, s := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: Plan{Rate: Rate{N: 1, Burst: 2}}, Cost: cost}}), newStarts()
		h := newHost(t, l, s.handler(0), 10, 100)
		try(t, l, message("big", 1)) // the burst
		noisy := messages("noisy", 20)
		noisy[7].ReceiveCount = 3
		h.send(slices.Concat(noisy, messages("quiet", 3), messages("big", 3))...)
		h.done.Wait()
		want := "noisy-7 quiet-0 big-0 noisy-0 quiet-1 noisy-1 quiet-2 big-1 noisy-2 noisy-3 big-2 noisy-4"
		if got := strings.Join(s.order[:12], " "); got != want {
			t.Errorf("order\n%s\nwant\n%s", got, want)
		}
	})
}

// A group that comes later takes turns from then on: it does not catch up.
func TestLateGroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, s := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: perSecond(1)}}), newStarts()
		h := newHost(t, l, s.handler(0), 10, 100)
		h.send(messages("early", 30)...)
		time.Sleep(10 * time.Second)
		h.send(messages("late", 10)...)
		time.Sleep(10 * time.Second)
		if n := s.count("late"); n < 4 || n > 6 {
			t.Errorf("%d of ten starts are the late group's, want 5", n)
		}
	})
}

// A turn that is not used goes to the next message after a second, and at once where the host gives the message back.
func TestTurnsPassOn(t *testing.T) {
	t.Parallel()
	for _, leaves := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: Plan{Rate: Rate{N: 1, Per: 5 * time.Second}}}})
			try(t, l, message("first", 1))
			var turns []settle.Turn
			for _, id := range []string{"a", "b"} {
				err := l.Do(heldHost(t.Context()), message(id, 1), nil)
				held, ok := settle.TurnOf(err)
				if !ok {
					t.Fatalf("not held: %v", err)
				}
				turns = append(turns, held)
			}
			began := time.Now()
			if leaves {
				turns[0].Left()
			} else {
				<-turns[0].Ready
			}
			<-turns[1].Ready
			want := 5 * time.Second
			if !leaves {
				want += keep
			}
			if took := time.Since(began); took != want {
				t.Errorf("the second message's turn after %s, want %s", took, want)
			}
			ran := false
			must.Do(t, l.Do(heldHost(t.Context()), message("b", 1), func(context.Context) error { ran = true; return nil }))
			if !ran {
				t.Error("the message did not run in its turn")
			}
		})
	}
}

// A turn that comes while the host is asked for room is kept for the message.
func TestTurnWhileTheHostIsAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: perSecond(1)}})
		ask := func(slow time.Duration) settle.Turn {
			ctx, _ := settle.New(settle.WithHolding(t.Context()))
			settle.HeldBy(ctx, holder{room: func(string) bool { time.Sleep(slow); return true }})
			turn, held := settle.TurnOf(l.Do(ctx, message("a", 1), nil))
			if !held {
				t.Fatal("not held")
			}
			return turn
		}
		for _, before := range []bool{false, true} {
			try(t, l, message("first", 2))
			if before {
				ask(0)
			}
			<-ask(1500 * time.Millisecond).Ready
			must.Do(t, l.Do(heldHost(t.Context()), message("a", 1), func(context.Context) error { return nil }))
			time.Sleep(5 * time.Second)
		}
	})
}

// All rules hold, and a message that one of them refuses keeps nothing of the others.
func TestSeveralRules(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, s := newLimiter(t, []Rule{
			{Name: "all", Key: All, Plan: Plan{Rate: Rate{N: 10}}},
			{Name: "tenant", Plan: Plan{Concurrency: 1}},
		}), newStarts()
		h := newHost(t, l, s.handler(time.Second), 100, 100)
		h.send(messages("slow", 20)...)
		began := time.Since(s.begun)
		for i := range 18 {
			h.send(messages(fmt.Sprint("t", i), 1)...)
		}
		h.done.Wait()
		s.check(t, 100*time.Millisecond, 10, keep)
		for i := range 18 {
			if at := s.at[fmt.Sprint("t", i)][0] - began; at > 1100*time.Millisecond {
				t.Errorf("tenant %d waited for %s, want at most 1.1 s: the slow tenant's messages keep tokens", i, at)
			}
		}
		if last := s.at["slow"][19]; last > 25*time.Second {
			t.Errorf("the slow tenant's last message started after %s, want 19 s and little more", last)
		}
	})
}

// A token that lapses while the host is asked whether the message must run is not used: the message is postponed.
func TestTokenLapsesWhileTheHostIsAsked(t *testing.T) {
	t.Parallel()
	slow := Rule{Name: "slow", Key: All, Plan: Plan{Rate: Rate{N: 2, Per: 5 * time.Second, Burst: 1}}}
	for name, tt := range map[string]struct {
		rules []Rule
		debt  bool
		asked time.Duration
		runs  bool
	}{
		"in time":          {[]Rule{slow}, false, 3 * time.Second, true},
		"lapsed":           {[]Rule{slow}, false, 4 * time.Second, false},
		"lapsed, in debt":  {[]Rule{slow}, true, 4 * time.Second, true},
		"the first rule's": {[]Rule{{Name: "r", Key: All, Plan: perSecond(10)}, slow}, false, 3 * time.Second, false},
		"no tokens":        {[]Rule{{Name: "r", Key: All, Plan: Plan{Concurrency: 2}}, slow}, false, 3 * time.Second, true},
	} {
		must.RunParallel(t, name, func(t *testing.T) {
			l := newLimiter(t, tt.rules)
			try(t, l, message("a", 1))
			ctx, _ := settle.New(settle.WithHolding(t.Context()))
			settle.HeldBy(ctx, holder{debt: tt.debt, slow: tt.asked})
			ran := false
			err := l.Do(ctx, message("b", 1), func(context.Context) error { ran = true; return nil })
			if ran != tt.runs || !ran && sqsonce.OutcomeOf(err).Kind != sqsonce.OutcomePostponed {
				t.Errorf("runs %t, want %t: %v", ran, tt.runs, err)
			}
			if s := l.Stats()[0]; s.Waiting+s.Running > 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// Starts that no handler has used go back.
func TestUnusedStartsGoBack(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		told []bool // by middleware: what settle.Ran gets
		err  error
		back bool
	}{
		"done":                              {[]bool{false, true}, nil, false},
		"failed":                            {[]bool{false, true}, errors.New("card declined"), false},
		"postponed by the handler":          {[]bool{false, true}, sqsonce.Postpone(0, nil), false},
		"the event is done":                 {[]bool{false}, nil, true},
		"the store is down":                 {[]bool{false}, sqsonce.Unavailable(errors.New("timeout")), true},
		"in progress elsewhere":             {[]bool{false}, sqsonce.ErrInProgress, true},
		"in progress, without middleware":   {nil, sqsonce.ErrInProgress, true},
		"another limiter has postponed it":  {[]bool{false}, sqsonce.Postpone(0, nil), true},
		"in progress, says the handler":     {[]bool{false, true}, sqsonce.ErrInProgress, false},
		"a duplicate inside of the handler": {[]bool{false, true, false}, nil, false},
		"a handler that nobody tells of":    {nil, nil, false},
	} {
		for _, c := range []Counter{nil, newCounter()} {
			must.RunParallel(t, fmt.Sprint(name, c != nil), func(t *testing.T) {
				for _, before := range [][]bool{nil, {false}, {false, true}} { // by middleware around Do
					time.Sleep(10 * time.Second) // a full burst
					l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: perSecond(1), Counter: c}})
					ctx, _ := settle.New(t.Context())
					for _, ran := range before {
						settle.Ran(ctx, ran)
					}
					_ = l.Do(ctx, message("a", 1), func(ctx context.Context) error {
						for _, ran := range tt.told {
							settle.Ran(ctx, ran)
						}
						return tt.err
					})
					if ran, _ := try(t, l, message("b", 1)); ran != tt.back {
						t.Errorf("told %v before: the next message runs: %t, want %t", before, ran, tt.back)
					}
				}
			})
		}
	}
}

// A panic of the handler, or its end by Goexit, frees its place.
func TestHandlerPanics(t *testing.T) {
	t.Parallel()
	l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: Plan{Concurrency: 1}}})
	if err := contain(func() error {
		return l.Do(t.Context(), message("a", 1), func(context.Context) error { panic("boom") })
	}); err == nil {
		t.Fatal("no error")
	}
	if ran, _ := try(t, l, message("b", 1)); !ran {
		t.Error("the place is not free")
	}
}

// A host that can't hold gets places in a line, 5% further apart than the rate. Who has had a place goes first.
func TestPlaces(t *testing.T) {
	t.Parallel()
	for _, c := range []Counter{nil, newCounter()} {
		t.Run(fmt.Sprint("counter ", c != nil), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: perSecond(1), Counter: c}})
				try(t, l, message("first", 1))
				var delays []time.Duration
				for range 20 {
					_, d := try(t, l, message("a", 1))
					delays = append(delays, d)
				}
				if d := delays[19] - delays[9]; d != 10500*time.Millisecond || delays[0] != time.Second {
					t.Errorf("delays %s, want 1 s and 1.05 s more for each", delays)
				}
				time.Sleep(10 * time.Second)
				if ran, _ := try(t, l, message("new", 1)); ran {
					t.Error("a new message ran before those of the line")
				}
				if ran, _ := try(t, l, message("a", 2)); !ran {
					t.Error("a message that has had its place did not run")
				}
				time.Sleep(time.Minute)
				if ran, _ := try(t, l, message("new", 1)); !ran {
					t.Error("a new message did not run when the line was over")
				}
			})
		})
	}
}

// A message at its last receive runs, and what it takes is owed.
func TestDebt(t *testing.T) {
	t.Parallel()
	for _, c := range []Counter{nil, newCounter()} {
		t.Run(fmt.Sprint("counter ", c != nil), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: perSecond(1), Counter: c}})
				ran := 0
				for range 10 {
					ctx, _ := settle.New(t.Context())
					settle.HeldBy(ctx, holder{debt: true})
					must.Do(t, l.Do(ctx, message("a", 5), func(context.Context) error { ran++; return nil }))
				}
				time.Sleep(8500 * time.Millisecond)
				if ok, _ := try(t, l, message("a", 2)); ok || ran != 10 {
					t.Errorf("%d of 10 ran in debt; the debt is paid: %t, want 10 and false", ran, ok)
				}
				time.Sleep(2 * time.Second)
				if ok, _ := try(t, l, message("a", 2)); !ok {
					t.Error("the debt is not paid after 10.5 s")
				}
			})
		})
	}
}

func TestPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounter()
		rules := []Rule{{Name: "r", Key: All, Plan: Plan{Rate: Rate{N: 10}}, Counter: c}}
		here, there := newLimiter(t, rules), newLimiter(t, rules)
		must.Do(t, here.Pause(t.Context(), "r", "*", 10*time.Second))
		must.Do(t, here.Pause(t.Context(), "r", "*", 5*time.Second))
		for _, l := range []*Limiter{here, there} {
			if ran, d := try(t, l, message("a", 1)); ran || d < 9*time.Second {
				t.Errorf("ran %t, again in %s; want a pause of 10 s", ran, d)
			}
		}
		alone := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: perSecond(10)}})
		must.Do(t, alone.Pause(t.Context(), "r", "*", 10*time.Second))
		must.Do(t, alone.Pause(t.Context(), "r", "*", 5*time.Second))
		if ran, d := try(t, alone, message("a", 1)); ran || d < 9*time.Second {
			t.Errorf("without a counter: ran %t, again in %s; want a pause of 10 s", ran, d)
		}
		if err, ok := errors.AsType[*sqsonce.OptionError](here.Pause(t.Context(), "rr", "*", 1)); !ok || err.Field != "rule" {
			t.Errorf("unknown rule: %v", err)
		}
		time.Sleep(10 * time.Second)
		s := newStarts()
		h := newHost(t, there, s.handler(0), 10, 100)
		h.send(messages("a", 30)...)
		h.done.Wait()
		s.check(t, 100*time.Millisecond, 10, keep)
		if at := s.all(); at[29] > 5*time.Second {
			t.Errorf("the last one after %s: the pause did not end", at[29])
		}
	})
}

// A pause holds at once in its process. The others use the tokens that they have.
func TestPauseOfAFleet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := newCounter(), newStarts()
		c.delay = 10 * time.Millisecond
		var first *Limiter
		for i := range 5 {
			l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: Plan{Rate: Rate{N: 10}}, Counter: c}})
			newHost(t, l, s.handler(0), 10, 1000).start(messages(fmt.Sprint(i), 200)...)
			if i == 0 {
				first = l
			}
		}
		time.Sleep(20 * time.Second)
		must.Do(t, first.Pause(t.Context(), "r", "*", 10*time.Second))
		own, all, paused := s.count("0"), len(s.all()), time.Since(s.begun)
		time.Sleep(9 * time.Second)
		if n := s.count("0") - own; n > 0 {
			t.Errorf("%d starts in the process that paused", n)
		}
		if at := s.all(); len(at)-all > 20 || at[len(at)-1] > paused+2*time.Second {
			t.Errorf("%d starts, the last one %s after the pause began; want those of two seconds", len(at)-all, at[len(at)-1]-paused)
		}
		time.Sleep(6 * time.Second)
		if n := len(s.all()) - all; n < 40 {
			t.Errorf("%d starts until 5 s after the pause, want 50", n)
		}
	})
}

// After Close nothing runs, and no timer is left.
func TestClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: perSecond(1)}})
		try(t, l, message("a", 1))
		_ = l.Do(heldHost(t.Context()), message("b", 1), nil)
		must.Do(t, l.Close(t.Context()))
		time.Sleep(time.Hour)
		if ran, _ := try(t, l, message("c", 1)); ran {
			t.Error("ran after Close")
		}
	})
}
