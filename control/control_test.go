package control_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/control"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/sqsworker"
)

var paused = control.State{Paused: true}

// The workers of a process share one read each 5 to 6 s.
func TestReads(t *testing.T) {
	bubble(t, func(x *world) {
		p := x.start(0)
		x.run(&process{control: p.control}, func(o *sqsworker.Options) { o.Hooks = append(o.Hooks, p.control.Hooks()) })
		time.Sleep(10 * time.Minute)
		if n := x.store.count(); n < 100 || n > 121 {
			t.Errorf("%d reads in 10 min of two workers of a process, want one each 5 to 6 s", n)
		}
		x.stop()
		before := x.store.count()
		time.Sleep(time.Minute)
		if x.store.count() != before {
			t.Error("reads after the last worker's end")
		}
		x.run(p, func(o *sqsworker.Options) { o.Hooks = append(o.Hooks, p.control.Hooks()) })
		x.set(paused, time.Hour)
		time.Sleep(obeys)
		x.wantIntake(p, "a worker that came later", sqsworker.IntakePaused)
	})
}

// A worker may have the hooks of a Control twice.
func TestHooksTwice(t *testing.T) {
	bubble(t, func(x *world) {
		hooks := func(o *sqsworker.Options) { o.Hooks = append(o.Hooks, o.Hooks[0]) }
		p := x.start(0, hooks)
		x.set(paused, time.Hour)
		time.Sleep(obeys)
		x.wantIntake(p, "in a pause", sqsworker.IntakePaused)
		x.stop()
		if !p.control.Status().Paused {
			t.Error("Status after the stop: want the state that was read last")
		}
	})
}

// A worker that starts into a pause makes no receive.
func TestStartIntoAPause(t *testing.T) {
	bubble(t, func(x *world) {
		x.send(20)
		x.set(paused, time.Hour)
		x.store.takes = 900 * time.Millisecond
		p := x.start(time.Second)
		time.Sleep(59 * time.Minute)
		if n, began := x.receives(), p.since(time.Time{}); n != 0 || began != 0 {
			t.Errorf("%d receives and %d handlers of a worker that started into a pause, want none", n, began)
		}
		time.Sleep(2 * time.Minute)
		if p.since(time.Time{}) != 20 {
			t.Errorf("%d handlers after it, want 20", p.since(time.Time{}))
		}
	})
}

// Ten workers obey within 6 s and a long poll: handlers that run go on, none is started, nothing is received.
func TestFleet(t *testing.T) {
	bubble(t, func(x *world) {
		x.send(1500)
		var fleet []*process
		for range 10 {
			fleet = append(fleet, x.start(7*time.Second))
			time.Sleep(437 * time.Millisecond)
		}
		began := func(since time.Time) (n int) {
			for _, p := range fleet {
				n += p.since(since)
			}
			return n
		}
		time.Sleep(time.Minute)
		x.set(paused, time.Hour)
		time.Sleep(obeys)
		held, receives := time.Now(), x.receives()
		wait := fleet[0].Options().WaitTime
		time.Sleep(wait)
		done := 0
		for _, p := range fleet {
			x.wantIntake(p, "after a pause", sqsworker.IntakePaused)
			p.mu.Lock()
			if done += p.ended; p.ended != len(p.started) {
				t.Errorf("%d of %d handlers have ended that ran when the pause began", p.ended, len(p.started))
			}
			p.mu.Unlock()
		}
		time.Sleep(20 * time.Minute)
		if n := began(held); n != 0 {
			t.Errorf("%d handlers were started 6 s after the pause and later, want none", n)
		}
		if n := x.receives() - receives; n != 0 {
			t.Errorf("%d receives were sent 6 s after the pause and later, want none", n)
		}
		x.set(control.State{}, time.Hour)
		resumed := time.Now()
		time.Sleep(obeys + 10*time.Second)
		for i, p := range fleet {
			if p.since(resumed) == 0 || p.Stats().Intake == sqsworker.IntakePaused {
				t.Errorf("worker %d: intake is %s, want handlers within 16 s of the resume", i, p.Stats().Intake)
			}
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		for i, p := range fleet {
			if slices.Max(p.receives) != 1 {
				t.Errorf("worker %d: a message was received %d times, want once: a pause costs no receive", i, slices.Max(p.receives))
			}
		}
		if n := began(time.Time{}); n != 1500 {
			t.Errorf("%d handlers of 1500 messages", n)
		}
	})
}

// Messages that wait for a slot when a pause begins are held: no handler, no attempt, no receive. Those above MaxHeld are given back,
// which costs each a receive.
func TestHandlerHolds(t *testing.T) {
	for name, c := range map[string]struct {
		queue   string
		maxHeld int // 0: more than there are messages
		most    int // receives of a message
	}{
		"standard":                 {queue: "jobs", most: 1},
		"standard, beyond MaxHeld": {queue: "jobs", maxHeld: 2, most: 2},
		"FIFO":                     {queue: "orders.fifo", most: 1},
		"FIFO, beyond MaxHeld":     {queue: "orders.fifo", maxHeld: 2, most: 2},
	} {
		t.Run(name, func(t *testing.T) { bubble(t, func(x *world) { x.holds(c.queue, c.maxHeld, c.most) }) })
	}
}

func (x *world) holds(queue string, maxHeld, most int) {
	const n = 300
	x.url = testaws.Queue(x, x.c, queue, map[string]string{"VisibilityTimeout": "30"})
	x.send(n)
	p := x.start(100*time.Millisecond, func(o *sqsworker.Options) { o.Concurrency, o.MaxHeld = 1, maxHeld })
	time.Sleep(10 * time.Second)
	hear, reads := x.store.deafen(), x.store.count()
	x.set(paused, 2*time.Hour)
	for x.store.count() == reads || p.Stats().Waiting < 5 { // one may start before the others are held
		time.Sleep(time.Millisecond)
	}
	hear()
	for !p.control.Status().Paused {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(time.Millisecond)
	held := time.Now()
	time.Sleep(time.Hour)
	s := p.Stats()
	holds := s.Held + s.Waiting // behind the head of their group
	if began := p.since(held); began != 0 || holds < 2 || maxHeld > 0 && holds > int64(maxHeld) || s.Failed != 0 {
		x.Errorf("%d handlers in a pause, %d messages held, %d failures; want messages that are held", began, holds, s.Failed)
	}
	before := p.since(time.Time{})
	x.set(control.State{}, time.Hour)
	time.Sleep(obeys + 10*time.Second)
	if p.since(time.Time{}) == before {
		x.Error("no handler within 16 s of the resume")
	}
	time.Sleep(time.Hour)
	synctest.Wait()
	if len(p.receives) != n || slices.Max(p.receives) != most {
		x.Errorf("%d handlers of %d messages, at most %d receives; want %d", len(p.receives), n, slices.Max(p.receives), most)
	}
	if strings.HasSuffix(queue, ".fifo") && !slices.IsSorted(p.bodies) {
		x.Errorf("a group's order: %v", p.bodies)
	}
}

// Without the hooks a Handler sees no pause, which it says once.
func TestHandlerWithoutHooks(t *testing.T) {
	bubble(t, func(x *world) {
		x.set(paused, time.Hour)
		p := x.start(0, func(o *sqsworker.Options) { o.Hooks = nil })
		x.send(5)
		time.Sleep(time.Minute)
		if n := p.since(time.Time{}); n != 5 || strings.Count(x.log.String(), "without Hooks") != 1 {
			t.Errorf("%d of 5 handlers, log:\n%s\nwant one warning", n, x.log.String())
		}
	})
}

// A limit is a cap of each worker. It ends with its time, or with the state that replaces it.
func TestLimit(t *testing.T) {
	bubble(t, func(x *world) {
		x.send(2000)
		p := x.start(17 * time.Second)
		limit := func(n int) func() {
			return func() { x.set(control.State{Concurrency: n}, 10*time.Minute) }
		}
		for i, step := range []struct {
			do      func()
			after   time.Duration
			running int64
		}{
			{func() {}, 0, 4},
			{limit(2), 0, 2},
			{limit(1), 0, 1},
			{limit(3), 0, 3},
			{func() { x.set(paused, 10*time.Minute) }, 0, 0},
			{limit(2), 0, 2},
			{limit(100), 0, 4},
			{limit(2), 10 * time.Minute, 4},
			{limit(2), 0, 2},
			{func() { x.set(control.State{}, time.Hour) }, 0, 4},
			{func() { must.Do(x, p.SetConcurrency(6)); limit(5)() }, 0, 5},
			{func() { must.Do(x, p.SetConcurrency(3)) }, 0, 3},
		} {
			step.do()
			time.Sleep(obeys + 30*time.Second + step.after)
			if n := p.Stats().Running; n != step.running {
				t.Errorf("step %d: %d handlers run, want %d", i, n, step.running)
			}
		}
	})
}

// Whoever pauses a worker is not told that it is broken.
func TestHealth(t *testing.T) {
	bubble(t, func(x *world) {
		x.set(paused, time.Hour)
		p := x.start(0)
		for range 3 {
			time.Sleep(10 * time.Minute)
			for _, path := range []string{"/live", "/ready"} {
				w := httptest.NewRecorder()
				p.Health().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
				var body struct{ Intake string }
				must.Do(t, json.Unmarshal(w.Body.Bytes(), &body))
				if w.Code != 200 || path == "/ready" && body.Intake != "paused" {
					t.Errorf("%s of a paused worker: got %d, %s, want 200 and the intake", path, w.Code, w.Body)
				}
			}
		}
	})
}

// What was read last stays in force while the store is down, until its end and not longer. A store that is down at the start holds no
// worker up.
func TestOutage(t *testing.T) {
	for name, hangs := range map[string]bool{"fails": false, "hangs": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(x *world) {
				p := x.start(0)
				x.set(paused, time.Hour)
				time.Sleep(obeys)
				began := time.Now().Add(-obeys)
				x.store.set(errAway, hangs)
				for time.Since(began) < 59*time.Minute {
					time.Sleep(time.Minute)
					x.wantIntake(p, "in the outage", sqsworker.IntakePaused)
				}
				if s := p.control.Status(); s.Err == nil || !s.Paused || s.Reason != "bank is down" || time.Since(s.Read) < 58*time.Minute {
					t.Errorf("Status: got %+v, want the state that was read last, when, and an error", s)
				}
				if n := strings.Count(x.log.String(), "level=WARN"); n < 50 || n > 61 {
					t.Errorf("%d warnings in an hour, want one a minute", n)
				}
				time.Sleep(time.Until(began.Add(time.Hour)) + time.Millisecond)
				x.wantIntake(p, "at the end of the pause", sqsworker.IntakeOpen)

				x.send(1)
				late := x.start(0)
				time.Sleep(1100 * time.Millisecond)
				if n := p.since(time.Time{}) + late.since(time.Time{}); n != 1 {
					t.Errorf("%d handlers while the store is down, want 1", n)
				}
				x.wantIntake(late, "after a start in the outage", sqsworker.IntakeOpen)
				x.store.set(nil, false)
				x.set(paused, time.Hour)
				time.Sleep(obeys + 4*time.Second) // a read may hang
				for _, p := range []*process{p, late} {
					x.wantIntake(p, "after the outage", sqsworker.IntakePaused)
				}
			})
		})
	}
}

// A store that ignores the end of a call's context is down. It has one call at a time, and holds no stop up.
func TestStoreIgnoresItsContext(t *testing.T) {
	bubble(t, func(x *world) {
		p := x.start(0)
		x.set(paused, time.Hour)
		time.Sleep(obeys)
		hear, before := x.store.deafen(), x.store.count()
		time.Sleep(30 * time.Minute)
		if s := p.control.Status(); s.Err == nil || !s.Paused || x.store.count() > before+1 {
			t.Errorf("after %d reads Status is %+v, want one read, an error, and the state that was read last", x.store.count()-before, s)
		}
		if n := strings.Count(x.log.String(), "level=WARN"); n < 25 || n > 31 {
			t.Errorf("%d warnings in half an hour, want one a minute", n)
		}
		hear()
		x.set(control.State{}, time.Hour)
		time.Sleep(2 * obeys)
		x.wantIntake(p, "after the outage", sqsworker.IntakeOpen)

		x.set(paused, time.Hour) // a stop waits for no receive
		time.Sleep(time.Minute)
		hear = x.store.deafen()
		time.Sleep(obeys)
		began := time.Now()
		x.stop()
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("a stop took %s", took)
		}
		hear()
	})
}

// A record that can't be used is no pause, and does not end one.
func TestBrokenItemIsNoPause(t *testing.T) {
	const day = 24 * time.Hour
	for name, item := range map[string]struct {
		data string
		d    time.Duration
	}{
		"no JSON":              {"paused", time.Hour},
		"empty":                {"", time.Hour},
		"later version":        {`{"v":2,"paused":true,"by":"a","reason":"b"}`, time.Hour},
		"no version":           {`{"paused":true,"by":"a","reason":"b"}`, time.Hour},
		"nobody":               {`{"v":1,"paused":true,"reason":"b"}`, time.Hour},
		"no reason":            {`{"v":1,"paused":true,"by":"a"}`, time.Hour},
		"paused and limited":   {`{"v":1,"paused":true,"concurrency":2,"by":"a","reason":"b"}`, time.Hour},
		"negative concurrency": {`{"v":1,"concurrency":-2,"by":"a","reason":"b"}`, time.Hour},
		"more than 7 days":     {`{"v":1,"paused":true,"by":"a","reason":"b"}`, 7*day + 2*time.Hour},
		"in progress":          {},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(x *world) {
				p := x.start(0)
				seen := dedup.Record{Lease: dedup.Lease{Key: key}}
				write := func() {
					if item.d == 0 {
						_ = x.store.Delete(x.Context(), key)
						must.Get(x.store.Acquire(x.Context(), dedup.Claim{Key: key, Owner: "a", Lease: time.Hour, Retention: day}))(x)
						return
					}
					must.Get(x.store.Keep(x.Context(), seen, "by hand", []byte(item.data), item.d))(x)
				}
				write()
				time.Sleep(obeys)
				x.wantIntake(p, "with such a record", sqsworker.IntakeOpen)
				if err := p.control.Status().Err; err == nil || !strings.Contains(x.log.String(), "level=WARN") {
					t.Errorf("Status: got error %v, log:\n%s\nwant a warning", err, x.log.String())
				}
				must.Do(t, x.store.Delete(x.Context(), key))
				x.set(paused, time.Hour)
				time.Sleep(obeys)
				seen = must.Get(x.store.records.Inspect(x.Context(), key))(x)
				write()
				time.Sleep(50 * time.Minute)
				x.wantIntake(p, "with such a record in a pause", sqsworker.IntakePaused)
				time.Sleep(10 * time.Minute)
				x.wantIntake(p, "after the pause", sqsworker.IntakeOpen)
			})
		})
	}
}

// A pause lasts as long as its operator said by the store's clock. A worker whose clock is off by 10 min obeys it as much longer or
// shorter.
func TestWrongClock(t *testing.T) {
	for name, off := range map[string]time.Duration{"ahead of the store": -10 * time.Minute, "behind the store": 10 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(x *world) {
				x.store.records = skewed{x.store.records, off}
				p := x.start(0)
				x.set(paused, time.Hour)
				ends := time.Now().Add(time.Hour + min(off, 0))
				time.Sleep(obeys)
				time.Sleep(time.Until(ends) - 10*time.Second)
				x.wantIntake(p, "before the end", sqsworker.IntakePaused)
				time.Sleep(20 * time.Second)
				x.wantIntake(p, "after the end", sqsworker.IntakeOpen)
			})
		})
	}
}

// Changes are logged with who asked for them and why, and an end by time too.
func TestLog(t *testing.T) {
	bubble(t, func(x *world) {
		x.start(0)
		x.set(paused, time.Hour)
		time.Sleep(time.Minute)
		x.set(control.State{}, time.Hour)
		time.Sleep(time.Minute)
		x.set(control.State{Concurrency: 1}, 10*time.Minute)
		time.Sleep(20 * time.Minute)
		for _, want := range []string{"paused until", "open, as ann asked for: bank is down", "at most 1 at once", "time has passed"} {
			if strings.Count(x.log.String(), want) == 0 || strings.Count(x.log.String(), "by ann: bank is down") < 2 {
				t.Errorf("log:\n%s\nwant %q", x.log.String(), want)
			}
		}
	})
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	_, err := control.New(nil, "a#b", func(o *control.Options) { o.Every = time.Millisecond })
	if got := testaws.Fields(err); !slices.Equal(got, []string{"store", "consumer", "Options.Every"}) {
		t.Errorf("got the problems %v (%v)", got, err)
	}
	if _, err := control.New(memstore.New(), "a", func(o *control.Options) { o.Every = 61 * time.Second }); err == nil {
		t.Error("an interval of 61 s: got nil, want an error")
	}
	if c := must.Get(control.New(memstore.New(), "a"))(t); c.Handler(nil) != nil {
		t.Error("Handler(nil): want nil, which hosts refuse")
	}
}
