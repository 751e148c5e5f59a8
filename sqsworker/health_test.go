package sqsworker

import (
	"encoding/json"
	"net/http/httptest"
	"testing"
	"time"

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
		h := r.take(30 * time.Second)
		w, err := New(x.c, x.url, h)
		if err != nil {
			t.Fatal(err)
		}
		(&job{Worker: w, x: x}).wantHealth("before Run", 200, 503)
		j := x.start(h)
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

func TestNotReadyInAnOutage(t *testing.T) {
	rule := fault.Rule{Op: opReceive, Nth: 2, Times: 1_000_000, Do: fault.Error, Code: "InternalError"}
	bubble(t, setup{faults: []fault.Rule{rule}}, func(x *fixture) {
		j := x.start(ok)
		time.Sleep(30 * time.Second)
		j.wantHealth("just failing", 200, 200)
		time.Sleep(10 * time.Minute)
		j.wantHealth("outage", 200, 503) // a restart would not help
		j.stopClean()
	})
}

func TestReadyWhileFull(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		for range 10 {
			x.send("m")
		}
		var r runs
		j := x.start(r.take(time.Hour), func(o *Options) { o.Concurrency, o.InFlight = 2, 5 })
		time.Sleep(30 * time.Minute)
		j.wantHealth("nothing to ask for", 200, 200)
		j.Hurry()
		j.stopClean()
	})
}
