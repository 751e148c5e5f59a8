package status

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/internal/statusreport"
	"github.com/sqsonce/sqsonce/sqsworker"
)

var allPaths = []string{"/", "/live", "/ready", "/stats", "/running"}

// TestRunning: handlers of two workers, one stuck, the oldest first; with keys and groups only where that was asked for, and
// nothing of a message's body at all.
func TestRunning(t *testing.T) {
	t.Parallel()
	bubble(t, func(x *fixture) {
		const secret = "s3cret"
		orders, refunds := x.queue("orders.fifo", map[string]string{"FifoQueue": "true"}), x.queue("refunds", nil)
		over := make(chan struct{})
		once := must.Get(dedup.New(memstore.New(), "billing", func(o *dedup.Options) { o.Logger = slog.New(slog.DiscardHandler) }))(t)
		stuck := x.worker(orders, keeps("orders|1", func(context.Context, *sqsonce.Message) error { <-over; return nil }), func(o *sqsworker.Options) {
			o.Timeout = func(*sqsonce.Message) time.Duration { return 10 * time.Second }
		})
		slow := x.worker(refunds, once.Handler(sleeps(time.Minute)))
		plain := x.handler(workers(slow, stuck))
		named := x.handler(workers(slow, stuck), func(o *Options) { o.Identifiers = true })
		stopStuck, stopSlow := x.run(stuck), x.run(slow)
		x.send(orders, secret, "customer-7")
		time.Sleep(2 * time.Second)
		x.send(refunds, secret, "")
		time.Sleep(12 * time.Second)
		synctest.Wait() // a lease that is renewed at this moment is

		r := get[statusreport.RunningReport](t, named, "/running", 200)
		if r.V != 1 || r.Total != 2 || len(r.Running) != 2 {
			t.Fatalf("got %+v", r)
		}
		first, second := r.Running[0], r.Running[1]
		if first.Queue != "orders.fifo" || first.Key != "orders|1" || first.Group != "customer-7" || !first.Stuck || first.Seconds != 14 || first.Receives != 1 {
			t.Errorf("first: %+v", first)
		}
		if !strings.HasPrefix(second.Key, "sqs-message|") || !strings.HasSuffix(second.Key, second.MessageID) || second.Group != "" || second.Stuck || second.Seconds != 12 {
			t.Errorf("second: %+v", second)
		}
		if first.Lease <= 0 || first.Lease > 30 || first.MessageID == "" {
			t.Errorf("first: %+v, want it hidden for at most the visibility timeout", first)
		}

		unnamed := get[statusreport.RunningReport](t, plain, "/running", 200)
		first.Key, first.Group, second.Key = "", "", ""
		if !slices.Equal(unnamed.Running, []statusreport.Running{first, second}) {
			t.Errorf("without identifiers: %+v", unnamed.Running)
		}
		for _, path := range allPaths {
			for _, h := range []struct {
				name   string
				secret []string
				body   string
			}{
				{"named", []string{secret}, ask(named, "GET", path).Body.String()},
				{"unnamed", []string{secret, "customer-7", "orders|1", "sqs-message"}, ask(plain, "GET", path).Body.String()},
			} {
				for _, s := range h.secret {
					if strings.Contains(h.body, s) {
						t.Errorf("%s of the %s handler has %q:\n%s", path, h.name, s, h.body)
					}
				}
			}
		}
		if page := ask(named, "GET", "/").Body.String(); !strings.Contains(page, "<td>customer-7</td>") || !strings.Contains(page, "2 of 2") {
			t.Errorf("the page has no group:\n%s", page)
		}
		close(over)
		time.Sleep(time.Minute)
		if r := get[statusreport.RunningReport](t, plain, "/running", 200); r.Total != 0 || r.Running == nil || len(r.Running) != 0 {
			t.Errorf("nothing runs: %+v, want an empty list", r)
		}
		if err := stopStuck(); err != nil {
			t.Error(err)
		}
		if err := stopSlow(); err != nil {
			t.Error(err)
		}
	})
}

// TestRunningIsBounded: 1,500 handlers run in two workers.
func TestRunningIsBounded(t *testing.T) {
	t.Parallel()
	bubble(t, func(x *fixture) {
		var ws []*sqsworker.Worker
		var stops []func() error
		for _, name := range []string{"a", "b"} {
			url := x.queue(name, nil)
			x.sendMany(url, 75)
			w := x.worker(url, sleeps(3*time.Minute), func(o *sqsworker.Options) { o.Concurrency, o.StopTimeout = 750, time.Hour })
			ws, stops = append(ws, w), append(stops, x.run(w))
			time.Sleep(time.Minute)
		}
		r := get[statusreport.RunningReport](t, x.handler(workers(ws[1], ws[0])), "/running", 200)
		if r.Total != 1500 || len(r.Running) != 1000 {
			t.Fatalf("%d of %d, want 1000 of 1500", len(r.Running), r.Total)
		}
		named := x.handler(workers(ws[1], ws[0]), func(o *Options) { o.Identifiers = true })
		for path, most := range map[string]int{"/live": 1 << 10, "/ready": 1 << 10, "/stats": 16 << 10, "/running": 512 << 10, "/": 64 << 10} {
			if n := ask(named, "GET", path).Body.Len(); n > most {
				t.Errorf("%s: %d bytes, want %d at most", path, n, most)
			} else {
				t.Logf("%s: %d bytes", path, n)
			}
		}
		if r.Running[749].Queue != "a" || r.Running[750].Queue != "b" {
			t.Error("the younger worker's handlers are before the older one's")
		}
		if !slices.IsSortedFunc(r.Running, func(a, b statusreport.Running) int { return int(b.Seconds*1000) - int(a.Seconds*1000) }) {
			t.Error("not the oldest first")
		}
		for _, stop := range stops {
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestHostileNames: what others have written into a message stays text.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	bubble(t, func(x *fixture) {
		url := x.queue("orders.fifo", map[string]string{"FifoQueue": "true"})
		const group, key = `<script>alert(1)</script>`, "</td>\u202egpj.exe'\"&"
		w := x.worker(url, keeps(key, sleeps(time.Minute)))
		h := x.handler(workers(w), func(o *Options) { o.Identifiers, o.Name = true, "<b>shop</b>" })
		stop := x.run(w)
		x.send(url, "a", group)
		time.Sleep(time.Second)
		page := ask(h, "GET", "/")
		text := page.Body.String()
		for _, bad := range []string{"<script", "\u202e", "<b>shop", "</td>\\u202e"} {
			if strings.Contains(text, bad) {
				t.Errorf("the page has %q:\n%s", bad, text)
			}
		}
		for _, good := range []string{"&lt;script&gt;alert(1)&lt;/script&gt;", `&lt;/td&gt;\u202egpj.exe`, "<title>&lt;b&gt;shop"} {
			if !strings.Contains(text, good) {
				t.Errorf("the page has no %q:\n%s", good, text)
			}
		}
		if policy := page.Header().Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; style-src 'sha256-") {
			t.Errorf("Content-Security-Policy: %q", policy)
		}
		if !strings.Contains(text, "<style>"+style+"</style>") {
			t.Error("the page's style is not the one that its policy allows")
		}
		if r := get[statusreport.RunningReport](t, h, "/running", 200); r.Running[0].Group != group || r.Running[0].Key != key {
			t.Errorf("JSON: %+v", r.Running)
		}
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestPage: it has a row for every number of /stats, and links that work where it is mounted.
func TestPage(t *testing.T) {
	t.Parallel()
	bubble(t, func(x *fixture) {
		h := x.handler(func(o *Options) { everything(x, o) })
		text := ask(h, "GET", "/").Body.String()
		for of, zero := range counted {
			for name := range statsOf(zero) {
				if !strings.Contains(text, `<th scope="row">`+name+`</th>`) {
					t.Errorf("no row of %s %s", of, name)
				}
			}
		}
		for _, want := range []string{"shop v1.2.3", "<h2>Queue orders</h2>", "<strong>Not ready, queue orders</strong>: the worker does not run: new.", `href="stats"`, "0 of 0"} {
			if !strings.Contains(text, want) {
				t.Errorf("the page has no %q:\n%s", want, text)
			}
		}
		if got := wrongIn(statusreport.Report{Workers: []statusreport.Worker{{NotLive: "a", NotReady: "a", Stats: statusreport.Stats{"stuck": 1}}},
			Limits: []statusreport.Limit{{Component: statusreport.Component{Stats: statusreport.Stats{"down_seconds": 1, "keys_down": 2}}}},
			Relays: []statusreport.Component{{Stats: statusreport.Stats{"backlog_halted": 1}}}}); len(got) != 5 {
			t.Errorf("%v, want the worker, its stuck handler, the counter and its keys, and the outbox", got)
		}
		var first []string
		for _, r := range firstRows("worker", statusreport.Stats{"aside": 2, "in_doubt": 0, "suspect": 1, "held": 0, "receives": 3}) {
			first = append(first, r.Name)
		}
		if want := []string{"held", "aside", "suspect"}; !slices.Equal(first, want) {
			t.Errorf("%q are not folded, want %q", first, want)
		}
		empty, relays := ask(x.handler(func(o *Options) { o.Consumers = map[string]Consumer{"billing": counts{}} }), "GET", "/").Body.String(), ask(x.handler(func(o *Options) { everything(x, o); o.Workers, o.Limits = nil, nil }), "GET", "/").Body.String()
		if strings.Contains(empty, "<p>No ") || !strings.Contains(relays, "outbox is halted") || strings.Count(relays, "<p>No ") != 1 {
			t.Errorf("claims of what the process does not have:\n%s\n%s", empty, relays)
		}
		wrong, numbers, rest := strings.Index(text, "Not ready"), strings.Index(text, "<dd>"), strings.Index(text, "<details>")
		if strings.Count(text, "<dd>") != 8 || wrong > numbers || numbers > rest || strings.Contains(text, "<details open") {
			t.Errorf("not what is wrong, then 8 numbers, then the rest, folded:\n%s", text)
		}
	})
}
