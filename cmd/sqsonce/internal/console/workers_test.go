package console

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/doctor"
	"github.com/sqsonce/sqsonce/internal/statusreport"
)

// processes is a network with status handlers: by host, then path.
type processes map[string]func(path string) any

func (p processes) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, ok := p[r.URL.Host]
	if !ok {
		return nil, errors.New("connection refused <b>")
	}
	v := answer(strings.TrimPrefix(r.URL.Path, "/"))
	if v == nil { // it hangs
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	body, err := json.Marshal(v)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(body))), Request: r}, err
}

func withWorkers(p processes, urls ...string) func(*Options) {
	return func(o *Options) { o.HTTP, o.Workers = &http.Client{Transport: p}, urls }
}

func TestWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var asked atomic.Int32
		f := newFixture(t, withWorkers(processes{
			"one": func(path string) any {
				e := time.Since(began).Seconds()
				if path == "running" {
					asked.Add(1)
					r := statusreport.RunningReport{V: 1, Now: time.Now(), Total: 3, Running: []statusreport.Running{
						{Queue: "orders", MessageID: "m-old", Key: "orders|\u202e<i>", Group: "g", Receives: 2, Seconds: 3700, Lease: -1, Stuck: true},
						{Queue: "orders", MessageID: "m-new", Seconds: 2, Lease: 28, Receives: 1},
					}}
					return r
				}
				return statusreport.Report{V: 1, Name: "billing<script>", Version: "v1.2.3", Started: began, Now: time.Now(), Workers: []statusreport.Worker{
					{Queue: "orders", URL: "u/orders", State: "running", Stats: statusreport.Stats{
						"received": 40 * e, "done": 30 * e, "failed": 2 * e, "running": 17, "stuck": 1, "leases_lost": 4, "oldest_running_seconds": 3700, "aside": 12, "in_doubt": 2, "suspect": 0}},
					{Queue: "jobs.fifo", URL: "u/jobs", State: "running", NotReady: "the store is away"},
				}, Limits: []statusreport.Limit{
					{Component: statusreport.Component{Name: "shop/pay<i>", Stats: statusreport.Stats{"waiting": 48, "running": 2, "next_timestamp_seconds": float64(time.Now().UnixMilli())/1000 + 0.4, "down_seconds": 3}}, Plan: "10/s", Scope: "fleet"},
					{Component: statusreport.Component{Name: "shop/older"}},
				}}
			},
			"two": func(path string) any {
				if path == "running" {
					return statusreport.RunningReport{V: 1, Now: time.Now(), Total: 1, Running: []statusreport.Running{{Queue: "orders", MessageID: "m-middle", Seconds: 60, Lease: 1}}}
				}
				paused := statusreport.Control{Consumer: "billing", Paused: true, Text: "paused until noon by <ann>: bank is down"}
				return statusreport.Report{V: 1, Name: "two", Started: began, Now: time.Now(), Controls: []statusreport.Control{paused}, Workers: []statusreport.Worker{
					{Queue: "orders", URL: "u/orders", State: "running", NotLive: "Run has ended", Stats: statusreport.Stats{"received": 0, "done": 10 * time.Since(began).Seconds(), "failed": 0}},
				}}
			},
			"hangs": func(string) any { return nil },
		}, "http://one", "http://two", "http://gone", "http://hangs"))
		f.has("/workers", "not been read yet")
		f.start()
		time.Sleep(12 * time.Second)
		synctest.Wait()
		begun := time.Now()
		body := f.has("/workers", "billing&lt;script&gt;", "v1.2.3", "40.0", "30.0", "2.0", ">17<", "1h 1m", ">12 aside, 2 in doubt<", "not ready", "the store is away", "not live", "Run has ended",
			"http://gone", "connection refused &lt;b&gt;", "http://hangs", "away", "3 of 4 that run", "orders|\\u202e&lt;i&gt;", "no longer hidden", `id="r-0-m-old"`, `<bdi>shop/pay&lt;i&gt;</bdi>`, "10/s", ">48<", ">0.4s<", "counter down for 3s in one", ">unknown<")
		f.has("/", "billing&lt;script&gt; is not ready for jobs.fifo", "two is not live for orders", "http://hangs does not answer", "1 stuck handlers in billing&lt;script&gt;", "The counter of limit shop/pay&lt;i&gt; is down",
			"billing is paused until noon by &lt;ann&gt;: bank is down")
		if !time.Now().Equal(begun) {
			t.Error("the page waited for a worker")
		}
		if a, b, c := strings.Index(body, "m-old"), strings.Index(body, "m-middle"), strings.Index(body, "m-new"); a > b || b > c {
			t.Error("the oldest is not the first")
		}
		f.has("/", "done: 40.0", "failed: 2.0") // of both
		f.sampler.mu.Lock()
		if v := f.sampler.newSample(f.opts.Queues[0], time.Now().Add(time.Second)).values; !math.IsNaN(v[done]) {
			t.Errorf("a sample has the rate of an earlier one: %g", v[done])
		}
		f.sampler.mu.Unlock()
		time.Sleep(time.Minute)
		before := asked.Load()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := asked.Load() - before; n != 0 {
			t.Errorf("nobody looks, and running handlers were read %d times", n)
		}
		f.has("/workers", "They are read while this page is open")
	})
}

func TestNoWorkers(t *testing.T) {
	newFixture(t).has("/workers", "The console watches no workers")
}

func TestDoctor(t *testing.T) {
	f := newFixture(t, func(o *Options) {
		o.Doctor = func(_ context.Context, q Queue) []doctor.Finding {
			if q.Name == "jobs.fifo" {
				return nil
			}
			return []doctor.Finding{
				{ID: "Q1", Verdict: doctor.OK, Text: "reachable"}, {ID: "T3", Verdict: doctor.Unknown, Text: "denied"},
				{ID: "L2", Verdict: doctor.Fail, Text: "no <b>ReportBatchItemFailures", Fix: "aws lambda update " + q.Name}, {ID: "Q4", Verdict: doctor.Warn, Text: "4 d"},
			}
		}
	})
	f.has("/doctor", "the console with <code>--function</code>", "Not examined yet", "Examine orders", "Examine jobs.fifo")
	w := f.post("/doctor", "queue=orders")
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/doctor#doctor-0" {
		t.Errorf("got %d to %s", w.Code, w.Header().Get("Location"))
	}
	body := f.has("/doctor", "1 FAIL, 1 warn, 1 unknown, 1 ok", "As of ", "no &lt;b&gt;ReportBatchItemFailures", "aws lambda update orders", "Not examined yet")
	if fail, warn, skip, ok := strings.Index(body, ">L2<"), strings.Index(body, ">Q4<"), strings.Index(body, ">T3<"), strings.Index(body, ">Q1<"); fail > warn || warn > skip || skip > ok {
		t.Error("what must be mended is not the first")
	}
	f.post("/doctor", "queue=jobs.fifo")
	f.has("/doctor", "0 FAIL, 0 warn, 0 unknown, 0 ok", "No check applies")
	for form, want := range map[string]int{"queue=none": 404, "": 404, "queue=%zz": 400} {
		if w := f.post("/doctor", form); w.Code != want {
			t.Errorf("%q: got %d, want %d", form, w.Code, want)
		}
	}
}

// Two clicks make one examination; one that does not end is ended, and the page never waits for it for long.
func TestDoctorIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int32
		f := newFixture(t, func(o *Options) {
			o.Doctor = func(ctx context.Context, _ Queue) []doctor.Finding {
				most.Store(max(most.Load(), running.Add(1)))
				defer running.Add(-1)
				<-ctx.Done()
				return []doctor.Finding{{ID: "Q1", Verdict: doctor.Unknown, Text: "could not look"}}
			}
		})
		begun := time.Now()
		first := make(chan int)
		go func() { first <- f.post("/doctor", "queue=orders").Code }()
		synctest.Wait()
		if w := f.post("/doctor", "queue=orders"); w.Code != http.StatusSeeOther || !time.Now().Equal(begun) {
			t.Errorf("the second click: got %d after %s", w.Code, time.Since(begun))
		}
		if code := <-first; code != http.StatusSeeOther || time.Since(begun) != doctorWait {
			t.Errorf("the first click: got %d after %s", code, time.Since(begun))
		}
		f.has("/doctor", "under way since")
		if other := f.has("/doctor"); !strings.Contains(other, "Examine jobs.fifo") {
			t.Error("the other queue cannot be examined")
		}
		time.Sleep(doctorTimeout)
		synctest.Wait()
		f.has("/doctor", "it ended after 2m0s", "could not look", "Examine orders")
		if most.Load() != 1 {
			t.Errorf("%d examinations at once", most.Load())
		}
	})
}

// A panic is said, and what was found before stays.
func TestDoctorThatPanics(t *testing.T) {
	panics := false
	f := newFixture(t, func(o *Options) {
		o.Doctor = func(context.Context, Queue) []doctor.Finding {
			if panics {
				panic("of the doctor")
			}
			return []doctor.Finding{{ID: "Q1", Verdict: doctor.OK, Text: "reachable"}}
		}
	})
	f.post("/doctor", "queue=orders")
	panics = true
	if w := f.post("/doctor", "queue=orders"); w.Code != http.StatusSeeOther {
		t.Errorf("got %d", w.Code)
	}
	f.has("/doctor", "The last examination failed", "of the doctor", "reachable", "Examine orders")
	if !strings.Contains(f.logs.String(), "of the doctor") {
		t.Error("it is not logged")
	}
}

// The browser that has gone does not end it; the end of the console does.
func TestDoctorGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := false
		f := newFixture(t, func(o *Options) {
			o.Doctor = func(ctx context.Context, _ Queue) []doctor.Finding { <-ctx.Done(); ended = true; return nil }
		})
		ctx, cancel := context.WithCancel(t.Context())
		answered := make(chan struct{})
		go func() { f.do(f.request("POST", "/doctor", "queue=orders").WithContext(ctx)); close(answered) }()
		synctest.Wait()
		cancel()
		<-answered
		f.has("/doctor", "under way since")
		f.Close()
		if !ended {
			t.Error("the console has ended, and an examination goes on")
		}
	})
}
