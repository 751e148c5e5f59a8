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
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// hold postpones a message, which its host holds after room has been called.
func hold(t *testing.T, l *Limiter, m *sqsonce.Message, room func()) (turn settle.Turn, held bool) {
	t.Helper()
	ctx, _ := settle.New(settle.WithHolding(t.Context()))
	settle.HeldBy(ctx, holder{room: func(string) bool { room(); return true }})
	err := l.Do(ctx, m, func(context.Context) error { return errors.New("ran") })
	if sqsonce.OutcomeOf(err).Kind != sqsonce.OutcomePostponed {
		t.Fatalf("not postponed: %v", err)
	}
	return settle.TurnOf(err)
}

func nothing() {}

// wantWaiting checks how many messages wait for a rule.
func wantWaiting(t *testing.T, l *Limiter, rule int, want int64) {
	t.Helper()
	if s := l.Stats()[rule]; s.Waiting != want || s.Running != 0 {
		t.Errorf("%d wait, %d run, want %d and 0", s.Waiting, s.Running, want)
	}
}

// A message is not held for a turn that a closed limiter won't give.
func TestClosedWhileTheHostIsAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: perSecond(1)}})
		try(t, l, message("first", 1))
		if _, held := hold(t, l, message("a", 1), func() { must.Do(t, l.Close(t.Context())) }); held {
			t.Error("held")
		}
	})
}

// Of two receives of a message the later one waits, whatever becomes of the earlier one.
func TestHeldTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: perSecond(1)}})
		try(t, l, message("first", 1))
		var earlier settle.Turn
		turn, _ := hold(t, l, message("a", 1), func() { earlier, _ = hold(t, l, message("a", 1), nothing) })
		wantWaiting(t, l, 0, 1)
		earlier.Left()
		<-turn.Ready
		if ran, _ := ranHeld(t, l, message("a", 1)); !ran {
			t.Error("the message did not run in its turn")
		}
	})
}

// A turn that comes while the host is asked for room passes on like any other.
func TestTurnWhileTheHostIsAskedPassesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: perSecond(1)}})
		try(t, l, message("first", 1))
		hold(t, l, message("a", 1), func() { time.Sleep(1500 * time.Millisecond) })
		time.Sleep(keep)
		wantWaiting(t, l, 0, 0)
	})
}

// What a message has of one rule goes back when another one postpones it in its turn.
func TestOtherRuleInTheTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: perSecond(1)}, {Name: "slots", Key: All, Plan: Plan{Concurrency: 1}}})
		var turn settle.Turn
		must.Do(t, l.Do(t.Context(), message("first", 1), func(context.Context) error {
			time.Sleep(time.Second)
			turn, _ = hold(t, l, message("a", 1), nothing)
			return nil
		}))
		<-turn.Ready
		must.Do(t, l.Pause(t.Context(), "r", "*", time.Minute))
		hold(t, l, message("a", 1), nothing)
		wantWaiting(t, l, 1, 0)
	})
}

// A message that comes after its turn waits for another one, also where the process was frozen until then.
func TestTurnWhileFrozen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: perSecond(1)}})
		try(t, l, message("first", 1))
		turn, _ := hold(t, l, message("a", 1), nothing)
		<-turn.Ready
		l.mu.Lock()
		l.rules[0].gates["*"].timer.stop()
		l.mu.Unlock()
		time.Sleep(time.Minute)
		if ran, _ := ranHeld(t, l, message("a", 1)); !ran {
			t.Error("the message waits, and nothing else has started for a minute")
		}
	})
}

// The host is not asked whether a message must run that may run: that may take it a call of SQS.
func TestHostIsNotAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: perSecond(1)}})
		ctx, _ := settle.New(t.Context())
		settle.HeldBy(ctx, holder{slow: time.Second})
		begun := time.Now()
		must.Do(t, l.Do(ctx, message("a", 1), func(context.Context) error { return nil }))
		if waited := time.Since(begun); waited > 0 {
			t.Errorf("waited %s", waited)
		}
	})
}

// Tokens that have lapsed don't go back: with one of another second they would do for a message that needs two.
func TestLapsedTokensDoNotGoBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounter()
		l := newLimiter(t, []Rule{{
			Name: "r", Key: All, Plan: Plan{Rate: Rate{N: 2}}, Counter: c, Cost: func(*sqsonce.Message) int { return 2 },
		}}, func(o *Options) { o.OnCounterDown = OnCounterDownStop })
		c.set(func() { c.err = errors.New("down") })
		l.tokens(time.Now(), 0, 2)
		ctx, _ := settle.New(t.Context())
		must.Do(t, l.Do(ctx, message("a", 1), func(ctx context.Context) error {
			time.Sleep(2 * time.Second)
			settle.Ran(ctx, false)
			return nil
		}))
		l.tokens(time.Now(), 0, 1)
		if ran, _ := try(t, l, message("b", 1)); ran {
			t.Error("a message of two tokens runs with one")
		}
	})
}

// TestLateStartsDoNotGoBack: an own schedule has had the time of a start that took longer than a second to find its store down. It is
// not remembered for longer.
func TestLateStartsDoNotGoBack(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		took time.Duration
		debt bool
		back bool
	}{{900 * time.Millisecond, false, true}, {1100 * time.Millisecond, false, false}, {900 * time.Millisecond, true, true}, {1100 * time.Millisecond, true, false}} {
		synctest.Test(t, func(t *testing.T) {
			l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: Plan{Rate: Rate{N: 1, Per: 10 * time.Second}}}})
			ctx, _ := settle.New(t.Context())
			settle.HeldBy(ctx, holder{debt: tt.debt})
			if tt.debt {
				try(t, l, message("first", 1))
				time.Sleep(9500 * time.Millisecond)
			}
			must.Do(t, l.Do(ctx, message("a", 1), func(ctx context.Context) error {
				time.Sleep(tt.took)
				settle.Ran(ctx, false)
				return nil
			}))
			if ran, _ := try(t, l, message("b", 1)); ran != tt.back {
				t.Errorf("%+v: the next message runs: %t", tt, ran)
			}
		})
	}
}

// For 20 s all events are done elsewhere, and then all are new. Starts that go back don't come on top of a burst that is full without them.
func TestStartsThatGoBackKeepTheRate(t *testing.T) {
	t.Parallel()
	for _, burst := range []int{1, 3} {
		for _, took := range []time.Duration{5 * time.Millisecond, 900 * time.Millisecond} { // of the store's answer
			for _, apart := range []time.Duration{0, time.Millisecond / 10} {
				must.RunParallel(t, fmt.Sprint("burst ", burst, ", ", took, ", ", apart, " apart"), func(t *testing.T) {
					l, s := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: Plan{Rate: Rate{N: 10, Burst: burst}}}}), newStarts()
					run := s.handler(time.Second)
					var all sync.WaitGroup
					for i := range 30 {
						all.Go(func() {
							time.Sleep(time.Duration(i) * apart)
							for m := message(fmt.Sprint(i), 2); time.Since(s.begun) < 25*time.Second; {
								ctx, _ := settle.New(t.Context())
								if l.Do(ctx, m, func(ctx context.Context) error {
									time.Sleep(took)
									if time.Since(s.begun) > 20*time.Second {
										return run(ctx, m)
									}
									settle.Ran(ctx, false)
									return nil
								}) != nil {
									time.Sleep(20 * time.Millisecond)
								}
							}
						})
					}
					all.Wait()
					s.check(t, 100*time.Millisecond, burst, keep)
					if n := len(s.all()); n < 45 {
						t.Errorf("%d starts in 5 s, want 50", n)
					}
				})
			}
		}
	}
}

// The messages of a host without free slots have few turns of a slow plan: each keeps a token from others for a second.
func TestRestOfASlowPlan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: Plan{Rate: Rate{N: 1, Per: 10 * time.Second}}}})
		try(t, l, message("first", 1))
		var turns []settle.Turn
		for _, m := range messages("a", 300) {
			turn, _ := hold(t, l, m, nothing)
			turns = append(turns, turn)
		}
		time.Sleep(20 * time.Minute)
		n := 0
		for _, turn := range turns {
			select {
			case <-turn.Ready:
				n++
			default:
			}
		}
		if n > 30 { // ten steps apart but for the first ones
			t.Errorf("%d turns in 20 minutes", n)
		}
	})
}

// A message that comes in its turn ends the rest of its host: the next one that doesn't come delays others for a second only.
func TestTurnEndsARest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: perSecond(1)}})
		try(t, l, message("first", 1))
		turns := map[string]settle.Turn{}
		for _, id := range []string{"late1", "late2", "comes", "late3", "last"} {
			turns[id], _ = hold(t, l, message(id, 1), nothing)
			time.Sleep(time.Nanosecond)
		}
		<-turns["comes"].Ready
		if ran, _ := ranHeld(t, l, message("comes", 1)); !ran {
			t.Fatal("the message did not run in its turn")
		}
		<-turns["late3"].Ready
		begun := time.Now()
		<-turns["last"].Ready
		if waited := time.Since(begun); waited > keep {
			t.Errorf("the last message waited for %s behind one that did not come, want %s", waited, keep)
		}
	})
}

// A message that is here gets the tokens for which it asks, although others before it do not come in their turns.
func TestTokensOfARest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounter()
		c.delay = 10 * time.Millisecond
		l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: perSecond(10), Counter: c}})
		try(t, l, message("first", 1))
		l.mu.Lock()
		l.rules[0].gates["*"].restUntil = time.Now().Add(5 * time.Second)
		l.mu.Unlock()
		time.Sleep(time.Second)
		if ran, d := try(t, l, message("a", 2)); !ran {
			t.Errorf("postponed for %s", d)
		}
	})
}

// The time for which a message is held at most counts what is owed before it.
func TestHeldBehindADebt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: Plan{Rate: Rate{N: 1, Per: 10 * time.Second}}}})
		for range 5 {
			ctx, _ := settle.New(t.Context())
			settle.HeldBy(ctx, holder{debt: true})
			must.Do(t, l.Do(ctx, message("a", 5), func(context.Context) error { return nil }))
		}
		err := l.Do(heldHost(t.Context()), message("b", 1), func(context.Context) error { return errors.New("ran") })
		if d := sqsonce.OutcomeOf(err).After; d != 50*time.Second {
			t.Errorf("postponed for %s, want 50 s", d)
		}
	})
}

// A message in its turn does not run before it comes.
func TestStatsOfATurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, []Rule{{Name: "r", Key: All, Plan: perSecond(1)}})
		try(t, l, message("first", 1))
		turn, _ := hold(t, l, message("a", 1), nothing)
		<-turn.Ready
		wantWaiting(t, l, 0, 1)
	})
}
