package sqsworker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
)

// dependency is something that every message needs.
type dependency struct {
	err   atomic.Pointer[error]
	asks  bool // its errors have a question
	asked atomic.Int32
	runs  atomic.Int32
	mu    sync.Mutex
	done  map[string]int
}

func (d *dependency) set(err error) { d.err.Store(&err) }

func (d *dependency) ask(context.Context) error {
	d.asked.Add(1)
	return *d.err.Load()
}

func (d *dependency) handle(_ context.Context, m *sqsonce.Message) error {
	d.runs.Add(1)
	time.Sleep(200 * time.Millisecond)
	if err := *d.err.Load(); err != nil {
		if d.asks {
			return sqsonce.UnavailableUntil(err, d.ask)
		}
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done == nil {
		d.done = map[string]int{}
	}
	d.done[m.Body]++
	return nil
}

func (d *dependency) handled() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.done)
}

var errRefused = errors.New("connection refused")

// In an outage of what every message needs the worker is not ready and says why. It receives nothing more while a question fails, and
// a message a second for a while where there is none. It logs a line a minute, and one at the end. hosttest has the bounds.
func TestOutage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		down error
		asks bool
	}{
		"question":      {errRefused, true},
		"claims":        {sqsonce.Unavailable(errRefused), false},
		"misconfigured": {fmt.Errorf("%w: %w", sqsonce.ErrMisconfigured, errRefused), false},
	} {
		for _, fifo := range []bool{false, true} {
			runParallel(t, fmt.Sprintf("%s/fifo=%t", name, fifo), setup{fifo: fifo, maxReceives: 5}, func(x *fixture) {
				const messages = 30
				for i := range messages {
					x.send(fmt.Sprintf("g%d:%d", i%20, i))
				}
				d := dependency{asks: c.asks}
				d.set(c.down)
				j := x.start(d.handle)
				time.Sleep(50 * time.Second)
				if reason := j.whyNotReady(); !strings.Contains(reason, errRefused.Error()) {
					x.Errorf("not ready: %q", reason)
				}
				if receives := x.calls(opReceive); c.asks && receives > messages/10+20 {
					x.Errorf("%d receives", receives)
				}
				if asked := d.asked.Load(); c.asks && (asked < 6 || asked > 12) {
					x.Errorf("%d questions in 50 s", asked)
				}
				d.set(nil)
				j.stopEmptyAfter(time.Minute)
				if n := d.handled(); n != messages || j.notReady.Load() != nil || len(x.dead()) > 0 {
					x.Errorf("%d of %d done, not ready: %q, %d dead-lettered", n, messages, j.whyNotReady(), len(x.dead()))
				}
				// A claim is tried again up to 38 s after the end.
				for line, most := range map[string]int{"sqsworker: unavailable: messages are held": 2, "sqsworker: available again": 1} {
					if got := x.log.count(line); got < 1 || got > most {
						x.Errorf("%d times in the log: %s", got, line)
					}
				}
			})
		}
	}
}

// TestOwnOutage: 1, 3 or 40 messages at the head of the queue are always unavailable, whatever is there for the others. Those are
// handled all the same, also by a worker that finds the first ones first.
func TestOwnOutage(t *testing.T) {
	t.Parallel()
	const quick, slow = 200 * time.Millisecond, 2 * time.Second // slow: as long as the calls of dynamostore that DynamoDB throttles
	for _, c := range []struct {
		own, receives int
		takes, bound  time.Duration // an attempt that is unavailable
	}{
		{1, 5, quick, 5 * time.Second}, {3, 5, quick, 5 * time.Second}, {40, 5, quick, 40 * time.Second}, {40, 3, quick, 40 * time.Second},
		{3, 5, slow, 3*slow + 5*time.Second}, {40, 5, slow, 40*slow + 40*time.Second}, {40, 3, slow, 40*slow + 40*time.Second},
	} {
		for _, asks := range []bool{false, true} {
			for _, fifo := range []bool{false, true} {
				for _, slowStart := range []bool{false, true} {
					runParallel(t, fmt.Sprintf("%d of %d/takes=%s/asks=%t/fifo=%t/slow start=%t", c.own, c.receives, c.takes, asks, fifo, slowStart), setup{fifo: fifo, maxReceives: c.receives}, func(x *fixture) {
						x.slowStart = slowStart
						x.ownOutage(c.own, asks, c.takes, c.bound)
					})
				}
			}
		}
	}
}

func (x *fixture) ownOutage(own int, asks bool, takes, bound time.Duration) {
	for n := range own {
		x.send(fmt.Sprintf("own%d:0", n))
	}
	works := func(context.Context) error { return nil }
	var mu sync.Mutex
	var worst time.Duration
	done, sent := 0, map[string]time.Time{}
	j := x.start(func(_ context.Context, m *sqsonce.Message) error {
		healthy := !strings.HasPrefix(m.Body, "own")
		if healthy {
			time.Sleep(200 * time.Millisecond)
		} else {
			time.Sleep(takes)
		}
		mu.Lock()
		defer mu.Unlock()
		at := sent[m.Body]
		if !healthy && asks {
			return sqsonce.UnavailableUntil(errRefused, works)
		} else if !healthy {
			return sqsonce.Unavailable(errRefused)
		}
		done++
		worst = max(worst, time.Since(at))
		return nil
	})
	const messages = 600
	for n := range messages {
		body := fmt.Sprintf("g%d:%d", n%20, n)
		mu.Lock()
		sent[body] = time.Now()
		mu.Unlock()
		x.send(body)
		time.Sleep(500 * time.Millisecond)
	}
	time.Sleep(bound)
	mu.Lock()
	if done != messages || worst > bound {
		x.Errorf("%d of %d done, the slowest after %s, want %s at most", done, messages, worst, bound)
	}
	mu.Unlock()
	left := x.queued()
	if len(left) != own || len(x.dead()) > 0 {
		x.Errorf("%d left, %d dead-lettered, want %d and none", len(left), len(x.dead()), own)
	}
	for _, m := range left {
		if m.ReceiveCount != 1 {
			x.Errorf("%s was received %d times, want once: no other worker is better off", m.Body, m.ReceiveCount)
		}
	}
	j.stopClean()
}

// A question that fails while messages pass is not believed for long, and costs the others half a minute.
func TestWrongQuestion(t *testing.T) {
	t.Parallel()
	bubble(t, setup{maxReceives: 5}, func(x *fixture) {
		var asked atomic.Int32
		var d dependency
		d.set(nil)
		j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
			if m.Body == "own" {
				return sqsonce.UnavailableUntil(errRefused, func(context.Context) error { asked.Add(1); return errRefused })
			}
			return d.handle(ctx, m)
		})
		x.send("own")
		time.Sleep(2 * time.Second)
		for i := range 300 {
			x.send(fmt.Sprint(i))
			time.Sleep(time.Second)
		}
		if n := d.handled(); n < 295 {
			t.Errorf("%d of 300 handled", n)
		}
		if got := x.log.count("the question whether the store works fails"); got != 1 {
			t.Errorf("%d lines about the question", got)
		}
		if n := asked.Load(); n > 10 {
			t.Errorf("%d questions", n)
		}
		j.stopClean()
	})
}

// A question that ignores its context, or panics, is a failure. It is not asked twice at once, and the stop does not wait for it.
func TestHungQuestion(t *testing.T) {
	t.Parallel()
	bubble(t, setup{maxReceives: 5}, func(x *fixture) {
		x.send("a")
		var running, most atomic.Int32
		down := atomic.Bool{}
		down.Store(true)
		free := make(chan struct{})
		j := x.start(func(context.Context, *sqsonce.Message) error {
			if !down.Load() {
				return nil
			}
			return sqsonce.UnavailableUntil(errRefused, func(context.Context) error {
				most.Store(max(most.Load(), running.Add(1)))
				defer running.Add(-1)
				<-free
				panic("the question")
			})
		})
		time.Sleep(20 * time.Second)
		if j.whyNotReady() == "" || most.Load() != 1 {
			t.Errorf("not ready: %q, %d questions at once", j.whyNotReady(), most.Load())
		}
		close(free)
		time.Sleep(20 * time.Second)
		if j.whyNotReady() == "" {
			t.Error("ready after a question that panics")
		}
		down.Store(false)
		time.Sleep(time.Minute) // a message is tried all the same
		x.wantEmpty()
		j.stopClean()
	})
}

// SQS hides a received message for 12 h at most: a worker keeps the last two receives for itself. It tries a claim every 5 min in the end.
func TestOutageOfADay(t *testing.T) {
	t.Parallel()
	for i := range 6 {
		bubble(t, setup{maxReceives: 5 + i/2}, func(x *fixture) {
			x.send("a")
			d := dependency{asks: i%2 > 0}
			d.set(sqsonce.Unavailable(errRefused))
			j := x.start(d.handle, func(o *Options) { o.VisibilityTimeout, o.WaitTime = time.Hour, 20*time.Second })
			time.Sleep(24 * time.Hour)
			if a := d.asked.Load() / (24 * 60); d.asks && (a < 6 || a > 8) {
				x.Errorf("%d questions a minute, want 6 to 8", a)
			}
			if n := d.runs.Load(); n < 100 || n > 600 {
				x.Errorf("asks=%t: %d runs in a day", d.asks, n)
			}
			d.set(nil)
			time.Sleep(10 * time.Minute)
			if n := d.handled(); n != 1 || len(x.dead()) > 0 {
				x.Errorf("%d of 1 done, %d in the dead-letter queue", n, len(x.dead()))
			}
			j.stopClean()
		})
	}
}

// A worker that is cut off gives what it has to others: after a minute where a question fails, after 90 s where there is none.
func TestCutOffGivesBack(t *testing.T) {
	t.Parallel()
	for _, asks := range []bool{false, true} {
		bubble(t, setup{maxReceives: 5}, func(x *fixture) {
			bad, good := dependency{asks: asks}, dependency{}
			bad.set(sqsonce.Unavailable(errRefused))
			good.set(nil)
			x.sendMany(10)
			cut := x.start(bad.handle)
			time.Sleep(30 * time.Second)
			healthy := x.start(good.handle)
			bound := 45 * time.Second
			if !asks {
				bound += 30*time.Second + 20*time.Second // a long poll
			}
			time.Sleep(bound)
			if n := good.handled(); n != 10 {
				t.Errorf("asks %t: %d of 10 handled elsewhere", asks, n)
			}
			cut.stopClean()
			healthy.stopClean()
			x.wantEmpty()
		})
	}
}

// A stop gives back what is held because of an outage.
func TestStopInAnOutage(t *testing.T) {
	t.Parallel()
	for _, asks := range []bool{false, true} {
		bothKinds(t, setup{maxReceives: 5}, func(x *fixture) {
			for i := range 20 {
				x.send(fmt.Sprintf("g%d:%d", i%4, i))
			}
			d := dependency{asks: asks}
			d.set(sqsonce.Unavailable(errRefused))
			j := x.start(d.handle)
			time.Sleep(45 * time.Second)
			j.stopClean()
			for _, m := range x.queued() {
				if !m.VisibleAt.Before(time.Now().Add(time.Second)) {
					x.Errorf("%s is hidden for %s after the stop", m.Body, time.Until(m.VisibleAt))
				}
			}
			if len(x.queued()) != 20 || len(x.dead()) > 0 {
				x.Errorf("%d in the queue, %d in the dead-letter queue, want 20 and none", len(x.queued()), len(x.dead()))
			}
		})
	}
}

// A stop gives back what is aside. Nobody has found out that it can be handled again.
func TestStopEndsNoTrouble(t *testing.T) {
	t.Parallel()
	bothKinds(t, setup{maxReceives: 5}, func(x *fixture) {
		x.send("own")
		j := x.start(func(context.Context, *sqsonce.Message) error {
			return sqsonce.UnavailableUntil(errRefused, func(context.Context) error { return nil })
		})
		time.Sleep(45 * time.Second)
		j.stopClean()
		if began, ended := x.log.count("unavailable: messages are held"), x.log.count("available again"); began != 1 || ended != 0 {
			x.Errorf("%d lines of the beginning, %d of the end, want one and none", began, ended)
		}
	})
}

// Beyond MaxHeld a message that is aside is given back, hidden for longer with each receive, and never at its last two receives. Twice
// MaxHeld ends the receives.
func TestAsideBeyondMaxHeld(t *testing.T) {
	t.Parallel()
	bubble(t, setup{maxReceives: 5}, func(x *fixture) {
		const messages = 100
		x.sendMany(messages)
		j := x.start(func(context.Context, *sqsonce.Message) error {
			return sqsonce.UnavailableUntil(errRefused, func(context.Context) error { return nil })
		}, func(o *Options) { o.MaxHeld = 20 })
		time.Sleep(4 * time.Minute)
		for _, m := range x.queued() {
			if m.ReceiveCount > 2 {
				t.Errorf("%s was received %d times in 4 min, want it hidden for 1 min and then for 4", m.Body, m.ReceiveCount)
			}
		}
		time.Sleep(6 * time.Hour)
		if s := j.Stats(); s.Aside < 20 || s.Aside > 2*20+30 {
			t.Errorf("%d aside, want 20 to 40, and what was in flight then", s.Aside)
		}
		left := x.queued()
		if len(left) != messages || len(x.dead()) > 0 {
			t.Errorf("%d left, %d dead-lettered", len(left), len(x.dead()))
		}
		for _, m := range left {
			if m.ReceiveCount > 4 {
				t.Errorf("%s was received %d times", m.Body, m.ReceiveCount)
			}
		}
		j.stopClean()
	})
}

func TestMayHandOver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		most, count int
		want        bool
	}{
		"no policy": {0, 100, true}, "two receives left": {5, 3, true}, "one left": {5, 4, false}, "the last": {5, 5, false},
	} {
		l := newTestLoop(t)
		l.queue.maxReceives = c.most
		if got := l.mayHandOver(l.addTest("a", c.count)); got != c.want {
			t.Errorf("%s: got %t, want %t", name, got, c.want)
		}
		head := l.addTest("b", 1)
		head.group = &group{head: head, followers: []*delivery{l.addTest("c", c.count)}}
		if got := l.mayHandOver(head); got != c.want {
			t.Errorf("%s, of a follower: got %t, want %t", name, got, c.want)
		}
	}
}

// An outage that hit some messages has ended when the next run of one goes on, which may be for hours: then the others run too. Each run of
// one whose dependency is down may take long too.
func TestLongRunAfterAnOutage(t *testing.T) {
	t.Parallel()
	for own, ends := range map[int]bool{10: true, 1: false} {
		runParallel(t, fmt.Sprint("ends=", ends), setup{maxReceives: 5}, func(x *fixture) {
			var runs atomic.Int32
			var first, last atomic.Int64 // start of a long run
			var once sync.Once
			began, passes := time.Now(), sqsonce.UnavailableUntil(errRefused, func(context.Context) error { return nil })
			j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
				switch runs.Add(1); {
				case m.Body == "other":
					if runs.Add(-1); time.Since(began) > 20*time.Minute {
						err := error(nil)
						once.Do(func() { err = passes })
						return err
					}
				case ends && time.Since(began) > 10*time.Minute:
					last.Store(int64(time.Since(began)))
					first.CompareAndSwap(0, last.Load())
					until(ctx, time.Hour)
				default:
					if !ends {
						until(ctx, 20*time.Second)
					}
					return passes
				}
				return nil
			}, func(o *Options) { o.Concurrency = 12 })
			x.sendMany(own)
			for range 360 {
				x.send("other")
				time.Sleep(5 * time.Second)
			}
			lines, ended := x.log.count("unavailable: messages are held"), x.log.count("available again")
			if (lines > 16) == ends || (ended == 2) != ends || ends && j.Stats().Running != 10 || len(x.queued()) != own || !ends && runs.Load() > 15 {
				x.Errorf("%d lines, %d of the end, %d runs; %+v", lines, ended, runs.Load(), j.Stats())
			}
			if spread := time.Duration(last.Load() - first.Load()); spread > time.Minute {
				x.Errorf("the last run began %s after the first one", spread)
			}
			j.stopClean()
		})
	}
}

// A message whose second run succeeds is unavailable for a second only, as where the pool of the store is too small: the line of each
// minute says so all the same.
func TestShortTroubleIsLogged(t *testing.T) {
	t.Parallel()
	bubble(t, setup{maxReceives: 5}, func(x *fixture) {
		var d dependency
		d.set(nil)
		var runs sync.Map
		j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
			if _, again := runs.LoadOrStore(m.Body, true); again {
				return d.handle(ctx, m)
			}
			return sqsonce.UnavailableUntil(errRefused, func(context.Context) error { time.Sleep(3 * time.Second); return nil })
		})
		for i := range 60 {
			x.send(fmt.Sprint(i))
			time.Sleep(10 * time.Second)
		}
		if n := x.log.count("unavailable: messages are held"); n < 9 || n > 11 || d.handled() < 59 {
			t.Errorf("%d lines in ten minutes, %d of 60 handled; want one a minute", n, d.handled())
		}
		j.stopClean()
	})
}
