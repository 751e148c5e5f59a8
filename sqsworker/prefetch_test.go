package sqsworker

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// untilDone waits for n deliveries to be done by all the workers together, and returns how long that took.
func untilDone(t testing.TB, n int64, jobs ...*job) time.Duration {
	t.Helper()
	for began := time.Now(); time.Since(began) < time.Hour; time.Sleep(10 * time.Millisecond) {
		done := int64(0)
		for _, j := range jobs {
			done += j.Stats().Done
		}
		if done >= n {
			return time.Since(began)
		}
	}
	t.Fatalf("not done after an hour: %d", n)
	return 0
}

// TestSlowMessagesAreShared: with slots for all messages in three workers no message waits behind another one, neither
// when nothing is known of the handlers nor later.
func TestSlowMessagesAreShared(t *testing.T) {
	bothKinds(t, setup{}, func(x *fixture) {
		const n = 30
		send := func(round int) {
			for i := range n {
				x.send(fmt.Sprintf("g%d:%d", i, round))
			}
		}
		send(0)
		var r runs
		jobs := []*job{x.start(r.take(6 * time.Second)), x.start(r.take(6 * time.Second)), x.start(r.take(6 * time.Second))}
		for round := range 3 {
			if round > 0 {
				send(round)
			}
			if took := untilDone(x.T, int64(n*(round+1)), jobs...); took > 8*time.Second {
				x.Errorf("round %d: 30 messages of 6 s took three workers %s, want at most 8 s", round, took)
			}
			time.Sleep(30 * time.Second)
		}
		for _, j := range jobs {
			j.stopClean()
		}
		x.wantEmpty()
	})
}

// TestQuickHandlersGetFullReceives: a receive of ten costs as much as one of one message.
func TestQuickHandlersGetFullReceives(t *testing.T) {
	for _, concurrency := range []int{1, 10, 50} {
		rule := fault.Rule{Prob: 1, Do: fault.Delay, Delay: 15 * time.Millisecond}
		run(t, strconv.Itoa(concurrency), setup{}, func(x *fixture) {
			const n = 1000
			x.sendMany(n)
			x.srv.Set(fault.Plan{Rules: []fault.Rule{rule}})
			var r runs
			j := x.start(r.take(5*time.Millisecond), func(o *Options) { o.Concurrency = concurrency })
			untilDone(x.T, n, j)
			time.Sleep(time.Second)
			full, fewer := 0, 0
			for _, c := range x.srv.Calls() {
				switch {
				case c.Op == opReceive && c.Entries == 10:
					full++
				case c.Op == opReceive && c.Entries > 0:
					fewer++
				}
			}
			if full < n/10-1 || fewer > 3 { // fewer: before anything is known, and at the end
				x.Errorf("%d receives of ten and %d of fewer, want %d of ten", full, fewer, n/10)
			}
			j.stopClean()
		})
	}
}

// TestSlowHandlersAreKeptAtWork: what may wait for a slot is less than ten messages, but handlers do not wait for receives,
// and these are not for one message each.
func TestSlowHandlersAreKeptAtWork(t *testing.T) {
	rule := fault.Rule{Prob: 1, Do: fault.Delay, Delay: 50 * time.Millisecond}
	bubble(t, setup{}, func(x *fixture) {
		const n, slots = 400, 10
		x.sendMany(n)
		x.srv.Set(fault.Plan{Rules: []fault.Rule{rule}})
		var sum time.Duration
		duration := func(body string) time.Duration {
			i, err := strconv.Atoi(body)
			if err != nil {
				t.Error(err)
			}
			return time.Second + time.Duration(i*37%20)*100*time.Millisecond // 1.95 s on average
		}
		for i := range n {
			sum += duration(strconv.Itoa(i))
		}
		j := x.start(func(_ context.Context, m *sqsonce.Message) error {
			time.Sleep(duration(m.Body))
			return nil
		}, func(o *Options) { o.Concurrency = slots })
		took := untilDone(t, n, j)
		if most := sum/slots + 3*time.Second; took > most {
			t.Errorf("took %s, want at most %s", took, most)
		}
		if s := j.Stats(); s.Receives > n/3 {
			t.Errorf("%d receives for %d messages", s.Receives, n)
		}
		j.stopClean()
	})
}

// TestWaitingMessagesAreLimited: MaxInFlight leaves room for all of them.
func TestWaitingMessagesAreLimited(t *testing.T) {
	for name, tc := range map[string]struct {
		takes time.Duration
		most  int64 // received after 10 s
	}{
		"one second of work": {500 * time.Millisecond, 25*20 + 25*2 + 10},
		"slots":              {time.Hour, 25}, // also with two receives at once
	} {
		run(t, name, setup{faults: []fault.Rule{{Op: opReceive, Prob: 1, Do: fault.Delay, Delay: 50 * time.Millisecond}}}, func(x *fixture) {
			x.sendMany(2000)
			var r runs
			j := x.start(r.take(tc.takes), func(o *Options) { o.Concurrency, o.MaxInFlight = 25, 2000 })
			time.Sleep(10 * time.Second)
			if s := j.Stats(); s.Received > tc.most || s.Running < 25 {
				x.Errorf("%d received, want at most %d; %d run, want 25", s.Received, tc.most, s.Running)
			}
			j.Shutdown()
			j.stopClean()
		})
	}
}

// TestHungHandlersAreNotCountedOn: they have been quick so far. What comes while they hang is left to other workers.
func TestHungHandlersAreNotCountedOn(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		var r runs
		j := x.startPrefetching(r.take(time.Hour), func(o *Options) { o.Concurrency, o.MaxInFlight = 10, 1000 })
		j.Resume()
		x.sendMany(10)
		time.Sleep(30 * time.Second) // the receive that was under way ends
		x.sendMany(100)
		time.Sleep(30 * time.Second)
		if s := j.Stats(); s.Running != 10 || s.Received > 30+paceMin || s.Intake != IntakeFull {
			t.Errorf("got %+v, want ten running and few received", s)
		}
		j.Shutdown()
		j.stopClean()
	})
}

// TestFirstReturnProvesLittle: the first handler to return is one that fails at once.
func TestFirstReturnProvesLittle(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		x.sendMany(30)
		handler := (&runs{}).take(6 * time.Second)
		j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
			if m.Body == "0" {
				return sqsonce.RetryAfter(time.Hour, errTest)
			}
			return handler(ctx, m)
		})
		time.Sleep(3 * time.Second)
		if s := j.Stats(); s.Failed != 1 || s.Received != 11 {
			t.Errorf("got %+v, want one failed and ten running of eleven received", s)
		}
		j.stopClean()
	})
}

func TestPace(t *testing.T) {
	t.Parallel()
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	for name, tc := range map[string]struct {
		mean time.Duration
		ages []time.Duration // of the running handlers, the oldest first
		free int
		want int
	}{
		"quick":                   {mean: ms(10), ages: []time.Duration{ms(5), 0}, free: 1, want: 300},
		"quick, one hangs":        {mean: ms(10), ages: []time.Duration{ms(1001), ms(5)}, want: 100},
		"quick, a second is late": {mean: ms(10), ages: []time.Duration{ms(1000), ms(5)}, want: 200},
		"quick, all hang":         {mean: ms(10), ages: []time.Duration{ms(5000), ms(2000)}},
		"a second":                {mean: ms(1000), ages: []time.Duration{0, 0}, free: 1, want: 3},
		"above half a second":     {mean: ms(600), ages: []time.Duration{0, 0, 0}, want: 5},
		"slow":                    {mean: ms(6000), ages: []time.Duration{ms(12001), ms(12000), ms(5000), ms(4999), 0}, free: 3, want: 2},
		"at once":                 {mean: 0, ages: []time.Duration{0}, want: 1e9},
		"idle, slow":              {mean: ms(6000), free: 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Now()
			p := pace{mean: tc.mean}
			for _, age := range tc.ages {
				p.began(&delivery{began: now.Add(-age)})
			}
			if got := p.takeUp(now, tc.free); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

// TestPaceMean: it follows the handlers when they change. A stuck one says nothing.
func TestPaceMean(t *testing.T) {
	t.Parallel()
	var p pace
	for _, c := range []struct {
		n                  int
		takes, least, most time.Duration
		stuck              bool
	}{
		{1, time.Second, time.Second, time.Second, false}, {1, 3 * time.Second, 2 * time.Second, 2 * time.Second, false},
		{1, time.Hour, 2 * time.Second, 2 * time.Second, true}, {100, 5 * time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond, false},
		{50, 6 * time.Second, 5 * time.Second, 6 * time.Second, false},
	} {
		for now := time.Now(); c.n > 0; c.n-- {
			d := &delivery{began: now}
			p.began(d)
			p.returned(d, now.Add(c.takes), c.stuck)
		}
		if p.mean < c.least || p.mean > c.most || p.running.count != 0 {
			t.Errorf("%+v: mean %s", c, p.mean)
		}
	}
}
