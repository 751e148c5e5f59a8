package sqsworker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/internal/granted"
)

// deduplicate wraps h with dedup and a store of its own. The key is the body without its group and without what follows the
// dot: "a.1" and "g:a.2" are copies of "a". A copy that waited in its handler would do so for ten minutes.
func (x *fixture) deduplicate(h sqsonce.Handler) (*dedup.Once, sqsonce.Handler) {
	x.Helper()
	o := must.Get(dedup.New(memstore.New(), "billing", func(o *dedup.Options) {
		o.PeerWait = 10 * time.Minute
		o.Key = func(m *sqsonce.Message) (string, error) {
			_, name, grouped := strings.Cut(m.Body, ":")
			if !grouped {
				name = m.Body
			}
			event, _, _ := strings.Cut(name, ".")
			return event, nil
		}
	}))(x)
	return o, o.Handler(h)
}

func two(o *Options) { o.Concurrency = 2 }

// TestCopyIsHeldWithoutASlot: while its event is handled here, a copy occupies no slot. It is deleted when the handler has
// returned, in its first receive, and without having been run.
func TestCopyIsHeldWithoutASlot(t *testing.T) {
	for name, tc := range map[string]struct {
		setup
		inFlight int // 2 are taken by the handlers
	}{
		"standard":        {setup: setup{maxReceives: 5}},
		"fifo":            {setup: setup{fifo: true, maxReceives: 5}, inFlight: 2},
		"at last receive": {setup: setup{maxReceives: 1}, inFlight: 2},
	} {
		run(t, name, tc.setup, func(x *fixture) {
			x.send("g:a.1", "h:a.2", "k:c")
			var r runs
			once, h := x.deduplicate(func(ctx context.Context, m *sqsonce.Message) error {
				d := 3 * time.Minute // longer than the record's lease and the visibility timeout
				if m.Body == "k:c" {
					d = 0
				}
				return r.take(d)(ctx, m)
			})
			j := x.start(h, two, func(o *Options) { o.MaxInFlight = tc.inFlight })
			time.Sleep(time.Minute + 300*time.Millisecond) // not when the copy is tried
			if r.count("g:a.1")+r.count("h:a.2") != 1 || r.count("k:c") != 1 {
				x.Errorf("started after a minute: %v, want one copy, and the other message", r.list())
			}
			if n := len(x.queued()); n != 2 || j.Stats().Running != 1 {
				x.Errorf("%d messages and %d handlers, want two copies and one", n, j.Stats().Running)
			}
			time.Sleep(2*time.Minute + 700*time.Millisecond)
			x.wantEmpty() // the record's lease would end half a minute later
			j.stopClean()
			if s := j.Stats(); s.Received != 3 || s.Done != 3 || s.Failed != 0 || s.LeasesLost != 0 || len(r.list()) != 2 {
				x.Errorf("%v; %+v", r.list(), s)
			}
			if s := once.Stats(); s.First != 2 || s.Completed != 1 {
				x.Errorf("%+v", s)
			}
		})
	}
}

// TestCopyOfAnotherProcessIsHeld: nothing says when a delivery in another process ends. When its lease has ended the copy
// runs.
func TestCopyOfAnotherProcessIsHeld(t *testing.T) {
	bubble(t, setup{maxReceives: 5}, func(x *fixture) {
		x.send("a.1")
		store := memstore.New()
		must.Get(granted.Lease(store.Acquire(t.Context(), dedup.Claim{Key: "billing#a", Owner: "elsewhere", Lease: time.Minute, Retention: time.Hour})))(t)
		once := must.Get(dedup.New(store, "billing", func(o *dedup.Options) {
			o.Key = func(*sqsonce.Message) (string, error) { return "a", nil }
		}))(t)
		j := x.start(once.Handler(ok))
		time.Sleep(59 * time.Second)
		if n := len(x.queued()); n != 1 {
			t.Errorf("%d messages left during the other lease, want the one", n)
		}
		time.Sleep(4 * time.Second)
		x.wantEmpty()
		j.stopClean()
		if s := j.Stats(); s.Received != 1 || s.Done != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// TestHeldCopiesAreLimited: thirty copies of an event do not use up MaxInFlight or Bytes. Those that are not held come back
// when the lease of the one that runs may be over, and messages of other events are handled all the while.
func TestHeldCopiesAreLimited(t *testing.T) {
	for name, tc := range map[string]struct {
		held   int
		filler int // bytes
		most   int // copies held: as many, or half of MaxBytes
	}{
		"messages": {held: 7, most: 7},
		"bytes":    {held: 1000, filler: 100 << 10, most: 5},
	} {
		run(t, name, setup{maxReceives: 1000}, func(x *fixture) {
			filler := strings.Repeat("x", tc.filler)
			send := func(event string, n int) {
				for i := range n {
					x.send(fmt.Sprintf("%s.%d%s", event, i, filler))
				}
			}
			o := must.Get(dedup.New(memstore.New(), "billing", func(o *dedup.Options) {
				o.Key = func(m *sqsonce.Message) (string, error) { return m.Body[:1], nil }
			}))(x)
			var r runs
			j := x.start(o.Handler(func(ctx context.Context, m *sqsonce.Message) error {
				if m.Body[0] != 'a' {
					return nil
				}
				return r.take(11*time.Minute)(ctx, m)
			}), func(o *Options) { o.MaxHeld, o.MaxBytes = tc.held, 1<<20 })
			send("a", 1)
			time.Sleep(time.Second)
			send("a", 30)
			for i := range 9 {
				send(fmt.Sprint(i), 1)
			}
			time.Sleep(10 * time.Minute)
			held := -1 // the one that runs
			for _, m := range x.queued() {
				if m.Body[0] != 'a' {
					x.Errorf("%.3s waits behind copies of another event", m.Body)
				}
				if m.ReceiveCount == 1 {
					held++
				}
			}
			if held != tc.most {
				x.Errorf("%d copies held, want %d", held, tc.most)
			}
			time.Sleep(time.Hour)
			x.wantEmpty()
			j.stopClean()
			if len(x.dead()) != 0 || len(r.list()) != 1 {
				x.Errorf("%d runs, %d in the dead-letter queue", len(r.list()), len(x.dead()))
			}
		})
	}
}

// TestHeldCopyAtTheStop: a stop gives held messages back, with the rest of their delay. At its last receive a message is
// held on, and handled if the peer returns in time.
func TestHeldCopyAtTheStop(t *testing.T) {
	for _, tc := range []struct {
		name        string
		maxReceives int
		shutdown    bool
		left        int
	}{
		{"stop", 5, false, 1},
		{"shutdown", 5, true, 2},
		{"stop at the last receive", 1, false, 0},
		{"shutdown at the last receive", 1, true, 2},
	} {
		run(t, tc.name, setup{maxReceives: tc.maxReceives}, func(x *fixture) {
			x.send("a.1", "a.2")
			var r runs
			_, h := x.deduplicate(r.take(20 * time.Second))
			j := x.start(h, two)
			time.Sleep(10 * time.Second)
			if tc.shutdown {
				j.Shutdown()
			}
			begun := time.Now()
			j.stopClean()
			left := append(x.queued(), x.dead()...) // a poll under way may receive again what was cancelled at its last receive
			if len(left) != tc.left || len(r.list()) != 1 {
				x.Errorf("%d left, %d runs; want %d, one", len(left), len(r.list()), tc.left)
			}
			for _, m := range left {
				if back := m.VisibleAt.Sub(begun); m.Body != r.list()[0] && (back < 15*time.Second || back > time.Minute) {
					x.Errorf("%s comes back %s after the stop began, want after the lease of the other delivery", m.Body, back)
				}
			}
			if s := j.Stats(); s.Abandoned != 0 || s.Undeleted != 0 {
				x.Errorf("%+v", s)
			}
		})
	}
}

// TestHeldHeadKeepsItsGroup: the messages behind a copy that is held wait too, and then run in order.
func TestHeldHeadKeepsItsGroup(t *testing.T) {
	bubble(t, setup{fifo: true, maxReceives: 5}, func(x *fixture) {
		x.send("g:a.1")
		var r runs
		_, h := x.deduplicate(func(ctx context.Context, m *sqsonce.Message) error {
			d := time.Second
			if m.Body == "g:a.1" {
				d = time.Minute
			}
			return r.take(d)(ctx, m)
		})
		j := x.start(h, two)
		time.Sleep(time.Second)
		x.send("h:a.2", "h:b", "h:c", "k:d")
		time.Sleep(50 * time.Second)
		if got, want := r.list(), []string{"g:a.1", "k:d"}; !slices.Equal(got, want) {
			t.Errorf("while the copy is held: %v, want %v", got, want)
		}
		time.Sleep(20 * time.Second)
		if got, want := r.list(), []string{"g:a.1", "k:d", "h:b", "h:c"}; !slices.Equal(got, want) {
			t.Errorf("runs: %v, want %v", got, want)
		}
		x.wantEmpty()
		j.stopClean()
		if s := j.Stats(); s.Received != 5 || s.LeasesLost != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// A message beyond Options.MaxHeld is given back until the other delivery's lease is certainly over: it costs one receive more.
func TestMessageBeyondHeldComesBackOnce(t *testing.T) {
	bubble(t, setup{maxReceives: 5}, func(x *fixture) {
		x.send("a", "b", "c")
		var r runs
		j := x.start(elsewhere(&r, time.Now().Add(time.Minute)), func(o *Options) { o.MaxHeld = 1 })
		time.Sleep(2 * time.Minute)
		x.wantEmpty()
		j.stopClean()
		if s := j.Stats(); len(r.list()) != 6 || s.Received != 5 {
			t.Errorf("%d runs of three messages, %d receives; want two runs of each, and two receives of the two that were not held", len(r.list()), s.Received)
		}
	})
}

// A message that has not run is released and not retried, however it waited, and expires without the error of another one, except in an
// outage. A suspect stays where there is no room.
func TestUnrunMessage(t *testing.T) {
	t.Parallel()
	for state, told := range map[needsState]bool{needsProven: false, needsDoubted: true, needsDown: true} {
		l, ds := newGroup(t, 1)
		l.needs.state, l.needs.err, l.opts.MaxHeld = state, errTest, 0
		l.holdParked(ds[0], heldSuspect, time.Hour, nil)
		l.expire(ds[0]) // which is no suspect any more
		if s := l.Stats(); s.Retried != 0 || s.Released != 1 || errors.Is(ds[0].result.err, errTest) != told {
			t.Errorf("state %d: %d retried, %d released, expired by %v", state, s.Retried, s.Released, ds[0].result.err)
		}
	}
}

// In the last part of its retention a message is dead-lettered for want of a store, but not for want of a slot, nor while it is in progress
// elsewhere.
func TestExpireHeld(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		needs    needsState
		state    state
		outcome  sqsonce.OutcomeKind
		due      bool
		expected state
	}{
		{needs: needsDown, state: ready, expected: rejecting},
		{needs: needsDown, state: ready, outcome: sqsonce.OutcomeInProgress, expected: ready},
		{needs: needsDown, state: held, expected: rejecting},
		{needs: needsDoubted, state: ready, expected: ready},
		{needs: needsDoubted, state: held, expected: rejecting},
		{needs: needsProven, state: held, due: true, expected: rejecting},
		{needs: needsProven, state: held, expected: held},
	} {
		l, ds := newGroup(t, 1)
		d := ds[0]
		l.queue.retention, l.queue.deadLetter, d.m.SentAt = time.Hour, goodURL, l.now().Add(-time.Hour)
		if c.state == held {
			l.holdParked(d, heldAside, time.Minute, nil)
		}
		l.clock = serverClock{date: l.now(), sent: l.now()}
		l.needs.state, d.result.outcome, d.due = c.needs, c.outcome, c.due
		if l.expireHeld(); d.state != c.expected {
			t.Errorf("%+v: state %d", c, d.state)
		}
	}
}

// What has failed keeps the rest of its delay in a stop. Anything else may be run elsewhere at once, unless it is unavailable in a process in
// which nothing worked yet, and has time.
func TestDelayOfHeldMessageInStop(t *testing.T) {
	t.Parallel()
	for why, keeps := range map[*reason]bool{
		heldAttempt: true, heldElsewhere: true, heldDLQ: true, heldAside: false, heldClaim: false, heldSuspect: false,
	} {
		for _, c := range []struct{ proven, expires bool }{{proven: true}, {}, {expires: true}} {
			l, ds := newGroup(t, 1)
			if l.needs.proven = c.proven; c.expires {
				l.queue.retention, ds[0].m.SentAt = time.Hour, l.now().Add(-time.Hour)
				l.clock = serverClock{date: l.now(), sent: l.now()}
			}
			l.holdParked(ds[0], why, time.Minute, nil)
			l.beginStop(nil)
			want := keeps || why.unavailable && !c.proven && !c.expires
			if got := ds[0].delay; ds[0].state != releasing || got > 30*time.Second != want {
				t.Errorf("%+v, %+v: given back for %s", *why, c, got)
			}
		}
	}
}

func TestHoldTime(t *testing.T) {
	t.Parallel()
	l, _ := newGroup(t, 1)
	l.opts.VisibilityTimeout = 30 * time.Second
	for _, tc := range []struct {
		asked   time.Duration
		bounces int
		want    time.Duration
	}{
		{-1, 1, 15 * time.Second}, // nothing says when the other delivery ends
		{20 * time.Second, 1, 19 * time.Second},
		{time.Second, 1, holdAgain}, {time.Second, 5, holdAgain}, {time.Second, 6, 2 * holdAgain}, {time.Second, 100, holdAgainMost},
	} {
		if got := l.holdTime(result{asked: tc.asked}, tc.bounces); got != tc.want {
			t.Errorf("asked %s, %d times: got %s, want %s", tc.asked, tc.bounces, got, tc.want)
		}
	}
	l.opts.VisibilityTimeout = time.Second
	if got := l.holdTime(result{asked: -1}, 1); got != time.Second {
		t.Errorf("V=1s: got %s, want 1s", got)
	}
}

// A message that finds its event in progress after the stop has begun is not held, and visible again when the other lease is
// certainly over.
func TestMessageInProgressAtTheStop(t *testing.T) {
	bubble(t, setup{maxReceives: 5}, func(x *fixture) {
		x.send("a")
		until := time.Now().Add(time.Minute)
		j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
			time.Sleep(5 * time.Second)
			var r runs
			return elsewhere(&r, until)(ctx, m)
		}, func(o *Options) { o.WaitTime = time.Second })
		time.Sleep(time.Second)
		begun := time.Now()
		j.stopClean()
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("stopped after %s, want as the handler returns", took)
		}
		time.Sleep(time.Until(until))
		if n := len(x.receive(time.Second)); n != 0 {
			t.Errorf("%d messages visible at the end of the other lease, want none yet", n)
		}
		time.Sleep(3 * time.Second)
		if n := len(x.receive(time.Second)); n != 1 {
			t.Errorf("%d messages visible three seconds later, want 1", n)
		}
	})
}
