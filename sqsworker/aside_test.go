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
		proven bool
		most   int // maxReceiveCount
		count  int // of the newest message
		late   bool
		after  time.Duration
		want   []time.Duration
	}{
		"proven":             {proven: true, most: 5, count: 5, want: slices.Repeat([]time.Duration{time.Second}, 2)},
		"proven, later":      {proven: true, most: 5, count: 5, after: doubtKeeps, want: slices.Repeat([]time.Duration{time.Minute}, 2)},
		"receives to spare":  {most: 5, count: 1, want: slices.Repeat([]time.Duration{time.Second}, 2)},
		"spare, later":       {most: 5, count: 1, after: doubtKeeps, want: slices.Repeat([]time.Duration{time.Minute}, 2)},
		"no policy":          {count: 9, want: slices.Repeat([]time.Duration{time.Second}, 2)},
		"none to spare":      {most: 5, count: 2, want: []time.Duration{time.Second, 4 * time.Second, 16 * time.Second, 64 * time.Second, 2 * time.Minute, 2 * time.Minute}},
		"late":               {most: 5, count: 2, late: true, want: slices.Repeat([]time.Duration{10 * time.Minute}, 2)},
		"late, but to spare": {most: 5, count: 1, late: true, want: slices.Repeat([]time.Duration{time.Second}, 2)},
	} {
		must.Run(t, name, func(t *testing.T) {
			l := newTestLoop(t)
			l.queue.maxReceives, l.needs.count, l.needs.proven = c.most, c.count, c.proven
			d := l.addTest("a", 3)
			if c.late {
				d.lease.count = 4
			}
			l.hold(d, heldClaim, time.Hour, nil)
			l.beginDoubt()
			time.Sleep(c.after)
			for i, want := range c.want {
				l.probed()
				if got := l.needs.probeAt.Sub(l.now()); got != want {
					t.Errorf("receive %d: the next one after %s, want %s", i+1, got, want)
				}
			}
		})
	}
}

// Each message that gets through after it was unavailable gives further attempts a slot more.
func TestSlotsOfFurtherAttempts(t *testing.T) {
	t.Parallel()
	l := newTestLoop(t)
	for i, want := range []int{2, 3, 4, 5, 6, 7, 8, 9, 10, 10} {
		d := l.addTest(fmt.Sprint(i), 1)
		if d.unavailable = 1; i == 0 {
			l.unavailable(d, result{err: errRefused})
		} else {
			l.available(d, true)
		}
		if l.again.slots != want {
			t.Errorf("after %d that got through: %d slots, want %d", i, l.again.slots, want)
		}
	}
}
