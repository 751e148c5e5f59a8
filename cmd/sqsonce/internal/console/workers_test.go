package console

import (
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
						"received": 40 * e, "done": 30 * e, "failed": 2 * e, "running": 17, "stuck": 1, "leases_lost": 4, "oldest_running_seconds": 3700}},
					{Queue: "jobs.fifo", URL: "u/jobs", State: "running", NotReady: "the store is away"},
				}}
			},
			"two": func(path string) any {
				if path == "running" {
					return statusreport.RunningReport{V: 1, Now: time.Now(), Total: 1, Running: []statusreport.Running{{Queue: "orders", MessageID: "m-middle", Seconds: 60, Lease: 1}}}
				}
				return statusreport.Report{V: 1, Name: "two", Started: began, Now: time.Now(), Workers: []statusreport.Worker{
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
		body := f.has("/workers", "billing&lt;script&gt;", "v1.2.3", "40.0", "30.0", "2.0", ">17<", "1h 1m", "not ready", "the store is away", "not live", "Run has ended",
			"http://gone", "connection refused &lt;b&gt;", "http://hangs", "away", "3 of 4 that run", "orders|\\u202e&lt;i&gt;", "no longer hidden", `id="r-0-m-old"`)
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
	newFixture(t).has("/workers", "No worker is named")
}
