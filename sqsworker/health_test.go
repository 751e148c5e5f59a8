package sqsworker

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

func (j *job) probe(path string) (status int, body map[string]any) {
	j.x.Helper()
	rec := httptest.NewRecorder()
	j.Health().ServeHTTP(rec, httptest.NewRequest("GET", path, nil))
	if rec.Code != 404 {
		if err := json.Unmarshal(rec.Body.Bytes(), &body); err != nil {
			j.x.Fatalf("%s: %v", path, err)
		}
	}
	return rec.Code, body
}

func (j *job) wantHealth(when string, live, ready int) {
	j.x.Helper()
	for path, want := range map[string]int{"/live": live, "/ready": ready} {
		if got, body := j.probe(path); got != want {
			j.x.Errorf("%s: %s is %d, want %d: %v", when, path, got, want, body)
		}
	}
}

func TestHealth(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		x.send("a")
		var r runs
		j := x.newJob(x.c, r.take(30*time.Second))
		j.wantHealth("before Run", 200, 503)
		if _, body := j.probe("/ready"); body["last_poll_seconds"] != -1.0 {
			t.Errorf("before the first poll: %v, want last_poll_seconds -1", body)
		}
		j.run()
		time.Sleep(14 * time.Second)
		j.wantHealth("running", 200, 200)
		_, body := j.probe("/ready")
		if body["state"] != "running" || body["running"] != 1.0 || body["oldest_running_seconds"] != 14.0 || body["last_poll_seconds"] != 14.0 {
			t.Errorf("body: %v", body)
		}
		time.Sleep(time.Hour + 3*time.Second) // within a poll
		j.wantHealth("idle", 200, 200)
		j.cancel()
		time.Sleep(time.Millisecond)
		j.wantHealth("stopping", 200, 503)
		j.stopClean()
		j.wantHealth("ended", 503, 503)
		if code, _ := j.probe("/other"); code != 404 {
			t.Errorf("/other: %d", code)
		}
	})
}

// wantReason checks why a path is 503.
func (j *job) wantReason(path, want string) {
	j.x.Helper()
	if code, body := j.probe(path); code != 503 || !strings.Contains(fmt.Sprint(body["reason"]), want) {
		j.x.Errorf("%s is %d, %v; want 503 because of %q", path, code, body, want)
	}
}

// TestReadyWhileFull: a worker that receives nothing for minutes, because each of its messages takes a minute, is ready.
func TestReadyWhileFull(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		var r runs
		j := x.startPrefetching(r.take(time.Minute), func(o *Options) { o.Concurrency, o.MaxInFlight = 1, 20 })
		x.sendMany(20) // which takes ten of them
		j.Resume()
		for range 50 {
			time.Sleep(10*time.Second + 7*time.Millisecond)
			j.wantHealth("nothing to ask for", 200, 200)
		}
		j.Shutdown()
		j.stopClean()
	})
}

func TestNotReadyWithoutProgress(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		x.sendMany(10)
		var r runs
		j := x.start(r.take(10*time.Minute), func(o *Options) { o.Concurrency, o.MaxInFlight = 2, 5 })
		time.Sleep(74 * time.Second)
		j.wantHealth("full for less than Wait + 1 min", 200, 200)
		time.Sleep(2 * time.Second)
		j.wantHealth("full, and nothing happens", 200, 503)
		j.wantReason("/ready", "the worker is full, and for 1m15s")
		time.Sleep(9 * time.Minute)
		j.wantHealth("handlers have returned", 200, 200)
		j.Shutdown()
		j.stopClean()
	})
}

// TestProgress: a handler that returns is progress also while deletes fail, and a delete that is confirmed while no handler
// returns.
func TestProgress(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		x.sendMany(5)
		n := 0
		j := x.start(func(ctx context.Context, _ *sqsonce.Message) error {
			if n++; n == 4 { // the others take a minute
				until(ctx, time.Hour)
				return ctx.Err()
			}
			time.Sleep(time.Minute)
			return nil
		}, func(o *Options) { o.Concurrency, o.MaxInFlight = 1, 5 })
		x.srv.Set(fault.Plan{Rules: []fault.Rule{{Op: opDelete, Prob: 1, Do: fault.Error}}})
		time.Sleep(3*time.Minute + 70*time.Second)
		j.wantHealth("the third handler has returned 70 s ago", 200, 200)
		x.srv.Set(fault.Plan{})
		time.Sleep(70 * time.Second)
		j.wantHealth("deletes were confirmed up to 70 s ago", 200, 200)
		time.Sleep(10 * time.Second)
		j.wantHealth("nothing since", 200, 503)
		j.Shutdown()
		_ = j.wait()
	})
}

// TestNotLiveWhenStuck: when every slot was taken by a handler that does not return, a restart helps.
func TestNotLiveWhenStuck(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		x.send("a", "b")
		over := make(chan struct{})
		j := x.start(func(_ context.Context, m *sqsonce.Message) error {
			if m.Body == "b" {
				time.Sleep(time.Hour)
			}
			<-over
			return nil
		}, func(o *Options) { o.Concurrency, o.Timeout = 2, timeoutOf(time.Minute) })
		time.Sleep(61 * time.Second)
		j.wantHealth("not stuck yet", 200, 200)
		time.Sleep(2 * time.Second)
		j.wantHealth("two are stuck", 503, 503)
		j.wantReason("/live", "did not return after their contexts were cancelled")
		close(over)
		time.Sleep(time.Second)
		j.wantHealth("one is stuck", 200, 200)
		time.Sleep(time.Hour)
		j.stopClean()
	})
}

func TestReasons(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		x.srv.Set(fault.Plan{Rules: []fault.Rule{{Op: opReceive, Nth: 1, Do: fault.Delay, Delay: 2 * time.Second}}})
		j := x.start(func(context.Context, *sqsonce.Message) error { return sqsonce.Unavailable(errTest) })
		time.Sleep(time.Second)
		j.wantReason("/ready", "no receive has succeeded yet")
		time.Sleep(time.Minute)
		if _, body := j.probe("/ready"); body["reason"] != nil {
			t.Errorf("ready, because of %v", body["reason"])
		}
		x.srv.Set(fault.Plan{Rules: []fault.Rule{{Op: opReceive, Prob: 1, Do: fault.Error}}})
		time.Sleep(10 * time.Minute)
		j.wantReason("/ready", "no receive has succeeded for 1m15s")
		x.srv.Set(fault.Plan{})
		x.send("a")
		time.Sleep(time.Minute)
		j.wantReason("/ready", "the last 3 outcomes were unavailable")
		j.Pause()
		j.wantHealth("paused in an outage", 200, 200)
		j.Resume()
		j.wantReason("/ready", "the last 3 outcomes were unavailable")
		j.cancel()
		time.Sleep(time.Millisecond)
		j.wantReason("/ready", "does not run")
		j.stopClean()
		j.wantReason("/live", "has ended")
	})
}
