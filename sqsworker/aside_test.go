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
	"github.com/sqsonce/sqsonce/internal/question"
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
			time.Sleep(10 * time.Second)
			mu.Lock()
			slices.Sort(took)
			if len(took) < messages*4/5*99/100 || took[len(took)*99/100] > 10*time.Second {
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
			if late != messages/5 || len(took) != messages*4/5 || len(x.dead()) > 0 {
				x.Errorf("%d of %d and %d of %d done after the hour, %d dead-lettered", late, messages/5, len(took), messages*4/5, len(x.dead()))
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
		quick   bool // the claims, which come again in a row
	}{
		"duplicates": {handler: withoutRun[0]}, "skips": {handler: withoutRun[1]}, "rejects": {handler: withoutRun[2]}, "does not decode": {handler: withoutRun[3]},
		"has no handler for it": {handler: sqsonce.ByType(nil)},
		"a run":                 {handler: ok, ends: true},
		"a run, quick claims":   {handler: ok, ends: true, quick: true},
		"a long run":            {handler: func(ctx context.Context, _ *sqsonce.Message) error { until(ctx, 10*time.Minute); return nil }, ends: true},
		"long claims": {handler: func(ctx context.Context, _ *sqsonce.Message) error {
			until(ctx, 15*time.Second)
			return sqsonce.Unavailable(errRefused)
		}},
	} {
		runParallel(t, name, setup{maxReceives: 5}, func(x *fixture) {
			j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
				if m.Body == "claim" {
					settle.Ran(ctx, true) // as dedup does
					if !c.quick {
						until(ctx, 9*time.Second)
					}
					return sqsonce.Unavailable(errRefused)
				}
				return c.handler(ctx, m)
			})
			x.send("claim", "claim", "claim")
			time.Sleep(10 * time.Second)
			if j.whyNotReady() == "" {
				x.Error("ready after three claims")
			}
			x.send("other", "other")
			time.Sleep(40 * time.Second)
			if why := j.whyNotReady(); (why == "") != c.ends {
				x.Errorf("not ready: %q, want that the doubt has ended: %t", why, c.ends)
			}
			j.Shutdown()
			_ = j.wait()
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

// A receive costs a message one of its own: in a process in which none had another outcome yet, only those that have spare ones are
// received every second, and the others ever more seldom.
func TestColdProbes(t *testing.T) {
	t.Parallel()
	for before, want := range [][3]int{{12, 97, 121}, {6, 11, 35}, {6, 10, 34}, {4, 5, 29}} {
		runParallel(t, fmt.Sprintf("received %d times", before), setup{maxReceives: 5}, func(x *fixture) {
			x.slowStart = true
			x.sendMany(300)
			for range before {
				for len(x.receive(time.Minute)) > 0 {
				}
				time.Sleep(2 * time.Minute)
			}
			earlier := x.calls("ReceiveMessage")
			j := x.start(func(context.Context, *sqsonce.Message) error { return sqsonce.Unavailable(errRefused) })
			for i, d := range []time.Duration{10 * time.Second, 11 * time.Minute, 4 * time.Hour} {
				time.Sleep(d)
				if n := x.calls("ReceiveMessage") - earlier; n < want[i]-want[i]/5-1 || n > want[i]+want[i]/5+1 {
					x.Errorf("%d receives after another %s, want %d", n, d, want[i])
				}
			}
			if n := len(x.dead()); n > 0 {
				x.Errorf("%d dead-lettered", n)
			}
			j.stopClean()
		})
	}
}

// until waits for d, or less where the context ends.
func until(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// A handler that has run since before an outage says nothing of what is there after it: receives don't wait for it.
func TestLongHandlerInAnOutage(t *testing.T) {
	t.Parallel()
	bubble(t, setup{maxReceives: 5}, func(x *fixture) {
		d := dependency{asks: true}
		d.set(nil)
		j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
			if m.Body == "long" {
				until(ctx, 5*time.Hour)
				return context.Cause(ctx)
			}
			return d.handle(ctx, m)
		})
		x.send("long")
		time.Sleep(time.Minute)
		d.set(errRefused)
		x.send("given back")
		time.Sleep(3 * time.Minute)
		d.set(nil)
		time.Sleep(2 * time.Minute)
		if reason := j.whyNotReady(); d.handled() != 1 || reason != "" {
			t.Errorf("%d of 1 handled, not ready: %q", d.handled(), reason)
		}
		j.stopClean()
	})
}

// For an hour a fifth of two messages a second is unavailable, with nobody to ask, in five workers: more than they can hold. The others do
// not wait for them, and none is dead-lettered.
func TestManyClaims(t *testing.T) {
	t.Parallel()
	bubble(t, setup{maxReceives: 5}, func(x *fixture) {
		var mu sync.Mutex
		down, own := true, 0
		sent := map[string]time.Time{}
		var took []time.Duration
		h := func(ctx context.Context, m *sqsonce.Message) error {
			mu.Lock()
			defer mu.Unlock()
			at, others := sent[m.Body]
			switch {
			case !others && down:
				return sqsonce.Unavailable(errRefused)
			case others:
				took = append(took, time.Since(at))
			default:
				own++
			}
			return nil
		}
		var js []*job
		for range 5 {
			js = append(js, x.start(h))
		}
		const messages = 7200
		random := rand.New(rand.NewPCG(1, 1))
		for n := range messages {
			body := fmt.Sprint(n)
			if random.IntN(5) > 0 {
				mu.Lock()
				sent[body] = time.Now()
				mu.Unlock()
			}
			x.send(body)
			time.Sleep(time.Hour / messages)
		}
		mu.Lock()
		down = false
		slices.Sort(took)
		if len(took) < len(sent)-10 || took[len(took)*99/100] > 10*time.Second {
			t.Errorf("%d of %d others done, 99%% within %s; want them within 10 s", len(took), len(sent), took[len(took)*99/100])
		}
		mu.Unlock()
		time.Sleep(time.Hour)
		for _, j := range js {
			j.stopClean()
		}
		if own != messages-len(sent) || len(x.dead()) > 0 {
			t.Errorf("%d of %d done in the end, %d dead", own, messages-len(sent), len(x.dead()))
		}
	})
}

// When the question passes, all that is held runs, also what was aside long before. Nothing is received until one of them has an outcome.
func TestEndOfAnOutage(t *testing.T) {
	t.Parallel()
	bubble(t, setup{maxReceives: 5}, func(x *fixture) {
		own, all := dependency{}, dependency{}
		own.set(errRefused)
		all.set(nil)
		began := make(chan string, 20)
		j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
			if m.Body == "own" && *own.err.Load() != nil {
				return question.With(sqsonce.Unavailable(errRefused), question.Question{ID: 1, Ask: all.ask})
			}
			if err := all.ask(ctx); err != nil {
				return question.With(sqsonce.Unavailable(err), question.Question{ID: 2, Ask: all.ask})
			}
			began <- m.Body
			until(ctx, 5*time.Second)
			return nil
		}, func(o *Options) { o.WaitTime = time.Second })
		x.send("own")
		time.Sleep(20 * time.Minute)
		all.set(errRefused)
		x.send("all")
		time.Sleep(10 * time.Second)
		x.sendMany(10)
		own.set(nil)
		all.set(nil)
		<-began
		time.Sleep(3 * time.Second)
		if s := j.Stats(); s.Received != 2 || s.Running != 2 {
			t.Errorf("%d received, %d running; want the two that were held", s.Received, s.Running)
		}
		j.stopEmptyAfter(time.Minute)
	})
}
