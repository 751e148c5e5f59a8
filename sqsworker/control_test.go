package sqsworker

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

func (j *job) wantIntake(when string, want Intake) {
	j.x.Helper()
	if got := j.Stats().Intake; got != want {
		j.x.Errorf("%s: intake is %q, want %q", when, got, want)
	}
}

// TestPause: no receive is started, and all that the worker has is handled, also what waits for a slot.
func TestPause(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		var r runs
		j := x.startPrefetching(r.take(time.Minute), func(o *Options) { o.Concurrency = 2 })
		j.wantIntake("paused", IntakePaused)
		x.sendMany(30)
		before := x.calls(opReceive)
		time.Sleep(time.Hour)
		if n := x.calls(opReceive) - before; n != 0 || len(r.list()) != 0 {
			t.Errorf("%d receives and %d runs while paused", n, len(r.list()))
		}
		j.Resume()
		time.Sleep(time.Second)
		j.Pause()
		inHand := x.inFlight()
		before = x.calls(opReceive)
		time.Sleep(time.Hour)
		if got := len(r.list()); inHand <= 2 || got != inHand {
			t.Errorf("%d in hand when it was paused, %d handled", inHand, got)
		}
		if n := x.calls(opReceive) - before; n != 0 {
			t.Errorf("%d receives while paused", n)
		}
		j.wantIntake("paused again", IntakePaused)
		j.stopClean()
		j.wantIntake("ended", "")
	})
}

// TestPauseBeforeRun: what is asked for before Run holds, and nothing is done by calls after it.
func TestPauseBeforeRun(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		j := x.newJob(x.c, ok)
		j.Pause()
		j.Pause()
		x.send("a")
		if j.wantIntake("before Run", ""); j.Stats().Concurrency != 0 {
			t.Errorf("%+v before Run", j.Stats())
		}
		j.run()
		time.Sleep(time.Hour)
		if n := x.calls(opReceive); n != 0 {
			t.Errorf("%d receives of a paused worker", n)
		}
		if s := j.Stats(); s.Concurrency != 10 || s.MaxInFlight != 30 {
			t.Errorf("limits %d and %d of a paused worker, want 10 and 30", s.Concurrency, s.MaxInFlight)
		}
		j.wantIntake("paused", IntakePaused)
		j.wantHealth("paused", 200, 200)
		if _, body := j.probe("/ready"); body["intake"] != "paused" {
			t.Errorf("body: %v, want it to say that the worker is paused", body)
		}
		j.Resume()
		time.Sleep(time.Second)
		x.wantEmpty()
		j.wantIntake("resumed", IntakeOpen)
		j.wantHealth("resumed", 200, 200)
		j.stopClean()
		j.Pause()
		j.Resume()
		if err := j.SetConcurrency(3); err != nil {
			t.Error(err)
		}
	})
}

// TestPauseRepeatsAnAttempt: a receive without an answer may have hidden a group. It counts as under way until it has one. If the
// repetition were a long poll, it would receive what comes later.
func TestPauseRepeatsAnAttempt(t *testing.T) {
	for name, received := range map[string]int64{"hidden": 2, "later": 0} {
		run(t, name, setup{fifo: true, faults: []fault.Rule{{Op: opReceive, Nth: 1, Do: fault.LoseReply}}}, func(x *fixture) {
			if name == "hidden" {
				x.send("g:0", "g:1")
			}
			var r runs
			j := x.start(r.take(time.Second))
			time.Sleep(time.Microsecond)
			j.Pause()
			time.Sleep(8 * time.Second)
			x.wantEmpty()
			x.send("g:2")
			time.Sleep(time.Minute)
			inOrder(t, r.list())
			if n, s := x.calls(opReceive), j.Stats(); n != 2 || s.Received != received {
				t.Errorf("%d receives of %d messages, want the first one and its repetition, %d messages", n, s.Received, received)
			}
			j.stopClean()
		})
	}
}

// TestReadyAfterIntakeWasClosed: the first receive after a long time without any is a long poll of 20 s.
func TestReadyAfterIntakeWasClosed(t *testing.T) {
	for name, clo := range map[string]func(j *job) (open func()){
		"paused": func(j *job) func() {
			j.Pause()
			time.Sleep(time.Hour)
			return j.Resume
		},
		"full": func(j *job) func() {
			j.x.send("slow")
			time.Sleep(time.Hour)
			j.wantIntake("full", IntakeFull)
			return func() { time.Sleep(time.Hour) }
		},
	} {
		run(t, name, setup{}, func(x *fixture) {
			var r runs
			j := x.start(r.take(2*time.Hour-time.Second), func(o *Options) { o.Concurrency = 1 })
			time.Sleep(time.Minute)
			open := clo(j)
			ready := 200
			if name == "full" {
				ready = 503 // no handler has returned for longer than WaitTime + 1 min
			}
			j.wantHealth("closed", 200, ready)
			open()
			time.Sleep(time.Second)
			j.wantIntake("open", IntakeOpen)
			j.wantHealth("open", 200, 200)
			j.stopClean()
		})
	}
}

func TestSetConcurrency(t *testing.T) {
	for name, tc := range map[string]struct {
		options             func(*Options)
		from, to            int
		running, runningNow int // before, and right after
	}{
		"more":                   {from: 2, to: 12, running: 2, runningNow: 12},
		"fewer":                  {from: 12, to: 2, running: 12, runningNow: 12},
		"to one":                 {from: 10, to: 1, running: 10, runningNow: 10},
		"more than InFlight":     {from: 2, to: 12, running: 2, runningNow: 5, options: func(o *Options) { o.MaxInFlight = 5 }},
		"InFlight follows":       {from: 1, to: 40, running: 1, runningNow: 40},
		"InFlight of its bounds": {from: 1, to: maxConcurrency, running: 1, runningNow: 60},
	} {
		run(t, name, setup{}, func(x *fixture) {
			x.sendMany(60)
			var r runs
			j := x.start(r.take(time.Minute), func(o *Options) {
				o.Concurrency = tc.from
				if tc.options != nil {
					tc.options(o)
				}
			})
			wantRunning := func(when string, want int) {
				x.Helper()
				if s := j.Stats(); int(s.Running) != want {
					x.Errorf("%s: %d run, want %d", when, s.Running, want)
				}
			}
			time.Sleep(30 * time.Second)
			wantRunning("before", tc.running)
			must.Do(x, j.SetConcurrency(tc.to))
			time.Sleep(time.Second)
			wantRunning("at once", tc.runningNow)
			limits := Options{Concurrency: tc.to, MaxInFlight: j.given.MaxInFlight}
			limits.setDefaults()
			if s := j.Stats(); int(s.Concurrency) != limits.Concurrency || int(s.MaxInFlight) != limits.MaxInFlight {
				x.Errorf("limits %d and %d, want %d and %d", s.Concurrency, s.MaxInFlight, limits.Concurrency, limits.MaxInFlight)
			}
			time.Sleep(time.Minute)
			if tc.to < tc.from {
				wantRunning("later", tc.to)
			}
			j.stopEmptyAfter(2 * time.Hour)
		})
	}
}

// TestReceiversFollowConcurrency: with one slot there are at most two receives at once.
func TestReceiversFollowConcurrency(t *testing.T) {
	for _, receivers := range []int{0, 2} {
		bubble(t, setup{faults: []fault.Rule{{Op: opReceive, Prob: 1, Do: fault.Delay, Delay: 100 * time.Millisecond}}}, func(x *fixture) {
			x.sendMany(1000)
			c := &countedClient{Client: x.c}
			j := x.newJob(c, ok, func(o *Options) { o.Concurrency, o.MaxReceivers = 1, receivers })
			must.Do(t, j.SetConcurrency(100))
			j.run()
			time.Sleep(time.Minute)
			j.stopClean()
			if follows := receivers == 0; follows != (c.receives.most > 2) {
				t.Errorf("Receivers %d: %d receives at once", receivers, c.receives.most)
			}
		})
	}
}

// TestDeletesFollowConcurrency: with sixteen at once, they would take 4 s.
func TestDeletesFollowConcurrency(t *testing.T) {
	bubble(t, setup{faults: []fault.Rule{{Op: opDelete, Prob: 1, Do: fault.Delay, Delay: time.Second}}}, func(x *fixture) {
		x.sendMany(500)
		j := x.start(ok, func(o *Options) { o.Concurrency = 1 })
		must.Do(t, j.SetConcurrency(500))
		time.Sleep(2500 * time.Millisecond)
		x.wantEmpty()
		j.stopClean()
	})
}

// TestControlFromManyGoroutines: before, during and after Run. Run waits for none of them, and leaves nothing behind: the
// bubble would find a goroutine that still waits.
func TestControlFromManyGoroutines(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		const n = 300
		x.sendMany(n)
		var r runs
		j := x.newJob(x.c, r.take(50*time.Millisecond))
		var callers sync.WaitGroup
		for i := range 8 {
			callers.Go(func() {
				for k := range 500 {
					switch (i + k) % 4 {
					case 0:
						j.Pause()
					case 1:
						j.Resume()
					case 2:
						if err := j.SetConcurrency(1 + (i+k)%20); err != nil {
							t.Error(err)
						}
					case 3:
						_, _, _, _, _ = j.Stats(), j.State(), j.Options(), j.whyNotLive(), j.whyNotReady()
						if all, _ := j.listRunning(10); len(all) > 0 {
							_ = all[0].Key()
						}
					}
					time.Sleep(time.Millisecond)
				}
			})
		}
		time.Sleep(10 * time.Millisecond)
		j.run()
		callers.Wait()
		j.Resume()
		time.Sleep(time.Hour)
		x.wantEmpty()
		if got := len(r.list()); got != n {
			t.Errorf("%d runs of %d messages", got, n)
		}
		j.Pause()
		j.stopClean()
		j.Resume()
	})
}

// TestSetConcurrencyRefuses: a number of slots that would overflow, or that SQS cannot fill, changes nothing.
func TestSetConcurrencyRefuses(t *testing.T) {
	t.Parallel()
	w := must.Get(New(stubClient{}, goodURL, ok))(t)
	for _, n := range []int{-1, 0, maxConcurrency + 1, 1 << 62} {
		if _, is := errors.AsType[*sqsonce.OptionError](w.SetConcurrency(n)); !is || w.control.concurrency.Load() != 10 {
			t.Errorf("%d: accepted", n)
		}
	}
}

// TestHold: the worker receives when it is not paused and nobody holds it, and a release counts once.
func TestHold(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		var r runs
		j := x.startPrefetching(r.take(0), func(o *Options) { o.Concurrency = 2 })
		a, b := j.holdReceives("a"), j.holdReceives("b")
		j.Resume()
		x.sendMany(3)
		for _, step := range []func(){func() {}, a, a, j.Pause, b} {
			step()
			time.Sleep(time.Minute)
			if len(r.list()) > 0 {
				t.Fatal("received while it was held or paused")
			}
			j.wantIntake("held", IntakePaused)
		}
		j.Resume()
		time.Sleep(time.Minute)
		if len(r.list()) != 3 {
			t.Errorf("%d handled after the last release, want 3", len(r.list()))
		}
		j.stopClean()
	})
}

// TestLimit: the least of the concurrency and of all limits is in force, from before Run on, and a release counts once.
func TestLimit(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		x.sendMany(60)
		var r runs
		j := x.newJob(x.c, r.take(47*time.Second), func(o *Options) { o.Concurrency = 10 })
		four := j.limitHandlers(4, "four")
		j.run()
		var two func()
		for _, step := range []struct {
			do   func()
			want int
		}{
			{func() {}, 4},
			{func() { two = j.limitHandlers(-2, "one"); j.limitHandlers(2, "two"); two() }, 2},
			{four, 2},
			{func() { two() }, 2},
			{func() { must.Do(x, j.SetConcurrency(1)) }, 1},
			{func() { must.Do(x, j.SetConcurrency(20)) }, 2},
		} {
			step.do()
			time.Sleep(2 * time.Minute)
			if s := j.Stats(); int(s.Concurrency) != step.want || int(s.Running) != step.want || j.Options().Concurrency != step.want {
				x.Errorf("%d of %d slots are taken, want %d", s.Running, s.Concurrency, step.want)
			}
		}
		j.stopEmptyAfter(2 * time.Hour)
	})
}
