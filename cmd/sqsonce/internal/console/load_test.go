package console

import (
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/statusreport"
)

const mostPage = 100 << 10 // bytes

// What fifty queues need in an hour is bounded, and so is their page: five of them have plots.
func TestFiftyQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, withWorkers(processes{"one": func(string) any { return statusreport.Report{V: 1, Name: "billing", Started: time.Now()} }}, "http://one"), func(o *Options) {
			q := o.Queues[0]
			o.Queues = nil
			for i := range 50 {
				q.Name = "orders-" + strconv.Itoa(i)
				o.Queues = append(o.Queues, q)
			}
		})
		f.has("/")
		before := heap()
		begun := time.Now()
		for i := range 1000 {
			for _, q := range f.opts.Queues {
				one := newSample(begun.Add(time.Duration(i) * sampleEvery))
				for n := range one.values { // that change: a line that is level is short
					one.values[n] = float64(i*(n+7)*7919%1_000_003) / 7
				}
				f.sampler.queues[q.Name].add(one)
			}
		}
		time.Sleep(1000 * sampleEvery)
		if grown := heap() - before; grown > 8<<20 {
			t.Errorf("%d bytes more after an hour", grown)
		} else {
			t.Logf("%d KB more after an hour", grown>>10)
		}
		for path, most := range map[string]int{"/": 4 * mostPage, "/fragment/queues": 4 * mostPage, "/?queue=orders-49": mostPage, "/doctor": mostPage, "/runs": mostPage} {
			if page := f.has(path); len(page) > most {
				t.Errorf("%s: %d bytes, want %d at most", path, len(page), most)
			} else {
				t.Logf("%s: %d KB", path, len(page)>>10)
			}
		}
	})
}

// Of 512 workers that list a thousand handlers each the oldest are kept, and shown.
func TestManyWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fleet, urls := processes{}, []string(nil)
		for n := range 512 {
			host := "w" + strconv.Itoa(n)
			urls = append(urls, "http://"+host)
			began := time.Now().Add(time.Duration(n))
			fleet[host] = func(path string) any {
				if path == "running" {
					r := statusreport.RunningReport{V: 1, Now: time.Now(), Total: 1000}
					for i := range 200 {
						r.Running = append(r.Running, statusreport.Running{
							Queue: "orders", MessageID: fmt.Sprintf("%08d-0000-0000-0000-%012d", i, n), Key: fmt.Sprint("orders|", i), Group: fmt.Sprint("g", i), Receives: 1, Seconds: float64(1000 - i),
						})
					}
					return r
				}
				return statusreport.Report{V: 1, Name: host, Version: "v1.2.3", Started: began, Now: time.Now(), Workers: []statusreport.Worker{
					{Queue: "orders", URL: "u/orders", State: "running", Stats: statusreport.Stats{"received": 40, "done": 30, "failed": 2, "running": 1000, "stuck": 0, "leases_lost": 4}},
				}}
			}
		}
		f := newFixture(t, withWorkers(fleet, urls...))
		f.has("/workers")
		before := heap()
		f.start()
		time.Sleep(time.Second)
		f.has("/workers")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if kept := heap() - before; kept > 12<<20 {
			t.Errorf("%d bytes more", kept)
		} else {
			t.Logf("%d KB more", kept>>10)
		}
		for _, path := range []string{"/workers", "/fragment/workers"} {
			if page := f.has(path, "100 of 512,000"); len(page) > 512*700+mostPage { // a row for each worker
				t.Errorf("%s: %d bytes", path, len(page))
			} else {
				t.Logf("%s: %d KB", path, len(page)>>10)
			}
		}
	})
}
