package limittest

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/counting"
	"github.com/sqsonce/sqsonce/internal/question"
	"github.com/sqsonce/sqsonce/internal/suite"
)

// each makes each call, and returns their errors by method.
func (x *exam) each(ctx context.Context) map[string]error {
	_, take := x.Take(ctx, x.one())
	_, line := x.Line(ctx, key, 1, x.Step)
	return map[string]error{
		"Take": take, "Line": line, "Acquire": x.Acquire(ctx, slot, "a", x.lease()),
		"Renew": x.Renew(ctx, slot, "a", x.lease()), "Release": x.Release(ctx, slot, "a"),
	}
}

// fails expects each call to fail with an error that matches ErrUnavailable, and ErrMisconfigured only if that is so.
func (x *exam) fails(misconfigured bool) {
	for method, err := range x.each(x.ctx) {
		if !errors.Is(err, sqsonce.ErrUnavailable) || errors.Is(err, sqsonce.ErrMisconfigured) != misconfigured {
			x.fatalf("%s: got error %v, want ErrUnavailable, and ErrMisconfigured: %t", method, err, misconfigured)
		}
		if errors.Is(err, counting.ErrTaken) || errors.Is(err, counting.ErrLeaseLost) {
			x.fatalf("%s: got error %v, which says how the slot is", method, err)
		}
	}
}

var errorCases = []testCase{
	{name: "errors/no server", on: away, run: func(x *exam) { x.fails(false) }},
	{name: "errors/misconfigured", on: misconfigured, run: func(x *exam) { x.fails(true) }},
	{name: "errors/read-only", on: readOnly, run: func(x *exam) {
		_, take := x.Take(x.ctx, x.one())
		_, line := x.Line(x.ctx, key, 1, x.Step)
		for method, err := range map[string]error{"Take": take, "Line": line, "Acquire": x.Acquire(x.ctx, slot, "a", x.lease())} {
			if !errors.Is(err, sqsonce.ErrUnavailable) {
				x.fatalf("%s: got error %v, want ErrUnavailable", method, err)
			}
		}
	}},
	{name: "errors/a cancelled call changes nothing", run: func(x *exam) {
		ctx, cancel := context.WithCancel(x.ctx)
		cancel()
		for method, err := range x.each(ctx) {
			if err == nil {
				x.fatalf("%s with an ended context: got nil, want an error", method)
			}
		}
		x.gets(x.one(), 1, 0, "after a cancelled call")
		x.acquire("b", x.lease(), "after a cancelled call")
	}},
	{name: "errors/a record of an event", on: listed, run: func(x *exam) {
		s, ok := x.Store(x.Counter).(dedup.Store)
		if !ok {
			suite.Unsupported("the harness's store keeps no records of events")
		}
		c := dedup.Claim{Key: "limit/" + key, Owner: "event", Lease: 20 * x.lease(), Retention: time.Hour, ReceiveCount: 1}
		g, err := s.Acquire(x.ctx, c)
		if err != nil || g.Verdict != dedup.VerdictGranted {
			x.fatalf("Acquire of an event: got %+v and error %v, want a lease", g, err)
		}
		_, take := x.Take(x.ctx, x.one())
		_, line := x.Line(x.ctx, key, 1, x.Step)
		for method, err := range map[string]error{"Take": take, "Line": line} {
			if !errors.Is(err, dedup.ErrRecord) {
				x.fatalf("%s: got error %v, want ErrRecord", method, err)
			}
		}
		if err := s.Complete(x.ctx, g.Lease, dedup.Result{}); err != nil {
			x.fatalf("Complete by the event's owner: got error %v, want none", err)
		}
	}},
	{name: "errors/bad arguments", run: func(x *exam) {
		bad := map[string]error{}
		for name, change := range map[string]func(*counting.Take){
			"an empty key":         func(t *counting.Take) { t.Key = "" },
			"N 0":                  func(t *counting.Take) { t.N = 0 },
			"Step 0":               func(t *counting.Take) { t.Step = 0 },
			"a negative Step":      func(t *counting.Take) { t.Step = -1 },
			"Burst 0":              func(t *counting.Take) { t.Burst = 0 },
			"a burst of years":     func(t *counting.Take) { t.Burst = 1 << 40 },
			"a negative Ahead":     func(t *counting.Take) { t.Ahead = -1 },
			"a negative Reach":     func(t *counting.Take) { t.Reach = -1 },
			"a negative NotBefore": func(t *counting.Take) { t.NotBefore = -1 },
		} {
			t := x.one()
			change(&t)
			_, bad["Take with "+name] = x.Take(x.ctx, t)
		}
		_, bad["Line without a key"] = x.Line(x.ctx, "", 1, x.Step)
		_, bad["Line of no place"] = x.Line(x.ctx, key, 0, x.Step)
		_, bad["Line without a step"] = x.Line(x.ctx, key, 1, 0)
		_, bad["Line of years"] = x.Line(x.ctx, key, 1<<40, time.Hour)
		bad["Acquire without a slot"] = x.Acquire(x.ctx, "", "a", x.lease())
		bad["Acquire without an owner"] = x.Acquire(x.ctx, slot, "", x.lease())
		bad["Acquire without a lease"] = x.Acquire(x.ctx, slot, "a", 0)
		bad["Renew without an owner"] = x.Renew(x.ctx, slot, "", x.lease())
		bad["Release without an owner"] = x.Release(x.ctx, slot, "")
		for what, err := range bad {
			if _, refused := errors.AsType[*sqsonce.OptionError](err); !refused || errors.Is(err, sqsonce.ErrUnavailable) {
				x.fatalf("%s: got error %v, want a *sqsonce.OptionError, and not ErrUnavailable", what, err)
			}
		}
	}},
}

var deleteCases = []testCase{
	{name: "list/keys and slots are records", on: listed, run: func(x *exam) {
		x.gets(x.many(3), 4, 0, "of a new key")
		x.line(1, x.steps(4), "of a new key")
		x.acquire("a", 20*x.lease(), "of a new slot")
		if _, err := x.Line(x.ctx, key+"2", 1, x.Step); err != nil {
			x.fatalf("Line: got error %v, want a place", err)
		}
		asks := x.one()
		asks.Key = "limits" + question.KeyPrefix + "x" // a question, which no list shows
		if _, err := x.Take(x.ctx, asks); err != nil {
			x.fatalf("Take: got error %v, want an answer", err)
		}
		states := map[string]dedup.RecordState{}
		for r, err := range x.Store(x.Counter).List(x.ctx, func(o *dedup.ListOptions) { o.Consumer = "limit/limits" }) {
			if err != nil {
				x.fatalf("List: got %+v and error %v, want a record", r, err)
			}
			states[r.Key] = r.State(time.Now())
			if isKey := r.Key != "limit/"+slot; isKey && r.Owner != "limit" {
				x.fatalf("List: got %+v, want a key's owner to be limit", r)
			}
			if in, ok := x.Store(x.Counter).(dedup.Inspector); ok {
				if again, err := in.Inspect(x.ctx, r.Key); err != nil || again.Owner != r.Owner || again.State(time.Now()) != states[r.Key] {
					x.fatalf("Inspect: got %+v and error %v, want the record that List has, %+v", again, err, r)
				}
			}
			if !r.ExpiresAt.After(time.Now()) {
				x.fatalf("List: got %+v, want a retention that has not ended", r)
			}
		}
		want := map[string]dedup.RecordState{
			"limit/" + key: dedup.StateReleased, "limit/" + key + "2": dedup.StateReleased, "limit/" + slot: dedup.StateRunning,
		}
		if !maps.Equal(states, want) {
			x.fatalf("List: got %v, want %v", states, want)
		}
	}},
	{name: "list/a key outlives its tokens and its line by an hour", on: listed, run: func(x *exam) {
		const long = 48 * time.Hour
		t := x.one()
		x.gets(t, 1, 0, "of a new key")
		t.NotBefore = long
		x.take(x.Counter, t)
		x.retained(long, "with a pause")
		if _, err := x.Line(x.ctx, key, 1, time.Second); err != nil {
			x.fatalf("Line: got error %v, want a place", err)
		}
		x.retained(long, "with a place behind a pause")
	}},
	{name: "list/a key outlives its line by an hour", on: listed, run: func(x *exam) {
		const long = 10 * time.Hour
		if _, err := x.Line(x.ctx, key, 1, long); err != nil {
			x.fatalf("Line: got error %v, want a place", err)
		}
		x.retained(long, "with a place")
		t := x.one()
		t.Waited = true
		x.gets(t, 1, 0, "of one that has waited")
		x.retained(long, "with a place and a token")
	}},
	{name: "delete/resets a key", on: deletes, run: func(x *exam) {
		x.gets(x.many(3), 4, 0, "of a new key")
		x.line(2, x.steps(4), "of a new key")
		x.delete(key)
		x.gets(x.many(3), 4, 0, "of a deleted key")
		x.delete(key)
		x.line(2, 0, "of a deleted key")
	}},
	{name: "delete/frees a slot", on: deletes, run: func(x *exam) {
		x.acquire("a", x.lease(), "of a new slot")
		time.Sleep(x.lease() + x.Takeover)
		x.delete(slot)
		x.renewed("a", x.lease(), counting.ErrLeaseLost, "of a deleted slot")
		x.acquire("b", x.lease(), "of a deleted slot")
	}},
}

// retained expects the key's record to be retained for an hour more than that, and not for ever.
func (x *exam) retained(d time.Duration, why string) {
	for r, err := range x.Store(x.Counter).List(x.ctx, func(o *dedup.ListOptions) { o.Consumer = "limit/limits" }) {
		if err != nil {
			x.fatalf("List: got %+v and error %v, want a record", r, err)
		}
		if left := time.Until(r.ExpiresAt); left < d+time.Hour-x.grace()-time.Duration(x.all.Load())-time.Second || left > d+30*24*time.Hour {
			x.fatalf("List: a key %s is retained for %s, want an hour more than %s", why, left, d)
		}
		return
	}
	x.fatalf("List: got no record, want one")
}

func (x *exam) delete(key string) {
	if err := x.Delete(x.ctx, x.Counter, "limit/"+key); err != nil {
		x.fatalf("Delete: got error %v, want none", err)
	}
}
