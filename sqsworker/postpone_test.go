package sqsworker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// limiter starts a handler of each name, which is a body's text before the dot, every so often. It does as package
// limit does: it asks the worker before it postpones, and gives turns to those that are held.
type limiter struct {
	every time.Duration
	mu    sync.Mutex
	next  map[string]time.Time // of the token after the last one
	line  map[string]time.Time // the last place of those that are not held
	turns map[string]time.Time // of the messages that are held, by ID
	left  int                  // turns that were given up
}

func newLimiter(every time.Duration) *limiter {
	return &limiter{every: every, next: map[string]time.Time{}, line: map[string]time.Time{}, turns: map[string]time.Time{}}
}

func (l *limiter) handler(h sqsonce.Handler) sqsonce.Handler {
	return func(ctx context.Context, m *sqsonce.Message) error {
		name, _, _ := strings.Cut(m.Body, ".")
		now := time.Now()
		l.mu.Lock()
		turn, waits := l.turns[m.ID]
		free := !l.next[name].After(now)
		if waits && !turn.After(now) {
			delete(l.turns, m.ID)
		} else if free && !waits {
			l.next[name] = now.Add(l.every)
			waits, turn = true, now
		}
		l.mu.Unlock()
		if waits && !turn.After(now) || settle.InDebt(ctx) {
			return h(ctx, m)
		}
		held, _ := settle.Room(ctx, name)
		l.mu.Lock()
		defer l.mu.Unlock()
		switch {
		case !held:
			l.line[name] = later(l.line[name], l.next[name]).Add(l.every * 105 / 100)
			return sqsonce.Postpone(time.Until(l.line[name]), nil)
		case !waits:
			turn = l.next[name]
			l.turns[m.ID], l.next[name] = turn, turn.Add(l.every)
		}
		ready := make(chan struct{})
		time.AfterFunc(time.Until(turn), func() { close(ready) })
		return settle.WithTurn(sqsonce.Postpone(time.Until(turn)+time.Minute, nil), settle.Turn{Ready: ready, Left: func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.left++
		}})
	}
}

// postponeUntil is a handler that postpones messages until then, and counts the others' runs.
func postponeUntil(r *runs, at time.Time, name string) sqsonce.Handler {
	return func(_ context.Context, m *sqsonce.Message) error {
		if strings.Contains(m.Body, name) && time.Now().Before(at) {
			return sqsonce.Postpone(time.Until(at), errTest)
		}
		defer r.begin(m.Body)()
		return nil
	}
}

// A postponed message is held under the heartbeat, in its one receive, at its last one too. It has not failed, and the
// messages behind it in its group wait.
func TestPostponedIsNoTry(t *testing.T) {
	bothKinds(t, setup{maxReceives: 1}, func(x *fixture) {
		x.send("g:1", "g:2", "h:1")
		var r runs
		j := x.start(postponeUntil(&r, time.Now().Add(5*time.Minute), "g:1"), func(o *Options) { o.MaxAttempts = 1 })
		time.Sleep(5*time.Minute - time.Second)
		if got, want := slices.Sorted(slices.Values(r.list())), map[bool]string{true: "[h:1]", false: "[g:2 h:1]"}[j.fifo]; fmt.Sprint(got) != want {
			x.Errorf("ran %v before the turn, want %s", got, want)
		}
		j.stopEmptyAfter(time.Minute)
		if s := j.Stats(); s.Received != 3 || s.Done != 3 || s.Failed != 0 || s.Rejected != 0 || s.Postponed != 1 || len(x.dead()) != 0 {
			x.Errorf("%+v", s)
		}
		if got := r.list(); j.fifo && !slices.Equal(got, []string{"h:1", "g:1", "g:2"}) {
			x.Errorf("ran %v, want the group in order", got)
		}
	})
}

// A postponed message neither proves that what handlers need works, nor that it does not. While nothing is proven it is
// not received without bounds either.
func TestPostponedLeavesOutageAlone(t *testing.T) {
	bubble(t, setup{maxReceives: 8}, func(x *fixture) {
		x.slowStart = true
		x.sendMany(300)
		j := x.start(func(context.Context, *sqsonce.Message) error { return sqsonce.Postpone(time.Hour, nil) }, func(o *Options) { o.Delayed = -1 })
		time.Sleep(time.Minute)
		// One at a time until the line has its part, and then one in two seconds.
		if s := j.Stats(); s.Received > 30+31 || s.Received < 30+20 || s.Held != 30 {
			t.Errorf("%+v", s)
		}
		j.stopClean()
	})
	for _, tc := range []struct {
		err  error
		want needsState
	}{{sqsonce.Postpone(time.Hour, nil), needsDoubted}, {nil, needsProven}} {
		l := newTestLoop(t)
		d := l.addTest("a", 1)
		l.setNeeds(needsDoubted)
		l.handlerBegins(d)
		d.result = l.newResult(d, tc.err, 1)
		d.result.ran = true
		l.handlerReturned(handlerReturned{d})
		if l.needs.state != tc.want {
			t.Errorf("%v: got state %d, want %d", tc.err, l.needs.state, tc.want)
		}
	}
}

// A worker that has handled no message yet and postpones all makes no more calls for them than one that has: it receives ten at a time, until
// the rule for what stands behind postponed messages holds.
func TestOnlyPostponedSinceTheStart(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		delayed, received int // of 1,000 messages, before receives follow one another after 2 s
	}{"delayed": {received: 1000}, "not delayed": {delayed: -1, received: 30}} {
		runParallel(t, name, setup{maxReceives: 5}, func(x *fixture) {
			x.slowStart = true
			x.sendMany(1000)
			j := x.start(func(context.Context, *sqsonce.Message) error {
				time.Sleep(time.Millisecond)
				return sqsonce.Postpone(time.Hour, nil)
			}, func(o *Options) { o.Delayed = tc.delayed })
			time.Sleep(time.Minute)
			// One comes before a message is postponed, and one is for less than ten.
			if s := j.Stats(); s.Received < int64(tc.received) || s.Receives > int64(tc.received/10+2+30) {
				x.Errorf("%d receives, want one for ten of the first %d messages, and then one in 2 s; %+v", s.Receives, tc.received, s)
			}
			j.stopClean()
		})
	}
}

// A postponed message says nothing about how long handlers run. The worker would receive more than they can start.
func TestPostponedIsNoPace(t *testing.T) {
	t.Parallel()
	l := newTestLoop(t)
	for i := range 20 {
		d := l.addTest(fmt.Sprint(i), 1)
		l.handlerBegins(d)
		d.result = l.newResult(d, sqsonce.Postpone(time.Hour, nil), 1)
		l.handlerReturned(handlerReturned{d})
	}
	if l.pace.returns != 0 {
		t.Errorf("%d runs counted, want none", l.pace.returns)
	}
}

// A tenant with a backlog of 1,000 has 10 starts a second. The others' messages, which SQS hands out behind those that
// are postponed, run at once where the worker gives some back, and the tenant gets its rate either way.
func TestPostponedDoesNotCloseIntake(t *testing.T) {
	for name, tc := range map[string]struct {
		delayed int
		waits   time.Duration // of the others at most
		most    int64         // receives of 1,018 messages
	}{
		"delayed": {1200, 2500 * time.Millisecond, 2200},
		// What is received before the first ones are judged is received again: a few times MaxInFlight.
		"not delayed": {-1, 100 * time.Second, 1018 + 4*30},
	} {
		run(t, name, setup{maxReceives: 5}, func(x *fixture) {
			sent := map[string]time.Time{}
			for i := range 1000 {
				x.send(fmt.Sprint("a.", i))
			}
			var mu sync.Mutex
			var waited time.Duration
			j := x.start(newLimiter(100*time.Millisecond).handler(func(_ context.Context, m *sqsonce.Message) error {
				mu.Lock()
				defer mu.Unlock()
				if at, ok := sent[m.Body]; ok {
					waited = max(waited, time.Since(at))
				}
				return nil
			}), func(o *Options) { o.Delayed = tc.delayed })
			for i := range 18 {
				time.Sleep(5 * time.Second)
				mu.Lock()
				b := fmt.Sprintf("b%d.", i)
				sent[b] = time.Now()
				mu.Unlock()
				x.send(b)
			}
			if s := j.Stats(); s.Done < 850 || s.Held > 120 {
				t.Errorf("after 90 s: %+v", s)
			}
			time.Sleep(3 * time.Minute)
			for _, m := range x.queued() {
				t.Errorf("left: %s, received %d times", m.Body, m.ReceiveCount)
			}
			if s := j.Stats(); s.Done != 1018 || s.Received > tc.most || s.Failed > 0 || len(x.dead()) > 0 {
				t.Errorf("%d dead-lettered; %+v", len(x.dead()), s)
			}
			if waited > tc.waits {
				t.Errorf("another message waited for %s, want at most %s", waited, tc.waits)
			}
			t.Logf("waited %s, %d receives of 1018 messages in %d calls", waited, j.Stats().Received, j.Stats().Receives)
			j.stopClean()
		})
	}
}

// A backlog stays in the queue, also while it is not known of the first messages of it whether they run on or are postponed too.
func TestBacklogStaysBehindPostponed(t *testing.T) {
	run(t, "not delayed", setup{maxReceives: 5}, func(x *fixture) {
		for i := range 1000 {
			x.send(fmt.Sprint("a.", i))
		}
		var calls atomic.Int64
		j := x.start(func(context.Context, *sqsonce.Message) error {
			if calls.Add(1) > 2 {
				return sqsonce.Postpone(time.Hour, errors.New("at its limit"))
			}
			time.Sleep(time.Minute)
			return nil
		}, func(o *Options) { o.Delayed = -1 })
		time.Sleep(judgeAfter / 2)
		if n, most := j.Stats().Received, int64(4*30); n > most {
			t.Errorf("%d messages received, want at most %d: those of MaxInFlight, and a line's", n, most)
		}
		time.Sleep(2 * time.Minute)
		j.stopClean()
	})
}

// SQS hides a message for 12 h. Before that it is given back, to be received again. At its last receive it runs, in
// debt.
func TestLastReceiveRunsInDebt(t *testing.T) {
	for name, tc := range map[string]struct{ maxReceives, received int }{"last": {1, 1}, "not the last": {2, 2}} {
		run(t, name, setup{maxReceives: tc.maxReceives}, func(x *fixture) {
			x.setAttribute("MessageRetentionPeriod", "1209600")
			x.send("a.1")
			var ran time.Time
			start := time.Now()
			l := newLimiter(time.Second)
			l.next["a"] = start.Add(100 * time.Hour)
			j := x.start(l.handler(func(context.Context, *sqsonce.Message) error {
				ran = time.Now()
				return nil
			}))
			j.stopEmptyAfter(25 * time.Hour)
			want := time.Duration(tc.received) * 12 * time.Hour
			if got := ran.Sub(start); got < want-time.Minute || got > want+time.Minute || len(x.dead()) > 0 {
				x.Errorf("ran after %s, want %s; %d dead", got, want, len(x.dead()))
			}
			if s := j.Stats(); s.Received != int64(tc.received) || s.LeasesLost != 0 {
				x.Errorf("%+v", s)
			}
		})
	}
}

// A message whose retention ends before its turn runs in debt. One that is postponed all the same, as in a pause, goes to the
// dead-letter queue with this reason, as any other, and a second line says that it was postponed.
func TestRetentionOfPostponed(t *testing.T) {
	for _, limits := range []bool{true, false} {
		run(t, fmt.Sprintf("limiter=%t", limits), setup{maxReceives: 5}, func(x *fixture) {
			x.setAttribute("MessageRetentionPeriod", "3600")
			x.send("a.1")
			ran := 0
			j := x.start(func(ctx context.Context, _ *sqsonce.Message) error {
				if limits && settle.InDebt(ctx) {
					ran++
					return nil
				}
				return sqsonce.Postpone(4*time.Hour, errTest)
			})
			j.stopEmptyAfter(time.Hour)
			if want := map[bool]int{true: 1, false: 0}[limits]; ran != want || len(x.dead()) != 1-want {
				x.Errorf("%d runs in debt, %d dead", ran, len(x.dead()))
			}
			if lines := x.log.count(`reason="its retention ends"`); lines != 2-ran {
				x.Errorf("%d lines about its end, want %d: %s", lines, 2-ran, x.log)
			}
		})
	}
}

// A stop gives back what is postponed, with the rest of its delay. At its last receive a message runs in the stop, in
// debt.
func TestStopGivesPostponedBack(t *testing.T) {
	for _, last := range []bool{true, false} {
		bothKinds(t, setup{maxReceives: map[bool]int{true: 1, false: 5}[last]}, func(x *fixture) {
			x.send("g:1", "g:2")
			start := time.Now()
			var r runs
			j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
				if settle.InDebt(ctx) {
					r.begin(m.Body)()
					return nil
				}
				return sqsonce.Postpone(time.Hour, nil)
			}, func(o *Options) { o.WaitTime = time.Second })
			time.Sleep(10 * time.Minute)
			j.stopClean()
			if last {
				if x.wantEmpty(); len(r.list()) != 2 || len(x.dead()) != 0 {
					x.Errorf("ran %v, %d dead; want both", r.list(), len(x.dead()))
				}
				return
			}
			for _, m := range x.queued() {
				if in := m.VisibleAt.Sub(start); (in < time.Hour || in > time.Hour+10*time.Second) && (m.Body == "g:1" || !j.fifo) {
					x.Errorf("%s is visible %s after the start, want an hour", m.Body, in)
				}
			}
			if len(x.queued()) != 2 || len(r.list()) != 0 {
				x.Errorf("%d left, ran %v", len(x.queued()), r.list())
			}
		})
	}
}
