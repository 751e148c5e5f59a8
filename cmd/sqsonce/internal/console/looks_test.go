package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/ops"
	"github.com/sqsonce/sqsonce/internal/statusreport"
)

var orders = Queue{Name: "orders", URL: "http://sqs/1/orders", DLQName: "orders-dlq", DLQURL: "http://sqs/1/orders-dlq"}

// listing has so many messages of two classes, whose strings share no memory, as those of SQS.
func listing(n, bodyBytes int) ops.Listing {
	l := ops.Listing{AsOf: time.Now(), Total: n, Complete: true}
	for i := range n {
		text := fmt.Sprintf("card provider: status %d for order %d", 500+i%2, i)
		m := &ops.Message{
			Message: sqsonce.Message{
				ID: fmt.Sprintf("%08d-0000-0000-0000-000000000000", i), Body: strings.Repeat("b", bodyBytes), SentAt: time.Now(),
				ReceiptHandle: strings.Repeat("h", 400), Group: fmt.Sprintf("g%d", i%5000),
				Attributes: map[string]sqsonce.Attribute{sqsonce.AttrEventID: {Type: "String", String: fmt.Sprint("ord-", i)}},
			},
			Cause: ops.CauseRejected, Reason: text, Class: ops.Class{ID: fmt.Sprint("class", i%2), Text: "card provider"},
			RecordKey: fmt.Sprint("billing#orders|ord-", i), State: dedup.StateReleased,
			Record: &dedup.Record{Lease: dedup.Lease{Owner: "o", LastError: text}, Result: dedup.Result{Data: make([]byte, 100)}},
		}
		l.Messages = append(l.Messages, m)
	}
	return l
}

func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// What a look of 100,000 messages keeps is bounded, and its pages are made in less than a second.
func TestLookOf100000(t *testing.T) {
	const n, body = 100_000, 4 << 10
	before := heap()
	s := New(Options{Addr: "127.0.0.1:1", Queues: []Queue{orders}, Joined: true, Write: true, Logger: slog.New(slog.DiscardHandler),
		Typed: func(string, ...string) string { return "sqsonce dlq show" }})
	defer s.Close()
	s.looks.keep(orders, newLook(listing(n, body), keptBodies), nil)
	if kept := heap() - before; kept > keptBodies+1200*n { // a message without its body
		t.Errorf("%d MiB are kept of %d MiB of bodies", kept>>20, n*body>>20)
	}
	k := s.looks.of(orders).Look
	if k.Cut == 0 || k.Cut == n || len(k.Classes) != 2 || k.Classes[0].Count != n/2 || k.Read != n {
		t.Errorf("%d cut, classes %+v", k.Cut, k.Classes)
	}
	last := k.Messages[n-1]
	for _, path := range []string{
		"/dlq/orders", "/dlq/orders/class/class0?state=released", "/dlq/orders/class/class1?state=released&page=500", "/dlq/orders/" + last.ID,
	} {
		var rec *httptest.ResponseRecorder
		var begun time.Time
		for try := 0; try == 0 || try < 5 && time.Since(begun) > time.Second; try++ { // a machine may stall
			begun, rec = time.Now(), httptest.NewRecorder()
			s.mux.ServeHTTP(rec, httptest.NewRequest("GET", path, nil))
		}
		if took := time.Since(begun); rec.Code != http.StatusOK || took > time.Second || rec.Body.Len() > 200<<10 {
			t.Errorf("%s: %d after %s, %d bytes", path, rec.Code, took, rec.Body.Len())
		}
	}
	if last.BodyBytes != body || last.Body != "" || last.Attributes != nil || !last.Cut || last.ResultBytes != 100 || last.Reason == "" {
		t.Errorf("%+v", last)
	}
	runtime.KeepAlive(s)
}

// A reason as long as a message counts, and is cut where there is no room: so is what it was cut from.
func TestKeepCutsReasons(t *testing.T) {
	budget := 1000
	long := strings.Repeat("é", 1<<19)
	k := keep(&ops.Message{Reason: long, Class: ops.Class{Text: long[:160]}, Record: &dedup.Record{Lease: dedup.Lease{LastError: long}}}, &budget)
	if !k.Cut || len(k.Reason) > mostCut+len("…") || len(k.Record.LastError) > mostCut+len("…") || budget >= 0 {
		t.Errorf("%d bytes of a reason, %d of an error", len(k.Reason), len(k.Record.LastError))
	}
}

// Queues with one dead-letter queue have one look at a time; a look of one is not shown as that of the other.
func TestOneLookAtASharedQueue(t *testing.T) {
	other := Queue{Name: "returns", URL: "http://sqs/1/returns", DLQName: orders.DLQName, DLQURL: orders.DLQURL}
	var l looks
	must.Do(t, l.begin(orders, "a look"))
	var refused *pageError
	if err := l.begin(other, "a look"); !errors.As(err, &refused) || refused.status != http.StatusConflict {
		t.Errorf("%v", err)
	}
	if l.of(other).Busy.What != "a look" {
		t.Errorf("%+v", l.of(other))
	}
	l.end(orders)
	l.keep(orders, newLook(listing(1, 1), keptBodies), nil)
	if err := l.begin(other, "a plan"); err != nil || l.of(other).Look != nil || l.of(orders).Look == nil {
		t.Errorf("%v, %+v", err, l.of(other))
	}
}

// The overview's time of loss is exact after a look that has seen everything.
func TestLookFacts(t *testing.T) {
	s := New(Options{Addr: "127.0.0.1:1", Queues: []Queue{orders}})
	defer s.Close()
	if got := s.lookFacts(orders); got != (lookFacts{}) {
		t.Errorf("nobody has looked: %+v", got)
	}
	l := listing(2, 1)
	l.Messages[1].LostAt = l.AsOf.Add(time.Hour)
	l.Messages[0].LostAt = l.AsOf.Add(2 * time.Hour)
	for hidden, complete := range map[int]bool{0: true, 1: false} {
		l.Hidden = hidden
		s.looks.keep(orders, newLook(l, keptBodies), nil)
		if got := s.lookFacts(orders); got.complete != complete || !got.asOf.Equal(l.AsOf) || !got.lostAt.Equal(l.AsOf.Add(time.Hour)) {
			t.Errorf("hidden %d: %+v", hidden, got)
		}
	}
}

// A class whose records are not known says why: else what there is to do, "mend the problem", is a riddle.
func TestProblemOfAClass(t *testing.T) {
	f := newFixture(t)
	l := listing(3, 1)
	for _, m := range l.Messages {
		m.State, m.Record, m.Class.ID = ops.StateUnknown, nil, "class0"
	}
	q := f.opts.Queues[0]
	f.looks.keep(q, newLook(l, keptBodies), nil)
	if body := f.has("/dlq/orders/class/class0"); strings.Contains(body, "Problem") {
		t.Errorf("a problem of nothing:\n%s", body)
	}
	l.Messages = listing(3, 1).Messages
	for _, m := range l.Messages {
		m.State, m.Record, m.Class.ID = ops.StateUnknown, nil, "class0"
	}
	l.Messages[1].Problem = errors.New("table <dedup>: access denied")
	f.looks.keep(q, newLook(l, keptBodies), nil)
	f.has("/dlq/orders/class/class0", "<dt>Problem</dt>", "table &lt;dedup&gt;: access denied")
}

// What is remembered is bounded: plans, runs, and what a command has said.
func TestBounds(t *testing.T) {
	var plans plans
	first := &plan{Token: "first", Made: time.Now()}
	plans.add(first)
	for range mostPlans {
		plans.add(&plan{Token: "t", Made: time.Now()})
	}
	if _, err := plans.get("first"); err == nil || len(plans.list) != mostPlans {
		t.Errorf("%d plans, %v", len(plans.list), err)
	}

	var runs runs
	command := func(_ context.Context, out, err io.Writer, _ ...string) int {
		for range 100 {
			_, _ = io.WriteString(err, strings.Repeat("x", 1<<10)+"\n")
		}
		if _, tooLong := io.WriteString(out, strings.Repeat("y", mostLine+1)); tooLong == nil {
			t.Error("a line without an end is taken")
		}
		return 0
	}
	for i := range mostRuns + 10 {
		r := must.Get(runs.add(&plan{operation: operation{name: "redrive"}}))(t)
		if i > 0 { // the first one is under way
			if err := r.carryOut(t.Context(), command, nil); err != nil || len(r.notes) > mostNotes {
				t.Errorf("%v, %d bytes of notes", err, len(r.notes))
			}
		}
	}
	if len(runs.list) != mostRuns || !runs.list[0].view().UnderWay() {
		t.Errorf("%d runs, the first under way: %t", len(runs.list), runs.list[0].view().UnderWay())
	}
	for range mostUnderWay - 1 {
		must.Get(runs.add(&plan{}))(t)
	}
	if _, err := runs.add(&plan{}); err == nil {
		t.Error("one more than can be under way")
	}
}

// A plan shows a hundred groups, and one without a hash is none.
func TestPlanGroups(t *testing.T) {
	var out string
	s := New(Options{Addr: "127.0.0.1:1", Queues: []Queue{orders}, Write: true, Command: func(_ context.Context, w, _ io.Writer, _ ...string) int {
		_, _ = io.WriteString(w, out)
		return 0
	}})
	defer s.Close()
	o := operation{name: "redrive", queue: orders, args: []string{"dlq", "redrive"}}
	group := `{"class":"a","count":1,"action":"planned"}`
	out = `{"hash":"h","count":130,"groups":[` + strings.Repeat(group+",", 129) + group + `]}`
	if p, err := s.makePlan(t.Context(), o); err != nil || len(p.Groups) != 100 || p.More != 30 {
		t.Errorf("%+v, %v", p, err)
	}
	for _, out = range []string{"", "[]", `{"count":1}`} {
		if p, err := s.makePlan(t.Context(), o); err == nil {
			t.Errorf("%q is a plan: %+v", out, p)
		}
	}
}

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

// Crashed events are listed by process on the pages of a queue and of records, as many as fit on a page.
func TestProcessesOfALook(t *testing.T) {
	f := newFixture(t, func(o *Options) {
		o.Record = func(context.Context, string) (dedup.Record, dedup.RecordState, error) {
			return dedup.Record{}, ops.StateUnknown, dedup.ErrNotFound
		}
	})
	l := listing(1000, 10)
	for i, m := range l.Messages {
		m.State = dedup.StateCrashed
		m.Record.Lease = dedup.Lease{Key: m.RecordKey, Owner: "o@pod-1.ABCDEFGH", Fence: int64(1_700_000_000_000 + i*2000), Until: time.Now().Add(-time.Hour)}
	}
	f.looks.keep(f.opts.Queues[0], newLook(l, keptBodies), nil)
	body := f.has("/dlq/orders", "pod-1.ABCDEFGH", "1,000 crashed", "980 before these", "suspect", "ord-999")
	if strings.Contains(body, "ord-979<") || strings.Count(body, ">suspect<") != 1 {
		t.Errorf("more than the newest events, or more than one suspect: %s", body)
	}
	f.has("/record", "pod-1.ABCDEFGH", "20 crashed")
	if l.Complete = false; !strings.Contains(body, "record free --process") {
		t.Errorf("no command frees the neighbours: %s", body)
	}
	f.looks.keep(f.opts.Queues[0], newLook(l, keptBodies), nil) // the event that killed it may be missing
	if body := f.has("/dlq/orders", "1,000 crashed"); strings.Contains(body, "record free --process") {
		t.Errorf("a command frees the neighbours of an event that is not known: %s", body)
	}
}
