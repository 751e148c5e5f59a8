package ops_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/ops"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// redriver opens the queue to redrive from it.
func (x *fixture) redriver(optFns ...func(*ops.Options)) *ops.DLQ {
	x.Helper()
	return x.openIn(x.newProcess(), optFns...)
}

// withUnknown also sends events without a record.
func withUnknown(o *ops.RedriveOptions) { o.Unknown = true }

// noCanary is for tests without a consumer.
func noCanary(o *ops.RedriveOptions) { o.Canary, o.Unknown = -1, true }

// redriveAll redrives, without a canary, and checks what holds of each run: the report has one result for each message that was received, and all
// that it does not call redriven is in the dead-letter queue, and visible.
func (x *fixture) redriveAll(d *ops.DLQ, optFns ...func(*ops.RedriveOptions)) ops.Report {
	x.Helper()
	r := must.Get(d.Redrive(context.Background(), append([]func(*ops.RedriveOptions){noCanary}, optFns...)...))(x)
	x.checkReport(r)
	if n := x.hidden(); n != 0 {
		x.Errorf("%d messages are hidden after the run", n)
	}
	return r
}

func (x *fixture) checkReport(r ops.Report) {
	x.Helper()
	there := x.ids()
	seen := map[string]bool{}
	for _, res := range r.Results {
		if seen[res.ID] {
			x.Errorf("two results for %s", res.ID)
		}
		seen[res.ID] = true
		if res.Action != ops.ActionUndeleted && there[res.ID] == (res.Action == ops.ActionRedriven) {
			x.Errorf("%s: %s, %v; in the dead-letter queue: %t", res.ID, res.Action, res.Err, there[res.ID])
		}
		if (res.Err == nil) != (res.Action == ops.ActionRedriven || res.Action == ops.ActionPlanned) {
			x.Errorf("%s: %s with error %v", res.ID, res.Action, res.Err)
		}
	}
	all := r.Count(ops.ActionRedriven, ops.ActionUndeleted, ops.ActionUnknownOutcome, ops.ActionSendFailed, ops.ActionLeft, ops.ActionPlanned)
	if all != len(r.Results) {
		x.Errorf("%d of %d results have an action", all, len(r.Results))
	}
}

// bodies returns those of a queue's messages, in order.
func (x *fixture) bodies(url string) (all []string) {
	for _, m := range x.sqs.Messages(url) {
		all = append(all, m.Body)
	}
	return all
}

func (x *fixture) wantBodies(url, want string) {
	x.Helper()
	got := x.bodies(url)
	if !x.fifo {
		slices.Sort(got)
	}
	if strings.Join(got, " ") != want {
		x.Errorf("%s has %q, want %q", url, got, want)
	}
}

// inState is a store whose records have the state that their event is called.
func inState(_ context.Context, key string) (dedup.Record, error) {
	r := dedup.Record{Lease: dedup.Lease{Key: key, Owner: "w1", Fence: 1}}
	_, state, _ := strings.Cut(key, "|")
	state, _, _ = strings.Cut(state, "-")
	switch dedup.RecordState(state) {
	case dedup.StateReleased:
	case dedup.StateRunning:
		r.Until = time.Now().Add(time.Minute)
	case dedup.StateCrashed:
		r.Until = time.Now().Add(-time.Minute)
	case dedup.StateCompleted:
		r.Completed = true
	case dedup.StateForeign:
		r.Owner = ""
	case ops.StateUnknown:
		return r, errCard
	default:
		return r, dedup.ErrNotFound
	}
	return r, nil
}

func stateStore(o *ops.Options) { o.Store = inspector(inState) }

// Which messages are sent is decided by the state of their events.
func TestRedriveByState(t *testing.T) {
	t.Parallel()
	const released, none = "released", string(ops.StateNone)
	for name, tt := range map[string]struct {
		set  func(*ops.RedriveOptions)
		old  bool
		want string
	}{
		"by default":            {want: "released"},
		"crashed":               {set: func(o *ops.RedriveOptions) { o.Crashed = true }, want: "crashed released"},
		"no record":             {set: func(o *ops.RedriveOptions) { o.Unknown = true }, want: "none released"},
		"not expired":           {set: func(o *ops.RedriveOptions) { o.Expired = true }, want: "released"},
		"perhaps expired":       {old: true, set: func(o *ops.RedriveOptions) { o.Unknown = true }, want: "released"},
		"perhaps expired, sent": {old: true, set: func(o *ops.RedriveOptions) { o.Expired = true }, want: "none released"},
	} {
		run(t, name, setup{}, func(x *fixture) {
			for _, s := range ops.States() {
				x.send(x.dlq, string(s))
			}
			d := x.redriver(stateStore, func(o *ops.Options) { o.Retention = 2 * time.Hour })
			if tt.old {
				time.Sleep(time.Hour + time.Minute)
			}
			r := x.redriveAll(d, func(o *ops.RedriveOptions) {
				if o.Unknown = false; tt.set != nil {
					tt.set(o)
				}
			})
			x.wantBodies(x.url, tt.want)
			for _, res := range r.Results {
				body := strings.TrimPrefix(res.RecordKey, consumer+"#orders|")
				sent := strings.Contains(tt.want, body)
				problem := body == string(ops.StateUnknown)
				if sent != (res.Action == ops.ActionRedriven) || !sent && errors.Is(res.Err, ops.ErrState) == problem || problem && !errors.Is(res.Err, errCard) {
					x.Errorf("%s: %s, %v", res.State, res.Action, res.Err)
				}
			}
		})
	}
	bubble(t, setup{}, func(x *fixture) { // no store
		x.send(x.dlq, released, none)
		d := must.Get(ops.Open(context.Background(), x.newProcess().sqs, x.dlq))(t)
		x.redriveAll(d)
		x.wantBodies(x.url, "")
		x.redriveAll(d, func(o *ops.RedriveOptions) { o.WithoutRecords = true })
		x.wantBodies(x.url, "none released")
	})
}

// Filters select; a dry run decides in the same way, and sends nothing.
func TestRedriveFilters(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		set  func(o *ops.RedriveOptions, l ops.Listing)
		want string
	}{
		"all":   {func(*ops.RedriveOptions, ops.Listing) {}, "none-1 none-2 released-1 released-2"},
		"IDs":   {func(o *ops.RedriveOptions, l ops.Listing) { o.IDs = []string{l.Messages[0].ID} }, "none-1"},
		"state": {func(o *ops.RedriveOptions, _ ops.Listing) { o.States = []dedup.RecordState{dedup.StateReleased} }, "released-1 released-2"},
		"class": {func(o *ops.RedriveOptions, l ops.Listing) { o.Classes = []string{l.Messages[0].Class.ID} }, "none-1 none-2"},
		"two": {func(o *ops.RedriveOptions, l ops.Listing) {
			o.IDs = []string{l.Messages[1].ID, l.Messages[2].ID}
			o.States = []dedup.RecordState{ops.StateUnknown}
		}, "none-2"},
		"func": {func(o *ops.RedriveOptions, _ ops.Listing) {
			o.Filter = func(m *ops.Message) bool { return m.Body == "released-1" }
		}, "released-1"},
		"nothing": {func(o *ops.RedriveOptions, _ ops.Listing) { o.IDs = []string{"?"} }, ""},
		"panic":   {func(o *ops.RedriveOptions, _ ops.Listing) { o.Filter = func(*ops.Message) bool { panic("boom") } }, ""},
	} {
		run(t, name, setup{}, func(x *fixture) {
			for _, id := range []string{"none-1", "none-2", "released-1", "released-2"} {
				x.send(x.dlq, id)
				time.Sleep(time.Second)
			}
			d := x.redriver(stateStore)
			l := must.Get(x.list(d))(x)
			still := x.watch()
			dry := x.redriveAll(d, func(o *ops.RedriveOptions) { tt.set(o, l); o.DryRun = true })
			still()
			r := x.redriveAll(d, func(o *ops.RedriveOptions) { tt.set(o, l) })
			x.wantBodies(x.url, tt.want)
			if n := len(strings.Fields(tt.want)); dry.Count(ops.ActionPlanned) != n || r.Count(ops.ActionRedriven) != n || len(r.Results) != 4 {
				x.Errorf("%d planned, %d redriven of %d, want %d of 4", dry.Count(ops.ActionPlanned), r.Count(ops.ActionRedriven), len(r.Results), n)
			}
			for _, res := range r.Results {
				if res.Action == ops.ActionLeft && name != "panic" && !errors.Is(res.Err, ops.ErrNotSelected) {
					x.Errorf("%v", res.Err)
				}
			}
		})
	}
	bubble(t, setup{fifo: true}, func(x *fixture) { // of a class that lies behind another one
		groupA := func(m *ops.Message) bool { return m.Group == "a" }
		x.send(x.url, "b-1")
		x.send(x.dlq, "a-1", "a-2", "b-1")
		dry := x.redriveAll(x.redriver(), func(o *ops.RedriveOptions) { o.Filter, o.DryRun = groupA, true })
		r := x.redriveAll(x.redriver(), func(o *ops.RedriveOptions) { o.Filter = groupA })
		if dry.Count(ops.ActionPlanned) != 2 || r.Count(ops.ActionRedriven) != 2 {
			t.Errorf("%d planned, %d redriven", dry.Count(ops.ActionPlanned), r.Count(ops.ActionRedriven))
		}
		x.wantBodies(x.dlq, "b-1")
	})
}

// A copy is its message, but for what hosts have added to it, and the history.
func TestCopyIsVerbatim(t *testing.T) {
	t.Parallel()
	eachKind(t, "", setup{}, func(x *fixture) {
		in := &sqs.SendMessageInput{QueueUrl: &x.dlq, MessageBody: aws.String("body\n\t<é>"), MessageAttributes: attributes(map[string]sqsonce.Attribute{
			"event-id": {Type: "String", String: "1"}, "event-source": {Type: "String", String: "orders"}, "event-type": {Type: "String.x", String: "paid"},
			"n": {Type: "Number.int", String: "042"}, "b": {Type: "Binary.gz", Binary: []byte{0, 255}}, "traceparent": {Type: "String", String: "00-1-2-01"},
			"reject-reason": {Type: "String", String: "card declined"}, "dead-letter-source": {Type: "String", String: arnPrefix + x.named("jobs")},
		})}
		in.MessageSystemAttributes = traceHeader("Root=1-5759e988-bd862e3fe1be46a994272793")
		if in.MessageGroupId = aws.String("g1"); x.fifo {
			in.MessageDeduplicationId = aws.String("orders|1")
		}
		sent := time.Now()
		must.Get(x.admin.sqs.SendMessage(context.Background(), in))(x)
		time.Sleep(time.Hour)
		r := x.redriveAll(x.redriver())
		m := x.receiveOne(x.url)
		got := messageOf(m)
		if r.Results[0].SentID != got.ID || got.Body != *in.MessageBody || got.Group != "g1" || got.TraceHeader != "Root=1-5759e988-bd862e3fe1be46a994272793" {
			x.Errorf("%+v, ID %s", got, r.Results[0].SentID)
		}
		if want := fmt.Sprintf("1 %s %d", r.Run, sent.UnixMilli()); got.Attributes["redriven"].String != want {
			x.Errorf("redriven %q, want %q", got.Attributes["redriven"].String, want)
		}
		delete(got.Attributes, "redriven")
		delete(in.MessageAttributes, "reject-reason")
		delete(in.MessageAttributes, "dead-letter-source")
		if g, w := fmt.Sprint(got.Attributes), fmt.Sprint(sqsonceAttributes(in.MessageAttributes)); g != w {
			x.Errorf("attributes %s, want %s", g, w)
		}
		if x.fifo != strings.HasPrefix(got.DedupID, "redrive|") || x.fifo && len(got.DedupID) != 8+64 {
			x.Errorf("MessageDeduplicationId %q", got.DedupID)
		}
	})
}

// A message whose key cannot be kept for want of room is left; a history without room is left out.
func TestRedriveWithoutRoom(t *testing.T) {
	t.Parallel()
	full := func(n int) map[string]string {
		attrs := map[string]string{}
		for i := range n {
			attrs[fmt.Sprint("a", i)] = "x"
		}
		return attrs
	}
	identified := func(n int) map[string]string {
		attrs := full(n - 2)
		attrs["event-id"], attrs["event-source"] = "1", "orders"
		return attrs
	}
	const most = 1 << 20
	for name, tt := range map[string]struct {
		attrs    map[string]string
		size     int // of the body
		limit    int // of the destination
		left     bool
		redriven bool
	}{
		"eight attributes":               {attrs: full(8), size: 10, redriven: true},
		"nine attributes":                {attrs: full(9), size: 10},
		"ten attributes":                 {attrs: full(10), size: 10, left: true},
		"ten attributes with the ID":     {attrs: identified(10), size: 10},
		"nine attributes with the ID":    {attrs: identified(9), size: 10, redriven: true},
		"1 MiB":                          {size: most, left: true},
		"1 MiB with the ID":              {attrs: map[string]string{"event-id": "1", "event-source": "orders"}, size: most - 39},
		"1 MiB less the key":             {size: most - 200, redriven: true},
		"smaller destination":            {size: 1900, limit: 2048, redriven: false},
		"smaller destination, no key":    {size: 2000, limit: 2048, left: true},
		"far smaller destination, no ID": {attrs: map[string]string{"event-id": "1", "event-source": "orders"}, size: 4000, limit: 2048, left: true},
	} {
		run(t, name, setup{}, func(x *fixture) {
			x.sendWith(x.dlq, strings.Repeat("b", tt.size), tt.attrs)
			if tt.limit > 0 {
				x.set(x.url, map[string]string{"MaximumMessageSize": fmt.Sprint(tt.limit)})
			}
			for _, dry := range []bool{true, false} {
				r := x.redriveAll(x.redriver(), func(o *ops.RedriveOptions) { o.DryRun = dry })
				if left := r.Count(ops.ActionLeft) == 1; left != tt.left || left && !errors.Is(r.Results[0].Err, ops.ErrNoRoom) {
					x.Fatalf("dry run %t: %s, %v", dry, r.Results[0].Action, r.Results[0].Err)
				}
			}
			if tt.left {
				return
			}
			attrs := x.sqs.Messages(x.url)[0].Attributes
			if _, has := attrs["redriven"]; has != tt.redriven {
				x.Errorf("redriven is there: %t", has)
			}
			if _, has := attrs["event-key"]; has == (attrs["event-id"] != "") {
				x.Errorf("event-key is there: %t", has)
			}
		})
	}
}

// The same message has the same MessageDeduplicationId in each run, and another one once it has come back.
func TestRedriveDedupID(t *testing.T) {
	t.Parallel()
	bubble(t, setup{fifo: true}, func(x *fixture) {
		x.send(x.dlq, "a-1")
		x.sqs.Set(fault.Plan{Rules: []fault.Rule{{Op: "DeleteMessageBatch", Prob: 1, Do: fault.FailEntries}}})
		for range 2 {
			r, err := x.redriver().Redrive(context.Background(), noCanary)
			if err != nil || r.Count(ops.ActionUndeleted) != 1 {
				t.Fatalf("%+v, %v", r, err)
			}
		}
		x.sqs.Set(fault.Plan{})
		x.wantBodies(x.url, "a-1")
		x.redriveAll(x.redriver())
		x.wantBodies(x.url, "a-1")
		first := x.sqs.Messages(x.url)[0]
		if strings.HasPrefix(first.DedupID, "dedup-") || first.Attributes["redriven"] == "" {
			t.Errorf("%+v", first)
		}
		for range 4 { // back by SQS's own move
			x.receive(x.url)
			time.Sleep(visibility + time.Second)
		}
		x.receive(x.url)
		x.wantBodies(x.dlq, "a-1")
		x.redriveAll(x.redriver())
		x.wantBodies(x.url, "a-1")
		if second := x.sqs.Messages(x.url)[0]; second.DedupID == first.DedupID || !strings.HasPrefix(second.Attributes["redriven"], "2 ") {
			t.Errorf("%+v", second)
		}
	})
}

// What was redriven too often, and what this run has sent itself, is left.
func TestRedriveLoops(t *testing.T) {
	t.Parallel()
	bubble(t, setup{maxReceives: 1}, func(x *fixture) {
		first := time.Now()
		x.send(x.dlq, "a1")
		d := x.redriver()
		for n := range 4 {
			time.Sleep(time.Hour)
			r := x.redriveAll(d)
			if n == 3 {
				if !errors.Is(r.Results[0].Err, ops.ErrTooOften) {
					t.Errorf("%+v", r.Results[0])
				}
				break
			}
			x.receive(x.url)
			time.Sleep(visibility + time.Second)
			x.receive(x.url)
			m := x.mustList(d)["a1"]
			if m == nil || m.Redriven != n+1 || !strings.HasSuffix(m.Attributes["redriven"].String, fmt.Sprint(" ", first.UnixMilli())) {
				t.Fatalf("run %d: %+v", n, m)
			}
		}
		r := x.redriveAll(d, func(o *ops.RedriveOptions) { o.MaxRedriven = -1 })
		if r.Count(ops.ActionRedriven) != 1 {
			t.Errorf("without a limit: %+v", r.Results[0])
		}
	})
	for _, mine := range []bool{false, true} {
		testCameBack(t, mine)
	}
}

// A message that came after the start is no part of a redrive that does not select it.
func TestLaterOneNotSelected(t *testing.T) {
	t.Parallel()
	bubble(t, setup{}, func(x *fixture) {
		x.fill(12)
		var later sync.Once
		r, err := x.redriver().Redrive(context.Background(), noCanary, func(o *ops.RedriveOptions) {
			o.Filter = func(m *ops.Message) bool { return m.Body != "later" }
			o.OnResult = func(*ops.Result) {
				later.Do(func() { x.sendWith(x.dlq, "later", nil); x.sendWith(x.dlq, "later", nil) })
			}
		})
		if err != nil || r.Total != 12 || len(r.Results) != 14 {
			x.Fatalf("%d results, total %d, %v", len(r.Results), r.Total, err)
		}
		for i, res := range r.Results {
			if selected := i < 12; selected != (res.Action == ops.ActionRedriven) || !selected && !errors.Is(res.Err, ops.ErrNotSelected) {
				x.Errorf("result %d: %s, %v", i, res.Action, res.Err)
			}
		}
	})
}

// testCameBack has a consumer that rejects all while the run is under way. What comes back is that, whatever the filter selects.
func testCameBack(t *testing.T, filtered bool) {
	t.Helper()
	bubble(t, setup{}, func(x *fixture) {
		x.fill(33)
		x.receive(x.dlq) // ten are hidden: the run finds others in their place
		h := x.worker(x.url, x.guarded(fails(sqsonce.Reject(errCard))))
		r, err := x.redriver().Redrive(context.Background(), noCanary, func(o *ops.RedriveOptions) {
			if o.Rate = 5; filtered {
				o.Filter = func(m *ops.Message) bool { return m.Redriven == 0 }
			}
		})
		h.stop()
		if err != nil || r.Total != 33 || len(r.Results) <= 33 || len(r.Results) > 42 {
			t.Errorf("%d results, total %d, %v", len(r.Results), r.Total, err)
		}
		for i, res := range r.Results {
			switch {
			case i < 23 && res.Action == ops.ActionRedriven:
			case i >= 23 && i < 33 && errors.Is(res.Err, ops.ErrCameBack):
			case i >= 33 && errors.Is(res.Err, ops.ErrArrivedLater):
			default:
				t.Errorf("result %d: %s, %v", i, res.Action, res.Err)
			}
		}
	})
}

// The age of a redriven event counts from its first message.
func TestExpiredCountsFromTheFirstMessage(t *testing.T) {
	t.Parallel()
	bubble(t, setup{}, func(x *fixture) {
		long := fmt.Sprintf("1 RUN %d", time.Now().Add(-30*24*time.Hour).UnixMilli())
		for body, redriven := range map[string]string{"a1": "", "a2": long, "a3": "mine"} {
			attrs := map[string]string{sqsonce.AttrEventID: body, sqsonce.AttrEventSource: "orders"}
			if redriven != "" {
				attrs[sqsonce.AttrRedriven] = redriven
			}
			x.sendWith(x.dlq, body, attrs)
		}
		for body, m := range x.mustList(x.open()) {
			if m.Expired != (body == "a2") || (m.Redriven == 1) != (body == "a2") {
				t.Errorf("%s: expired %t, redriven %d", body, m.Expired, m.Redriven)
			}
		}
		x.redriveAll(x.redriver())
		x.wantBodies(x.url, "a1 a3")
		for _, m := range x.sqs.Messages(x.url) {
			if m.Body == "a3" && m.Attributes[sqsonce.AttrRedriven] != "mine" {
				t.Errorf("somebody else's attribute: %v", m.Attributes)
			}
		}
	})
}
