package ops_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/ops"
)

// That an event never started is said where somebody has said that its consumer would have a record, and nothing contradicts that.
func TestNeverStarted(t *testing.T) {
	t.Parallel()
	const mistyped, elsewhere = "by a consumer without any record of its own", "by a consumer with records under other keys"
	stock := func(o *ops.Options) { o.Consumer, o.SameKeys = consumer, true }
	named := map[string]string{sqsonce.AttrEventID: "1", sqsonce.AttrEventSource: "orders"}
	moved := func(x *fixture) { bring[ops.CauseReceivesUsedUp](x) }
	for name, tt := range map[string]struct {
		bring func(x *fixture)
		opts  []func(*ops.Options)
		want  dedup.RecordState
	}{
		"moved by SQS":                 {moved, []func(*ops.Options){stock}, ops.StateNone},
		"nobody says so":               {moved, nil, ops.StateUnknown},
		"older than its record may be": {func(x *fixture) { moved(x); time.Sleep(2 * time.Hour) }, []func(*ops.Options){stock, func(o *ops.Options) { o.Retention = 2 * time.Hour }}, ops.StateUnknown},
		"sent with an ID of its own":   {func(x *fixture) { x.sendWith(x.dlq, "a1", named) }, []func(*ops.Options){stock}, ops.StateNone},
		"sent as another message":      {func(x *fixture) { x.sendWith(x.dlq, "a1", nil) }, []func(*ops.Options){stock}, ops.StateUnknown},
		"of one of two queues": {func(x *fixture) { x.create("other", x.redrive("jobs-dlq", 3)); moved(x) },
			[]func(*ops.Options){stock}, ops.StateUnknown},
		"of the named one of two queues": {func(x *fixture) { x.create("other", x.redrive("jobs-dlq", 3)); moved(x) },
			[]func(*ops.Options){stock, func(o *ops.Options) { o.Sources = []string{arnPrefix + "jobs"} }}, ops.StateNone},
		"beside a copy that names a function's record": {func(x *fixture) {
			moved(x)
			x.sendWith(x.dlq, "b", map[string]string{sqsonce.AttrRejectReason: "r", sqsonce.AttrRecordKey: consumer + "#own"})
		}, []func(*ops.Options){stock}, ops.StateUnknown},
		"beside a copy that names another key than the program's function": {func(x *fixture) {
			moved(x)
			x.sendWith(x.dlq, "b", map[string]string{sqsonce.AttrRejectReason: "r", sqsonce.AttrRecordKey: consumer + "#own"})
		}, []func(*ops.Options){stock, func(o *ops.Options) { o.Consumer = "" }}, ops.StateUnknown},
		mistyped:  {moved, []func(*ops.Options){stock}, ops.StateUnknown},
		elsewhere: {moved, []func(*ops.Options){stock}, ops.StateUnknown},
	} {
		run(t, name, setup{}, func(x *fixture) {
			tt.bring(x)
			x.fill(12) // so that the next one is of a later receive
			x.sendWith(x.dlq, "b1", map[string]string{sqsonce.AttrEventID: "b1", sqsonce.AttrEventSource: "orders", sqsonce.AttrDeadLetterSource: arnPrefix + "jobs"})
			key, owner := consumer+"#orders|b1", "o"
			switch name {
			case mistyped: // by an operator too
				owner = "operator/" + "ann/1"
			case elsewhere:
				key = consumer + "#orders|b2"
			}
			must.Get(x.store(x.admin).Acquire(context.Background(), dedup.Claim{Key: key, Owner: owner, Lease: time.Minute, Retention: time.Hour}))(x)
			d := x.redriver(tt.opts...)
			m := x.mustList(d)["a1"]
			if m.State != tt.want || (m.Problem == nil) != (tt.want == ops.StateNone) || tt.want == ops.StateNone && m.Reason != ops.Means(ops.StateNone) {
				x.Errorf("%s, %q, problem %v; want %s", m.State, m.Reason, m.Problem, tt.want)
			}
			if before := x.mustList(x.redriver(append(tt.opts, func(o *ops.Options) { o.SameKeys = false })...))["a1"]; before.Class.ID != m.Class.ID || !before.NeverStarted && tt.want == ops.StateNone {
				x.Errorf("before that is said: never started %t, class %+v, then %+v", before.NeverStarted, before.Class, m.Class)
			}
			r := x.redriveAll(x.redriver(tt.opts...), func(o *ops.RedriveOptions) { o.Unknown, o.IDs = false, []string{m.ID} })
			if redriven := r.Count(ops.ActionRedriven) == 1; redriven != (tt.want == ops.StateNone) {
				x.Errorf("redriven: %t", redriven)
			}
		})
	}
}

// An event that the consumer has dead-lettered after a crash is crashed, though its record is released: a redrive leaves it.
func TestDeadLetteredAfterACrash(t *testing.T) {
	t.Parallel()
	bubble(t, setup{}, func(x *fixture) {
		deadLetter := func(o *dedup.Options) { o.OnCrash = dedup.OnCrashDeadLetter }
		x.send(x.url, "a1")
		x.worker(x.url, x.guarded(hangs, deadLetter)).killAfter(5 * time.Second)
		x.worker(x.url, x.guarded(fails(nil), deadLetter)).stopAfter(5 * time.Minute)
		d := x.redriver()
		if m := x.one(d); m.Cause != ops.CauseRejected || m.State != dedup.StateCrashed || m.Crashes != 1 || m.Record.State(time.Now()) != dedup.StateReleased {
			t.Errorf("%s, %s, %d crashes, record %+v", m.Cause, m.State, m.Crashes, m.Record)
		}
		if r := x.redriveAll(d); !errors.Is(r.Results[0].Err, ops.ErrCrashed) {
			t.Errorf("redriven: %+v", r.Results[0])
		}
	})
}

// The reason of an event that crashed has the advice to find out what happened until somebody has decided. Its class stays.
func TestAdviceUntilDecided(t *testing.T) {
	t.Parallel()
	const advice = "find out whether"
	for name, decide := range map[string]func(x *fixture, r dedup.Record) error{
		"freed": func(x *fixture, r dedup.Record) error { return x.store(x.admin).Reopen(context.Background(), r, note) },
		"completed": func(x *fixture, r dedup.Record) error {
			g := must.Get(x.store(x.admin).Acquire(context.Background(), dedup.Claim{Key: r.Key, Owner: "operator/ann/1", Lease: time.Minute, Retention: time.Hour}))(x)
			return x.store(x.admin).Complete(context.Background(), g.Lease, dedup.Result{})
		},
	} {
		run(t, name, setup{}, func(x *fixture) {
			deadLetter := func(o *dedup.Options) { o.OnCrash = dedup.OnCrashDeadLetter }
			x.send(x.url, "a1")
			x.worker(x.url, x.guarded(hangs, deadLetter)).killAfter(5 * time.Second)
			x.worker(x.url, x.guarded(fails(nil), deadLetter)).stopAfter(5 * time.Minute)
			d := x.redriver()
			before := x.one(d)
			must.Do(x, decide(x, *before.Record))
			after := x.one(d)
			if !strings.Contains(before.Reason, advice) || !strings.Contains(before.Class.Text, advice) || strings.Contains(after.Reason+after.Class.Text, advice) ||
				!strings.Contains(after.Class.Text, "crashed") || after.Class.ID != before.Class.ID {
				x.Errorf("%q of %+v, then %q of %+v", before.Reason, before.Class, after.Reason, after.Class)
			}
		})
	}
}

// An event that kills its process each time is counted, also where its last run left it released, and is redriven only by those who
// say so.
func TestCrashLoop(t *testing.T) {
	t.Parallel()
	const reopened = "reopened"
	for name, released := range map[string]bool{"crashed": false, "released": true, reopened: false} {
		run(t, name, setup{maxReceives: 6}, func(x *fixture) {
			x.send(x.url, "a1")
			for len(x.sqs.Messages(x.dlq)) == 0 {
				x.worker(x.url, x.guarded(hangs)).killAfter(time.Minute)
				time.Sleep(2 * time.Minute)
			}
			if released { // as by a process that ended before the suspect's turn came
				g := must.Get(x.store(x.admin).Acquire(context.Background(), dedup.Claim{Key: consumer + "#orders|a1", Owner: "late", Lease: time.Minute, Retention: time.Hour}))(x)
				must.Do(x, x.store(x.admin).Release(context.Background(), g.Lease, errors.New(g.Lease.LastError)))
			}
			d := x.redriver()
			m := x.one(d)
			if want := 3; m.Crashes < want || m.State != dedup.StateCrashed || !strings.Contains(m.Reason, fmt.Sprint(m.Crashes)) {
				x.Fatalf("%s, %d crashes, %q; want %d at least", m.State, m.Crashes, m.Reason, want)
			}
			if name == reopened { // crashes before that count no more
				must.Do(x, x.store(x.admin).Reopen(context.Background(), *m.Record, note))
				if m := x.one(d); m.Crashes != 0 || m.State != dedup.StateReleased || !strings.Contains(m.Reason, note) || strings.Contains(m.Class.Text, note) {
					x.Errorf("reopened: %s, %d crashes, %q of class %q", m.State, m.Crashes, m.Reason, m.Class.Text)
				}
				g := must.Get(x.store(x.admin).Acquire(context.Background(), dedup.Claim{Key: m.RecordKey, Owner: "failing", Lease: time.Minute, Retention: time.Hour}))(x)
				must.Do(x, x.store(x.admin).Release(context.Background(), g.Lease, errCard))
				must.Get(x.store(x.admin).Acquire(context.Background(), dedup.Claim{Key: m.RecordKey, Owner: "late", Lease: time.Second, Retention: time.Hour}))(x)
				time.Sleep(time.Minute)
				if m := x.one(d); m.Crashes != 1 || m.State != dedup.StateCrashed || strings.Contains(m.Reason, errCard.Error()) {
					x.Errorf("failed and crashed since: %s, %d crashes, %q", m.State, m.Crashes, m.Reason)
				}
				return
			}
			for _, o := range []ops.RedriveOptions{{}, {Crashed: true}, {CrashLoops: true}, {Crashed: true, CrashLoops: true}} {
				r := x.redriveAll(d, func(to *ops.RedriveOptions) { to.Crashed, to.CrashLoops = o.Crashed, o.CrashLoops })
				err, all := r.Results[0].Err, o.Crashed && o.CrashLoops
				if all != (err == nil) || !all && errors.Is(err, ops.ErrCrashLoop) != o.Crashed || !all && errors.Is(err, ops.ErrCrashed) == o.Crashed {
					x.Errorf("%+v: %v", o, err)
				}
			}
		})
	}
}

// A copy of our hosts names the record of a key function: the record is found without the function, by its own consumer's name
// alone. A copy that goes back names nothing.
func TestRecordOfAKeyFunction(t *testing.T) {
	t.Parallel()
	own := func(o *dedup.Options) {
		o.Key = func(m *sqsonce.Message) (string, error) { return "f" + m.Body, nil }
	}
	name := func(consumer string) func(*ops.Options) { return func(o *ops.Options) { o.Consumer = consumer } }
	eachKind(t, "of an inner consumer", setup{}, func(x *fixture) { // the copy is the outer one's
		x.send(x.url, "a1")
		inner := must.Get(dedup.New(x.store(x.admin), "charges", own))(x)
		x.worker(x.url, x.guarded(inner.Handler(fails(sqsonce.Reject(errCard))))).stopAfter(time.Minute)
		if m := x.one(x.open(name(consumer))); m.State != dedup.StateReleased || m.RecordKey != consumer+"#orders|a1" || m.Problem != nil {
			x.Errorf("%s, key %q, problem %v", m.State, m.RecordKey, m.Problem)
		}
	})
	eachKind(t, "key function", setup{}, func(x *fixture) {
		x.send(x.url, "a1")
		x.worker(x.url, x.guarded(fails(sqsonce.Reject(errCard)), own)).stopAfter(time.Minute)
		if m := x.one(x.open(name("refunds"))); m.State != ops.StateUnknown || !errors.Is(m.Problem, ops.ErrOtherConsumer) {
			x.Errorf("by another name: %s, %v", m.State, m.Problem)
		}
		m := x.one(x.open(name(consumer)))
		if m.State != dedup.StateReleased || m.RecordKey != consumer+"#fa1" || m.Problem != nil {
			x.Fatalf("%s, key %q, problem %v", m.State, m.RecordKey, m.Problem)
		}
		x.redriveAll(x.redriver(name(consumer)))
		back := x.sqs.Messages(x.url)
		if len(back) != 1 || back[0].Attributes[sqsonce.AttrRecordKey] != "" {
			x.Fatalf("redriven: %s", fmt.Sprint(back))
		}
		x.worker(x.url, x.guarded(fails(nil), own)).stopAfter(time.Minute)
		if r, err := x.store(x.admin).Inspect(context.Background(), m.RecordKey); err != nil || !r.Completed {
			x.Errorf("record %+v, %v", r, err)
		}
	})
}
