package sqsworker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// A fifth of the messages is unavailable for an hour, and each attempt of these takes 25 to 30 s. The others do not wait for them.
func TestAsideTakesFewSlots(t *testing.T) {
	t.Parallel()
	for _, asks := range []bool{true, false} {
		runParallel(t, fmt.Sprintf("asks=%t", asks), setup{maxReceives: 5}, func(x *fixture) {
			var mu sync.Mutex
			sent, down := map[string]time.Time{}, true
			var took []time.Duration
			late := 0
			j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
				mu.Lock()
				own := down && m.Body[0] == 'o'
				mu.Unlock()
				if own {
					until(ctx, 25*time.Second+rand.N(5*time.Second))
					if asks {
						return sqsonce.UnavailableUntil(errRefused, func(context.Context) error { return nil })
					}
					return sqsonce.Unavailable(errRefused)
				}
				time.Sleep(200 * time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				if m.Body[0] == 'o' {
					late++
				} else {
					took = append(took, time.Since(sent[m.Body]))
				}
				return nil
			})
			const messages = 900
			for n := range messages {
				body := fmt.Sprint(n)
				if n%5 == 0 {
					body = "own" + body
				}
				mu.Lock()
				sent[body] = time.Now()
				mu.Unlock()
				x.send(body)
				time.Sleep(4 * time.Second)
			}
			mu.Lock()
			slices.Sort(took)
			if len(took) != messages*4/5 || took[len(took)*99/100] > 10*time.Second {
				x.Errorf("%d of %d done, p99 %s, want 10 s at most", len(took), messages*4/5, took[len(took)*99/100])
			}
			down = false
			mu.Unlock()
			for _, m := range x.queued() {
				if m.ReceiveCount > 4 {
					x.Errorf("%s was received %d times", m.Body, m.ReceiveCount)
				}
			}
			time.Sleep(time.Hour) // some are hidden for so long
			j.stopClean()
			mu.Lock()
			defer mu.Unlock()
			if late != messages/5 || len(x.dead()) > 0 {
				x.Errorf("%d of %d done after the hour, %d dead-lettered", late, messages/5, len(x.dead()))
			}
		})
	}
}

// A worker in doubt is not proven wrong by an outcome without a run. A handler that runs for longer than the claims took ends the doubt.
func TestEndOfDoubt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		handler sqsonce.Handler
		ends    bool
	}{
		"duplicates": {withoutRun[0], false}, "skips": {withoutRun[1], false}, "rejects": {withoutRun[2], false}, "does not decode": {withoutRun[3], false},
		"has no handler for it": {sqsonce.ByType(nil), false},
		"a run":                 {ok, true},
		"a long run":            {func(ctx context.Context, _ *sqsonce.Message) error { until(ctx, 10*time.Minute); return nil }, true},
		"long claims": {func(ctx context.Context, _ *sqsonce.Message) error {
			until(ctx, 15*time.Second)
			return sqsonce.Unavailable(errRefused)
		}, false},
	} {
		runParallel(t, name, setup{maxReceives: 5}, func(x *fixture) {
			j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
				if m.Body == "claim" {
					settle.Ran(ctx, true) // as dedup does
					until(ctx, 9*time.Second)
					return sqsonce.Unavailable(errRefused)
				}
				return c.handler(ctx, m)
			})
			x.send("claim", "claim", "claim")
			time.Sleep(10 * time.Second)
			if j.NotReady() == "" {
				x.Error("ready after three claims")
			}
			x.send("other", "other")
			time.Sleep(40 * time.Second)
			if why := j.NotReady(); (why == "") != c.ends {
				x.Errorf("not ready: %q, want that the doubt has ended: %t", why, c.ends)
			}
			j.Shutdown()
			_ = j.wait()
		})
	}
}

// A worker in doubt in which no message had another outcome yet receives less and less often, unless messages have receives to spare.
func TestProbePause(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		proven       bool
		count, older int           // receives of the newest message, and of one that is held
		after        time.Duration // the doubt began
		want         []time.Duration
	}{
		"proven":            {proven: true, count: 5, want: []time.Duration{time.Second, time.Second}},
		"proven, later":     {proven: true, count: 5, after: doubtKeeps, want: []time.Duration{time.Minute}},
		"receives to spare": {count: 1, older: 4, want: []time.Duration{time.Second, time.Second}},
		"spare, later":      {count: 1, after: doubtKeeps, want: []time.Duration{time.Minute}},
		"none to spare":     {count: 2, older: 3, want: []time.Duration{time.Second, 4 * time.Second, 16 * time.Second, 64 * time.Second, 2 * time.Minute, 2 * time.Minute}},
		"one is late":       {count: 2, older: 4, want: []time.Duration{10 * time.Minute, 10 * time.Minute}},
	} {
		must.Run(t, name, func(t *testing.T) {
			l := newTestLoop(t)
			l.queue.maxReceives, l.needs.count, l.needs.proven = 5, c.count, c.proven
			l.hold(l.addTest("a", c.older), heldClaim, time.Hour, nil)
			l.beginDoubt()
			time.Sleep(c.after)
			for i, want := range c.want {
				if l.probed(); l.needs.probeAt.Sub(l.now()) != want {
					t.Errorf("receive %d: the next one after %s, want %s", i+1, l.needs.probeAt.Sub(l.now()), want)
				}
			}
		})
	}
}

// Each message that gets through after it was unavailable gives further attempts a slot more.
func TestSlotsOfFurtherAttempts(t *testing.T) {
	t.Parallel()
	l := newTestLoop(t)
	l.unavailable(l.addTest("a", 1), result{err: errRefused})
	for i, want := range []int{2, 3, 4, 5, 6, 7, 8, 9, 10, 10} {
		if l.again.slots != want {
			t.Errorf("after %d that got through: %d slots, want %d", i, l.again.slots, want)
		}
		l.available(&delivery{unavailable: 1}, true)
	}
}
