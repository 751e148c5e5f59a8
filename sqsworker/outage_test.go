package sqsworker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
)

// dependency is something that every message needs.
type dependency struct {
	err  atomic.Pointer[error]
	mu   sync.Mutex
	done map[string]int
}

func (d *dependency) set(err error) { d.err.Store(&err) }

func (d *dependency) handle(_ context.Context, m *sqsonce.Message) error {
	time.Sleep(200 * time.Millisecond)
	if err := *d.err.Load(); err != nil {
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

// In an outage of what every message needs the worker is not ready and receives nothing more, and it logs the beginning and the end.
// hosttest has the bounds: TestBoundOutage, TestBoundCalls.
func TestOutage(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]error{
		"unavailable":   sqsonce.Unavailable(errRefused),
		"misconfigured": fmt.Errorf("%w: the table does not exist", sqsonce.ErrMisconfigured),
	} {
		for _, fifo := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/fifo=%t", name, fifo), func(t *testing.T) {
				t.Parallel()
				bubble(t, setup{fifo: fifo, maxReceives: 5}, func(x *fixture) {
					const messages = 30
					for i := range messages {
						x.send(fmt.Sprintf("g%d:%d", i%20, i))
					}
					var d dependency
					d.set(away)
					j := x.start(d.handle)
					time.Sleep(50 * time.Second)
					if receives := x.calls(opReceive); !j.notReady.Load() || receives > messages/10+20 {
						t.Errorf("not ready: %t, %d receives", j.notReady.Load(), receives)
					}
					d.set(nil)
					time.Sleep(time.Minute)
					j.stopClean()
					x.wantEmpty()
					if n := d.handled(); n != messages || j.notReady.Load() || len(x.dead()) > 0 {
						t.Errorf("%d of %d done, not ready: %t, %d dead-lettered", n, messages, j.notReady.Load(), len(x.dead()))
					}
					for _, line := range []string{"sqsworker: unavailable: messages are held", "sqsworker: available again"} {
						if got := x.log.count(line); got != 1 {
							t.Errorf("%d times in the log: %s", got, line)
						}
					}
				})
			})
		}
	}
}

// TestOwnOutage: one or two messages are always unavailable, whatever is there for the others. Those are handled all the same, also
// by a worker that finds them first.
func TestOwnOutage(t *testing.T) {
	t.Parallel()
	const run = 700 * time.Millisecond // two healthy messages a second leave a slot for long polls now and then only
	for _, own := range []int{1, 2} {
		for _, fifo := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d/fifo=%t", own, fifo), func(t *testing.T) {
				t.Parallel()
				bubble(t, setup{fifo: fifo, maxReceives: 5}, func(x *fixture) {
					x.slowStart = true
					for n := range own {
						x.send(fmt.Sprintf("own%d:0", n))
					}
					var mu sync.Mutex
					var worst time.Duration
					done, sent := 0, map[string]time.Time{}
					j := x.start(func(_ context.Context, m *sqsonce.Message) error {
						time.Sleep(run)
						mu.Lock()
						defer mu.Unlock()
						at, healthy := sent[m.Body]
						if !healthy {
							return sqsonce.Unavailable(errRefused)
						}
						done++
						worst = max(worst, time.Since(at))
						return nil
					}, func(o *Options) { o.Concurrency = 2 })
					const messages = 1200
					for n := range messages {
						body := fmt.Sprintf("g%d:%d", n%20, n)
						mu.Lock()
						sent[body] = time.Now()
						mu.Unlock()
						x.send(body)
						time.Sleep(500 * time.Millisecond)
					}
					time.Sleep(5 * time.Second)
					mu.Lock()
					// 5 s, the heartbeat's 2 s and a run for each of the first ones. Then two slots do more than is sent.
					if bound := time.Duration(own)*(probeAgain+2*time.Second+run) + 4*run; done != messages || worst > bound {
						t.Errorf("%d of %d done, the slowest after %s, want %s at most", done, messages, worst, bound)
					}
					mu.Unlock()
					left := x.queued()
					if len(left) != own || len(x.dead()) > 0 {
						t.Errorf("%d left, %d dead-lettered, want %d and none", len(left), len(x.dead()), own)
					}
					for _, m := range left {
						if m.ReceiveCount != 1 {
							t.Errorf("%s was received %d times, want once: no other worker is better off", m.Body, m.ReceiveCount)
						}
					}
					j.stopClean()
				})
			})
		}
	}
}

// SQS hides a received message for 12 h at most: a worker keeps two of five receives for itself.
func TestOutageOfADay(t *testing.T) {
	t.Parallel()
	bubble(t, setup{maxReceives: 5}, func(x *fixture) {
		x.send("a")
		var d dependency
		d.set(sqsonce.Unavailable(errRefused))
		j := x.start(d.handle, func(o *Options) { o.VisibilityTimeout, o.WaitTime = time.Hour, 20*time.Second })
		time.Sleep(24 * time.Hour)
		d.set(nil)
		time.Sleep(5 * time.Minute)
		if n := d.handled(); n != 1 || len(x.dead()) > 0 {
			x.Errorf("%d of 1 done, %d in the dead-letter queue", n, len(x.dead()))
		}
		j.stopClean()
	})
}

// A worker that is cut off, and finds no other message, gives its own one to another worker after a minute.
func TestProbeIsHandedOver(t *testing.T) {
	t.Parallel()
	bubble(t, setup{maxReceives: 5}, func(x *fixture) {
		x.slowStart = true
		var bad, good dependency
		bad.set(sqsonce.Unavailable(errRefused))
		good.set(nil)
		x.send("a")
		cut := x.start(bad.handle)
		time.Sleep(30 * time.Second)
		healthy := x.start(good.handle)
		time.Sleep(75 * time.Second) // a minute, and the longest wait for the next run
		x.wantEmpty()
		cut.stopClean()
		healthy.stopClean()
	})
}

// A stop gives back what is held because of an outage.
func TestStopInAnOutage(t *testing.T) {
	t.Parallel()
	for _, fifo := range []bool{false, true} {
		bubble(t, setup{fifo: fifo, maxReceives: 5}, func(x *fixture) {
			for i := range 20 {
				x.send(fmt.Sprintf("g%d:%d", i%4, i))
			}
			var d dependency
			d.set(sqsonce.Unavailable(errRefused))
			j := x.start(d.handle)
			time.Sleep(45 * time.Second)
			j.stopClean()
			for _, m := range x.queued() {
				if !m.VisibleAt.Before(time.Now().Add(time.Second)) {
					t.Errorf("%s is hidden for %s after the stop", m.Body, time.Until(m.VisibleAt))
				}
			}
			if len(x.queued()) != 20 || len(x.dead()) > 0 {
				t.Errorf("%d in the queue, %d in the dead-letter queue, want 20 and none", len(x.queued()), len(x.dead()))
			}
		})
	}
}

func TestUnavailableDelay(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second, 6: 30 * time.Second, 100: 30 * time.Second} {
		least, most := want, want
		for range 1000 {
			d := unavailableDelay(n)
			least, most = min(least, d), max(most, d)
		}
		if least < want*3/4 || least > want*7/8 || most > want*5/4 || most < want*9/8 {
			t.Errorf("after %d outcomes: from %s to %s, want %s, a quarter more or less", n, least, most, want)
		}
	}
}

// The third outcome makes the worker not ready, and not an earlier one.
func TestNotReadyAfterThree(t *testing.T) {
	t.Parallel()
	l := newTestLoop(t)
	d := l.addTest("a", 1)
	for n := 1; n <= 4; n++ {
		if l.noteUnavailable(d, result{err: errRefused}); l.notReady.Load() != (n >= 3) {
			t.Errorf("after %d outcomes: not ready %t", n, l.notReady.Load())
		}
	}
}

// What has been unavailable for half a minute or longer is given back, and nothing that is held for another reason.
func TestHandOver(t *testing.T) {
	t.Parallel()
	l := newTestLoop(t)
	now := time.Now()
	l.now = func() time.Time { return now }
	for id, since := range map[string]time.Duration{"first": handOver, "later": handOver - unavailableMost, "new": 10 * time.Second, "retried": -1} {
		d := l.addTest(id, 1)
		l.hold(d, heldUnavailable, time.Minute, nil)
		if since >= 0 {
			d.unavailable, d.unavailableSince = 1, now.Add(-since)
		}
	}
	l.handOver()
	for id, want := range map[string]state{"first": releasing, "later": releasing, "new": held, "retried": held} {
		if got := l.deliveries[id].state; got != want {
			t.Errorf("%s: state %d, want %d", id, got, want)
		}
	}
}

// Messages that are parked and those behind a FIFO head are no probes.
func TestOthersAreNoProbes(t *testing.T) {
	t.Parallel()
	l := newTestLoop(t)
	l.holdParked(l.addTest("parked", 1), heldElsewhere, time.Minute, nil)
	if !l.mayProbe() {
		t.Error("no probe while a message is parked")
	}
	head := l.addTest("head", 1)
	head.group = &group{head: head}
	for _, id := range []string{"a", "b", "c"} {
		f := l.addTest(id, 1)
		f.group = head.group
		head.group.followers = append(head.group.followers, f)
	}
	if l.mayProbe() {
		t.Error("a probe while it is not known whether the head is unavailable")
	}
	head.unavailable, head.unavailableSince = 1, l.now().Add(-probeAgain)
	if !l.mayProbe() {
		t.Error("no probe while one group is unavailable")
	}
	l.queue.maxReceives = 1 // it cannot be handed over
	if head.unavailableSince = l.now().Add(-handOver); !l.mayProbe() {
		t.Error("no probe while a message waits at its last receive")
	}
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
