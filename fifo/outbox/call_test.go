package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// Producers commit and call Drain, beside Run: when Drain returns nil the producer's event is in the queue.
func TestDrainLooksAgain(t *testing.T) {
	bubble(t, func(x *fixture) {
		r := x.relay(func(o *outbox.Options) { o.Poll = 100 * time.Millisecond })
		stop := x.run(r)
		var wg sync.WaitGroup
		var mu sync.Mutex
		n := 0
		for i := range 20 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 7 * time.Millisecond)
				mu.Lock()
				n++
				e := event("g", n)
				x.table.Commit(e)
				mu.Unlock()
				if err := r.Drain(x.Context(), "g"); err != nil {
					t.Error(err)
				}
				if !slices.Contains(x.queued("g"), e.Body) {
					t.Errorf("Drain returned nil, and %s is not in the queue", e.ID)
				}
			})
		}
		wg.Wait()
		x.wantQueued("g", 20)
		must.Get(stop())(t)
	}, fault.Rule{Op: send, Do: fault.Delay, Delay: 30 * time.Millisecond})
}

// A bell that rings while the group is in a visit: what was committed after its read is published without a poll.
func TestRingDuringAVisit(t *testing.T) {
	bubble(t, func(x *fixture) {
		r := x.relay(func(o *outbox.Options) { o.Poll = time.Hour })
		stop := x.run(r)
		synctest.Wait()
		x.commit(1, "g")
		r.Ring("g")
		time.Sleep(500 * time.Millisecond)
		x.commit(1, "g")
		r.Ring("g", "nothing", "")
		time.Sleep(3 * time.Second)
		x.wantQueued("g", 2)
		must.Get(stop())(t)
	}, fault.Rule{Op: send, Do: fault.Delay, Delay: time.Second})
}

// Two relays share the work by claims: no event is sent twice.
func TestTwoRelaysDoNotDoTheSameWork(t *testing.T) {
	bubble(t, func(x *fixture) {
		names := groupNames(40)
		x.commit(30, names...)
		a, b := x.relay(), x.relay()
		stopA, stopB := x.run(a), x.run(b)
		time.Sleep(20 * time.Second)
		for _, g := range names {
			x.wantQueued(g, 30)
		}
		if n := a.Stats().Published + b.Stats().Published; n != 40*30 {
			t.Errorf("%d events were sent, want 1200: each once", n)
		}
		for _, stop := range []func() (time.Duration, error){stopA, stopB} {
			must.Get(stop())(t)
		}
	}, fault.Rule{Op: send, Do: fault.Delay, Delay: 20 * time.Millisecond})
}

// Drain of a group that another relay has claimed, and died with: it waits until the claim ends.
func TestDrainWaitsForAClaim(t *testing.T) {
	bubble(t, func(x *fixture) {
		x.commit(2, "g")
		must.Get(x.table.Open().Claim(x.Context(), []string{"g"}, 30*time.Second))(t)
		start := time.Now()
		must.Do(t, x.relay().Drain(x.Context(), "g"))
		if took := time.Since(start); took < 30*time.Second || took > 32*time.Second {
			t.Errorf("took %v, want that of the claim", took)
		}
		x.wantQueued("g", 2)
	})
}

// The process is frozen in the middle of a page, as a Lambda environment is: the wall clock goes on. What was read is read again.
func TestFrozenInTheMiddleOfAPage(t *testing.T) {
	bubble(t, func(x *fixture) {
		r := x.relay()
		x.commit(10, "g")
		clocks, freeze := outbox.Freezable()
		r.SetClocks(clocks)
		var atThaw atomic.Int64
		atRead := 0
		time.AfterFunc(2500*time.Millisecond, func() {
			freeze(20 * time.Minute)
			atThaw.Store(int64(len(x.queued("g"))))
		})
		reads := 0
		x.ops.failing(func(op string) error {
			if op == "Read" {
				if reads++; reads == 2 {
					atRead = len(x.queued("g"))
				}
			}
			return nil
		})
		must.Do(t, r.Drain(x.Context(), "g"))
		if atRead-int(atThaw.Load()) > 2 || reads < 2 {
			t.Errorf("%d events in the queue at the thaw, %d at the second of %d reads, want at most two more: those under way", atThaw.Load(), atRead, reads)
		}
		if s := r.Stats(); s.Stale != 1 {
			t.Errorf("stats %+v, want one stale page", s)
		}
		x.wantQueued("g", 10)
	}, fault.Rule{Op: send, Do: fault.Delay, Delay: time.Second})
}

// What a slow read has returned is too old.
func TestASlowReadIsNotSent(t *testing.T) {
	bubble(t, func(x *fixture) {
		r := x.relay(func(o *outbox.Options) { o.MaxAge, o.LeaseDuration = 10*time.Second, time.Hour })
		x.commit(3, "g")
		clocks, freeze := outbox.Freezable()
		r.SetClocks(clocks)
		reads := 0
		x.ops.failing(func(op string) error {
			if op == "Read done" {
				if reads++; reads == 1 {
					freeze(11 * time.Second)
				} else if n := x.requests(); reads == 2 && n != 0 {
					t.Errorf("%d requests with what was read 11 s ago", n)
				}
			}
			return nil
		})
		must.Do(t, r.Drain(x.Context(), "g"))
		x.wantQueued("g", 3)
		if s := r.Stats(); s.Stale != 1 || s.Reads != 2 {
			t.Errorf("stats %+v, want one stale page of two", s)
		}
	})
}

// On a standard queue all is published; order is not promised.
func TestStandardQueue(t *testing.T) {
	bubble(t, func(x *fixture) {
		x.url = testaws.Queue(x, x.sqs, "orders", nil)
		r := x.relay()
		x.commit(30, "a", "b")
		must.Do(t, r.Drain(x.Context(), "a", "b"))
		for _, g := range []string{"a", "b"} {
			got := x.queued(g)
			slices.Sort(got)
			if got = slices.Compact(got); len(got) != 30 || len(x.table.Events(g)) != 0 {
				t.Errorf("group %s: %d events in the queue, want 30", g, len(got))
			}
		}
	})
}

// Run is stopped in the middle: its requests end, what they confirmed is deleted, and nothing is sent twice.
func TestStopOfRun(t *testing.T) {
	bubble(t, func(x *fixture) {
		r := x.relay(func(o *outbox.Options) { o.Page = 100 })
		names := groupNames(30)
		x.commit(100, names...)
		stop := x.run(r)
		time.Sleep(1900 * time.Millisecond)
		if took, err := stop(); err != nil || took > 10*time.Second {
			t.Errorf("Run: %v after %v, want nil within 10 s", err, took)
		}
		if s := r.Stats(); s.Published == 0 || s.Published == 3000 || s.Published != s.Deleted || s.Unknown != 0 {
			t.Errorf("stats %+v, want that each published one is deleted, and none is unknown", s)
		}
	}, fault.Rule{Op: send, Do: fault.Delay, Delay: 300 * time.Millisecond})
}

// Nothing is left running after a call, however it ended. Not parallel: it looks at all goroutines.
func TestNoGoroutineIsLeft(t *testing.T) {
	for name, f := range map[string]func(x *fixture, r *outbox.Relay){
		"Drain": func(x *fixture, r *outbox.Relay) { _ = r.Drain(x.Context(), groupNames(30)...) },
		"Sweep": func(x *fixture, r *outbox.Relay) { _, _ = r.Sweep(x.Context()) },
		"Run": func(x *fixture, r *outbox.Relay) {
			ctx, cancel := context.WithTimeout(x.Context(), 1500*time.Millisecond)
			defer cancel()
			_ = r.Run(ctx)
		},
		"cancelled": func(x *fixture, r *outbox.Relay) {
			ctx, cancel := context.WithTimeout(x.Context(), 500*time.Millisecond)
			defer cancel()
			_ = r.Drain(ctx, groupNames(30)...)
		},
	} {
		inBubble(t, func(x *fixture) {
			x.commit(15, groupNames(30)...)
			f(x, x.relay(func(o *outbox.Options) { o.Settle = -1 }))
			synctest.Wait() // one that has ended may not have left its processor yet
			stacks := make([]byte, 1<<20)
			stacks = stacks[:runtime.Stack(stacks, true)]
			for _, s := range strings.Split(string(stacks), "\n\n") {
				if strings.Contains(s, "sqsonce/fifo") && !strings.Contains(s, "TestNoGoroutineIsLeft") && !strings.Contains(s, "testing.(*T).Parallel(") {
					t.Errorf("after %s:\n%s", name, s)
				}
			}
		}, fault.Rule{Op: send, Do: fault.Delay, Delay: 100 * time.Millisecond})
	}
}

// Names of groups do not fill the memory: a relay forgets, and works on.
func TestMemoryOfNames(t *testing.T) {
	bubble(t, func(x *fixture) {
		r := x.relay()
		for i := range 11_000 {
			r.Ring(fmt.Sprint("name", i))
		}
		if n := r.Rung(); n != 10_000 {
			t.Errorf("%d names are kept, want 10,000", n)
		}
		for i := range 11 {
			var names []string
			for k := range 1000 {
				names = append(names, fmt.Sprint("n", i, "-", k))
			}
			must.Do(t, r.Drain(x.Context(), names...))
		}
		if n := r.Remembered(); n > 10_000+64 {
			t.Errorf("%d groups are remembered, want at most 10,000", n)
		}
	})
}

var errLost = errors.New("lost")

// A lost answer of Delete: the events are gone, and the relay learns it.
func TestTheAnswerOfADeleteIsLost(t *testing.T) {
	bubble(t, func(x *fixture) {
		r := x.relay()
		x.commit(25, "g")
		lost := 0
		x.ops.failing(func(op string) error {
			if op == "Delete done" {
				if lost++; lost%2 == 1 {
					return errLost
				}
			}
			return nil
		})
		must.Do(t, r.Drain(x.Context(), "g"))
		x.wantQueued("g", 25)
		if s := r.Stats(); s.Deleted != 25 || s.Undeleted != 0 || s.Published != 25 {
			t.Errorf("stats %+v, want 25 published and deleted, none owed", s)
		}
	})
}

// A log that blocks stops nobody.
func TestALogThatBlocks(t *testing.T) {
	bubble(t, func(x *fixture) {
		release := make(chan struct{})
		r := x.relay(func(o *outbox.Options) {
			o.Logger, o.OnRefused, o.Settle = slog.New(&blocking{Handler: slog.DiscardHandler, until: release}), outbox.OnRefusedSkip, -1
		})
		x.commit(3, "g", "h")
		x.table.Change("g", 2, func(e *outbox.Entry) bool { e.Body = "\x00"; return false })
		start := time.Now()
		if _, err := r.Sweep(x.Context()); err != nil || time.Since(start) > time.Second {
			t.Errorf("Sweep: %v after %v, want nil within a second", err, time.Since(start))
		}
		x.wantQueued("h", 3)
		stop := x.run(r)
		x.commit(3, "i")
		time.Sleep(3 * time.Second)
		x.wantQueued("i", 3)
		if took, err := stop(); err != nil || took > time.Second {
			t.Errorf("Run: %v after %v", err, took)
		}
		close(release)
		synctest.Wait()
	})
}

type blocking struct {
	slog.Handler
	until chan struct{}
}

func (b *blocking) Enabled(context.Context, slog.Level) bool { return true }

func (b *blocking) Handle(context.Context, slog.Record) error {
	<-b.until
	return nil
}
