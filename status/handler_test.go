package status

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/workerkit"
	"github.com/sqsonce/sqsonce/limit"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/control"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/fifo/outbox/dynamooutbox"
	"github.com/sqsonce/sqsonce/internal/statusreport"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// TestProbes: over the life of two workers each answer is that of both workers' Health together.
func TestProbes(t *testing.T) {
	t.Parallel()
	bubble(t, func(x *fixture) {
		orders, refunds := x.queue("orders", nil), x.queue("refunds", nil)
		ws := []*sqsworker.Worker{x.worker(orders, sleeps(time.Minute)), x.worker(refunds, sleeps(0))}
		h := x.handler(workers(ws...))
		seen := map[string]bool{}
		look := func(when string, states ...string) {
			t.Helper()
			for _, path := range []string{"/live", "/ready"} {
				want := statusreport.Probe{V: statusreport.Version, OK: true}
				for i, w := range ws {
					rec := ask(w.Health(), "GET", path)
					var body struct{ Reason string }
					must.Do(t, json.Unmarshal(rec.Body.Bytes(), &body))
					want.Workers = append(want.Workers, statusreport.ProbeWorker{
						Queue: []string{"orders", "refunds"}[i], State: states[i], OK: rec.Code == 200, Reason: body.Reason,
					})
					want.OK = want.OK && rec.Code == 200
				}
				status := map[bool]int{true: 200, false: 503}[want.OK]
				if diff := cmp.Diff(want, get[statusreport.Probe](t, h, path, status)); diff != "" {
					t.Errorf("%s: %s (-want +got):\n%s", when, path, diff)
				}
				seen[fmt.Sprint(path, want.OK)] = true
			}
			r := get[statusreport.Report](t, h, "/stats", 200)
			for i, w := range r.Workers {
				if w.State != states[i] || w.NotLive != workerkit.NotLive(ws[i]) || w.NotReady != workerkit.NotReady(ws[i]) || w.URL != "" {
					t.Errorf("%s: /stats says %+v", when, w)
				}
			}
		}
		look("before Run", "new", "new")
		stopOrders, stopRefunds := x.run(ws[0]), x.run(ws[1])
		time.Sleep(20 * time.Second)
		look("both run", "running", "running")
		if err := stopRefunds(); err != nil {
			t.Error(err)
		}
		look("one has ended", "running", "ended")
		x.send(orders, "a", "")
		time.Sleep(time.Second)
		stopped := make(chan error)
		go func() { stopped <- stopOrders() }()
		time.Sleep(time.Second)
		look("the other one stops", "stopping", "ended")
		<-stopped
		look("both have ended", "ended", "ended")
		time.Sleep(time.Minute) // the handler that the stop has abandoned
		if len(seen) != 4 {
			t.Errorf("answers: %v, want each path good and bad", seen)
		}
	})
}

// TestAccountsInReasons: a reason may be an error of AWS with an ARN. The account in it is shown only with Identifiers.
func TestAccountsInReasons(t *testing.T) {
	t.Parallel()
	bubble(t, func(x *fixture) {
		const account = "123456789012"
		url := x.queue("orders", nil)
		x.c = sqs.New(x.c.Options(), func(o *sqs.Options) {
			o.HTTPClient = &http.Client{Transport: refuses("arn:aws:iam::" + account + ":role/jobs")}
		})
		w := x.worker(url, sleeps(0))
		plain, named := x.handler(workers(w)), x.handler(workers(w), func(o *Options) { o.Identifiers = true })
		stop := x.run(w)
		time.Sleep(time.Second)
		for _, path := range []string{"/ready", "/stats", "/"} {
			if quiet, loud := ask(plain, "GET", path).Body.String(), ask(named, "GET", path).Body.String(); strings.Contains(quiet, account) || !strings.Contains(quiet, ":role/jobs") || !strings.Contains(loud, account) {
				t.Errorf("%s:\n%s\nwith Identifiers:\n%s", path, quiet, loud)
			}
		}
		_ = stop() // of a worker that was never ready
	})
}

// refuses is a network that cannot reach SQS.
type refuses string

func (r refuses) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New(string(r)) }

func TestPathsAndMethods(t *testing.T) {
	t.Parallel()
	x := newFixture(t)
	h := x.handler(workers(x.worker(x.queue("orders", nil), sleeps(0))))
	mux := http.NewServeMux()
	mux.Handle("/", h)
	mux.Handle("/status/", http.StripPrefix("/status", h))
	for path, want := range map[string]int{
		"/": 200, "/live": 200, "/ready": 503, "/stats": 200, "/running": 200, "/other": 404, "/stats/": 404, "/live/x": 404,
		"/status/": 200, "/status/live": 200, "/status/stats": 200, "/status/running": 200, "/status/metrics": 404,
	} {
		got := ask(mux, "GET", path)
		if got.Code != want {
			t.Errorf("GET %s is %d, want %d", path, got.Code, want)
		}
		if got := ask(mux, "POST", path); want == 404 && got.Code != 404 || want != 404 && (got.Code != 405 || got.Header().Get("Allow") != "GET, HEAD") {
			t.Errorf("POST %s is %d, Allow %q", path, got.Code, got.Header().Get("Allow"))
		}
		if want == 404 {
			continue
		}
		kind := "application/json"
		if strings.HasSuffix(path, "/") {
			kind = "text/html; charset=utf-8"
		}
		header := got.Header()
		if header.Get("Content-Type") != kind || header.Get("Cache-Control") != "no-store" || header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("GET %s: header %v", path, header)
		}
	}
	server := httptest.NewServer(h)
	defer server.Close()
	resp := must.Get(http.Head(server.URL + "/stats"))(t)
	if resp.Body.Close() != nil || resp.StatusCode != 200 || resp.ContentLength <= 0 {
		t.Errorf("HEAD /stats: %s, length %d", resp.Status, resp.ContentLength)
	}
}

// counts is a consumer.
type counts dedup.Stats

func (c counts) Stats() dedup.Stats { return dedup.Stats(c) }

// everything is one of each component.
func everything(x *fixture, o *Options) {
	x.Helper()
	ddb := dynamodb.New(dynamodb.Options{Region: "us-east-1"})
	store, err1 := dynamostore.New(ddb, "dedup")
	box, err2 := dynamooutbox.New(ddb, "outbox", "orders", "shop")
	events, err3 := fifo.NewPublisher(x.c, x.queue("events.fifo", map[string]string{"FifoQueue": "true"}), "shop")
	must.Do(x, errors.Join(err1, err2, err3))
	relay := must.Get(outbox.NewRelay(box, events))(x)
	o.Name, o.Version = "shop", "v1.2.3"
	o.Workers = []*sqsworker.Worker{x.worker(x.queue("orders", nil), sleeps(0), func(o *sqsworker.Options) { o.DeleteLinger = -1 })}
	o.Consumers = map[string]Consumer{
		"refunds": counts{}, "billing": counts{First: 3, StoreErrors: 1, KeySources: [sqsonce.KeyFromS3 + 1]int64{sqsonce.KeyFromMessageID: 3}},
	}
	o.Stores = map[string]Store{"dedup": store}
	o.Limits = map[string]*limit.Limiter{"billing": must.Get(limit.New([]limit.Rule{{Name: "tenant", Plan: limit.Plan{Concurrency: 3}}}))(x)}
	o.Relays = map[string]*outbox.Relay{"events": relay}
	o.Publishers = map[string]*fifo.Publisher{"events.fifo": events}
}

var update = flag.Bool("update", false, "write the golden file")

// TestStatsGolden: names are for those who read them. A new number is written with -update.
func TestStatsGolden(t *testing.T) {
	t.Parallel()
	bubble(t, func(x *fixture) {
		h := x.handler(func(o *Options) {
			everything(x, o)
			o.Stores = map[string]Store{"arn:aws:dynamodb:us-east-1:123456789012:table/dedup": o.Stores["dedup"]}
		})
		time.Sleep(90 * time.Second)
		var got bytes.Buffer
		must.Do(t, json.Indent(&got, ask(h, "GET", "/stats").Body.Bytes(), "", "  "))
		if *update {
			must.Do(t, os.WriteFile("testdata/stats.json", got.Bytes(), 0o644))
		}
		want := must.Get(os.ReadFile("testdata/stats.json"))(t)
		if diff := cmp.Diff(string(want), got.String()); diff != "" {
			t.Errorf("testdata/stats.json (-want +got):\n%s", diff)
		}
		get[statusreport.Report](t, h, "/stats", 200)
	})
}

func TestBadOptions(t *testing.T) {
	t.Parallel()
	var store *dynamostore.Store
	var once *dedup.Once
	_, err := Handler(func(o *Options) {
		o.Workers = []*sqsworker.Worker{nil}
		o.Consumers = map[string]Consumer{"billing": once, "none": nil, "": counts{}}
		o.Stores = map[string]Store{"dedup": store, "none": nil}
		o.Limits = map[string]*limit.Limiter{"billing": nil}
		o.Controls = map[string]*control.Control{"billing": nil}
		o.Relays = map[string]*outbox.Relay{"events": nil}
		o.Publishers = map[string]*fifo.Publisher{"events": nil}
	})
	want := []string{
		"Options.Workers[0] is nil", `Options.Consumers["billing"] is nil`, `Options.Consumers["none"] is nil`, "Options.Consumers has a component without a name",
		`Options.Stores["dedup"] is nil`, `Options.Stores["none"] is nil`, `Options.Limits["billing"] is nil`, `Options.Controls["billing"] is nil`, `Options.Relays["events"] is nil`, `Options.Publishers["events"] is nil`,
	}
	var got []string
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			if f, ok := errors.AsType[*sqsonce.OptionError](err); ok && f.Package == "status" {
				got = append(got, f.Field+" "+f.Problem)
			}
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := Handler(); err == nil || !strings.Contains(err.Error(), "Options.Workers: is empty") {
		t.Errorf("nothing to look at: %v", err)
	}
}

// TestLimitKeys: the keys of a rule, which may be tenants, are shown only with Identifiers.
func TestLimitKeys(t *testing.T) {
	t.Parallel()
	bubble(t, func(x *fixture) {
		l := must.Get(limit.New([]limit.Rule{{Name: "tenant", Plan: limit.Plan{Rate: limit.Rate{N: 1, Per: time.Hour}}}}))(t)
		url := x.queue("orders", nil)
		w := x.worker(url, limit.Handler(l, sleeps(0)))
		for range 2 {
			must.Get(x.c.SendMessage(x.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("{}"), MessageGroupId: aws.String("t3n4nt")}))(t)
		}
		stop := x.run(w)
		time.Sleep(30 * time.Second)
		limits := func(o *Options) { o.Limits = map[string]*limit.Limiter{"billing": l} }
		quiet, named := x.handler(limits), x.handler(limits, func(o *Options) { o.Identifiers = true })
		for _, path := range []string{"/", "/stats", "/running"} {
			if text := ask(quiet, "GET", path).Body.String(); strings.Contains(text, "t3n4nt") {
				t.Errorf("%s has a key:\n%s", path, text)
			}
		}
		if text := ask(named, "GET", "/").Body.String(); !strings.Contains(text, "t3n4nt") {
			t.Errorf("with Identifiers the page has no key:\n%s", text)
		}
		r := get[statusreport.Report](t, named, "/stats", 200).Limits[0]
		if r.Plan != "1/1h" || r.Scope != "process" || r.Stats["waiting"] != 1 || !cmp.Equal(r.Longest, []statusreport.LimitKey{{Key: "t3n4nt", Waiting: 1}}) {
			t.Errorf("%+v", r)
		}
		must.Do(t, stop())
	})
}

// TestDefaults: the maps of the options stay the user's.
func TestDefaults(t *testing.T) {
	t.Parallel()
	x := newFixture(t)
	consumers := map[string]Consumer{"billing": counts{}}
	h := x.handler(func(o *Options) { o.Consumers = consumers })
	delete(consumers, "billing")
	r := get[statusreport.Report](t, h, "/stats", 200)
	if !strings.HasPrefix(r.Name, "status.test") || r.V != 1 || len(r.Consumers) != 1 || len(r.Workers) != 0 {
		t.Errorf("got %+v", r)
	}
	if p := get[statusreport.Probe](t, h, "/ready", 200); !p.OK {
		t.Errorf("without a worker: %+v", p)
	}
}

// TestControls: who has paused a consumer, why, and until when.
func TestControls(t *testing.T) {
	t.Parallel()
	bubble(t, func(x *fixture) {
		store := memstore.New()
		c := must.Get(control.New(store, "billing"))(x)
		w := x.worker(x.queue("orders", nil), sleeps(0), func(o *sqsworker.Options) { o.Hooks = []sqsworker.Hooks{c.Hooks()} })
		stop := x.run(w)
		h := x.handler(workers(w), func(o *Options) { o.Controls = map[string]*control.Control{"billing": c} })
		read := func() statusreport.Control { return get[statusreport.Report](t, h, "/stats", 200).Controls[0] }
		time.Sleep(time.Minute)
		if got := read(); got.Consumer != "billing" || got.Paused || got.Read.IsZero() || got.Banner() != "" {
			t.Errorf("got %+v, want that it was read, and open", got)
		}
		seen := must.Get(control.Read(x.Context(), store, "billing"))(x)
		s := must.Get(control.Set(x.Context(), store, seen, control.State{Paused: true, By: "arn:aws:iam::123456789012:user/ann", Reason: "bank is <down>"}, time.Hour))(x)
		time.Sleep(time.Minute)
		got := read()
		if !got.Paused || got.By != "arn:aws:iam::*:user/ann" || got.Reason != "bank is <down>" || !got.Until.Equal(s.Until) || got.Error != "" {
			t.Errorf("got %+v, want the pause, without the account", got)
		}
		if page := ask(h, "GET", "/").Body.String(); !strings.Contains(page, "billing is paused until") || !strings.Contains(page, "bank is &lt;down&gt;") || strings.Contains(page, "123456789012") {
			t.Errorf("page:\n%s\nwant a line about the pause", page)
		}
		must.Do(t, stop())
	})
}

type panics struct{}

func (panics) Stats() dedup.Stats { panic("s3cret") }

// TestPanickingComponent: one that panics costs its answer, and the probes do not ask it.
func TestPanickingComponent(t *testing.T) {
	t.Parallel()
	x := newFixture(t)
	var log bytes.Buffer
	h := x.handler(workers(x.worker(x.queue("orders", nil), sleeps(0))), func(o *Options) {
		o.Consumers, o.Logger = map[string]Consumer{"billing": panics{}}, slog.New(slog.NewTextHandler(&log, nil))
	})
	for path, want := range map[string]int{"/": 500, "/stats": 500, "/running": 200, "/live": 200, "/ready": 503} {
		if got := ask(h, "GET", path); got.Code != want || strings.Contains(got.Body.String(), "s3cret") {
			t.Errorf("%s is %d: %s; want %d", path, got.Code, got.Body, want)
		}
	}
	if n := strings.Count(log.String(), "panicked: s3cret"); n != 2 {
		t.Errorf("%d lines, want 2:\n%s", n, log.String())
	}
}

// TestAskedAllTheTime: by several, while the worker begins, runs and stops. It is for the race detector.
func TestAskedAllTheTime(t *testing.T) {
	t.Parallel()
	bubble(t, func(x *fixture) {
		orders := x.queue("orders", nil)
		x.sendMany(orders, 10)
		w := x.worker(orders, sleeps(7*time.Second), func(o *sqsworker.Options) { o.VisibilityTimeout = 5 * time.Second })
		h := x.handler(workers(w), func(o *Options) { o.Identifiers = true })
		asking, cancel := context.WithCancel(x.Context())
		var clients sync.WaitGroup
		for _, path := range []string{"/", "/live", "/ready", "/stats", "/running"} {
			clients.Go(func() {
				for asking.Err() == nil {
					if code := ask(h, "GET", path).Code; code != 200 && code != 503 {
						t.Errorf("%s is %d", path, code)
					}
					time.Sleep(70 * time.Millisecond)
				}
			})
		}
		stop := x.run(w)
		time.Sleep(30 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		cancel()
		clients.Wait()
	})
}
