package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/fleet"
	"github.com/sqsonce/sqsonce/control"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/statusreport"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/sqsworker"
	"github.com/sqsonce/sqsonce/status"
)

// controlled sets the environment of the commands.
func (w *world) controlled() {
	w.env["SQSONCE_CONSUMER"], w.env["SQSONCE_TABLE"], w.env["SQSONCE_QUEUE"] = consumer, "dedup", "orders"
	w.ages = map[string]float64{"orders": 192, "orders.fifo": 192}
}

// obeying runs a worker that obeys, and answers for it as the host billing-1.
func (w *world) obeying(h sqsonce.Handler) *sqsworker.Worker {
	w.Helper()
	quiet := slog.New(slog.DiscardHandler)
	c := must.Get(control.New(w.store, consumer, func(o *control.Options) { o.Logger = quiet }))(w)
	worker := must.Get(sqsworker.New(w.stack.SQS, w.stack.QueueURL["orders"], c.Handler(h), func(o *sqsworker.Options) {
		o.Logger, o.Hooks = quiet, []sqsworker.Hooks{c.Hooks()}
	}))(w)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	w.Cleanup(func() {
		cancel()
		must.Do(w, <-ended)
	})
	w.handler = must.Get(status.Handler(func(o *status.Options) {
		o.Name, o.Workers, o.Controls = "billing", []*sqsworker.Worker{worker}, map[string]*control.Control{consumer: c}
	}))(w)
	return worker
}

func (w *world) controlState() control.State {
	w.Helper()
	s, err := control.Read(context.Background(), w.store, consumer)
	if err != nil && !errors.Is(err, control.ErrState) {
		w.Fatal(err)
	}
	return s.State
}

// A worker is paused, limited and resumed by commands, and the status says so each time.
func TestControl(t *testing.T) {
	bubble(t, func(w *world) {
		w.controlled()
		worker := w.obeying(func(context.Context, *sqsonce.Message) error { time.Sleep(time.Second); return nil })
		for range 5 {
			w.send("orders", "", "b")
		}
		time.Sleep(time.Minute)
		look := func(code exitCode, want string) {
			t.Helper()
			got := w.run("status", "--worker", "http://billing-1:8080")
			if got.code != code || !strings.Contains(got.out, want) {
				t.Errorf("status: got %+v, want exit %d and %q", got, code, want)
			}
		}
		do := func(want string, args ...string) {
			t.Helper()
			got := w.run(append(args, "--yes")...)
			if got.code != exitDone || !strings.Contains(got.out, want) {
				t.Errorf("%q: got %+v, want %q", args, got, want)
			}
		}
		look(exitDone, "billing\topen\n")
		do("paused until", "pause", "--until", "2h", "--reason", "bank is down")
		look(exitFound, "\tnot paused\t")
		time.Sleep(6 * time.Second)
		look(exitDone, "\tpaused\t")
		if s := w.controlState(); !s.Paused || s.By != callerARN || s.Reason != "bank is down" || (time.Until(s.Until)-2*time.Hour).Abs() > 10*time.Second {
			t.Errorf("state: got %+v", s)
		}
		if worker.Stats().Intake != sqsworker.IntakePaused {
			t.Errorf("intake is %s, want paused", worker.Stats().Intake)
		}
		do("at most 2 at once", "set-concurrency", "2", "--until", "1h", "--reason", "bank is slow")
		look(exitFound, "\tnot limited\t")
		time.Sleep(6 * time.Second)
		look(exitDone, "\tlimited\t")
		if n := worker.Options().Concurrency; n != 2 {
			t.Errorf("concurrency is %d, want 2", n)
		}
		do("open", "resume", "--reason", "bank is back")
		time.Sleep(6 * time.Second)
		look(exitDone, "\topen\t")
		do("open", "resume", "--reason", "again") // nothing to do
		time.Sleep(time.Minute)

		lines := w.audited()
		var what []string
		for _, l := range lines {
			what = append(what, l.Event+" "+l.What)
			if l.Event == "begin" && (l.Key != "sqsonce.control#billing" || l.Note == "" || l.Who.ARN != callerARN || l.Before == nil || l.After == nil) {
				t.Errorf("audit: got %+v", l)
			}
			if after, _ := l.After.(map[string]any); l.Event == "end" && after["until"] == nil {
				t.Errorf("audit: got %+v, want the end that the state has", l)
			}
		}
		if want := []string{"begin pause", "end pause", "begin set-concurrency", "end set-concurrency", "begin resume", "end resume"}; !slices.Equal(what, want) {
			t.Errorf("audit: got %q, want %q", what, want)
		}
	})
}

// racing is a store in which another operator is faster.
type racing struct {
	Store
	w *world
}

func (r racing) Keep(ctx context.Context, seen dedup.Record, operator string, data []byte, d time.Duration) (dedup.Record, error) {
	now := must.Get(control.Read(ctx, r.w.store, consumer))(r.w)
	must.Get(control.Set(ctx, r.w.store, now, control.State{Concurrency: 1, By: "bob", Reason: "first"}, time.Hour))(r.w)
	return r.w.store.Keep(ctx, seen, operator, data, d)
}

// noKeeper is a store of a program's own.
type noKeeper struct{ Store }

func TestControlExitCodes(t *testing.T) {
	pause := []string{"pause", "--until", "2h", "--reason", "r"}
	for name, test := range map[string]struct {
		args   []string
		answer string
		before func(w *world)
		code   exitCode
		says   string
		paused bool
	}{
		"yes":            {args: pause, answer: "y", says: "Do it?", paused: true},
		"no":             {args: pause, answer: "n", code: exitRefused, says: "nothing was changed"},
		"no terminal":    {args: pause, code: exitRefused, says: "needs --yes"},
		"dry run":        {args: append(slices.Clone(pause), "--dry-run"), says: "would pause billing"},
		"no reason":      {args: []string{"pause", "--until", "2h", "--yes"}, code: exitUsage, says: "--reason"},
		"no end":         {args: []string{"pause", "--reason", "r", "--yes"}, code: exitUsage, says: "--until"},
		"too long":       {args: []string{"pause", "--reason", "r", "--until", "8d", "--yes"}, code: exitUsage, says: "--until"},
		"a long reason":  {args: []string{"pause", "--reason", strings.Repeat("r", 501), "--until", "2h", "--yes"}, code: exitUsage, says: "State.Reason"},
		"no consumer":    {args: pause, before: func(w *world) { delete(w.env, "SQSONCE_CONSUMER") }, code: exitUsage, says: "--consumer"},
		"a bad consumer": {args: append(slices.Clone(pause), "--consumer", "a#b"), code: exitUsage, says: "consumer"},
		"its own name":   {args: append(slices.Clone(pause), "--consumer", "sqsonce.control"), code: exitUsage, says: "package control"},
		"no handlers":    {args: []string{"set-concurrency", "0", "--until", "2h", "--reason", "r", "--yes"}, code: exitUsage, says: "sqsonce pause"},
		"nothing":        {args: []string{"resume", "--reason", "r"}, says: "nothing to do"},
		"another is first": {args: append(slices.Clone(pause), "--yes"), before: func(w *world) {
			w.opts.Store = func(context.Context) (Store, error) { return racing{w.store, w}, nil }
		}, code: exitRefused, says: dedup.ErrChanged.Error()},
		"no keeper": {args: append(slices.Clone(pause), "--yes"), before: func(w *world) {
			w.opts.Store = func(context.Context) (Store, error) { return noKeeper{w.store}, nil }
		}, code: exitFailed, says: "dedup.Keeper"},
		"a broken record": {args: append(slices.Clone(pause), "--yes"), before: func(w *world) {
			must.Get(w.store.Keep(context.Background(), dedup.Record{Lease: dedup.Lease{Key: "sqsonce.control#billing"}}, "", []byte("x"), time.Hour))(w)
		}, says: "it is replaced", paused: true},
		"a record in progress": {args: append(slices.Clone(pause), "--yes"), before: func(w *world) {
			must.Get(w.store.Acquire(context.Background(), dedup.Claim{Key: "sqsonce.control#billing", Owner: "a", Lease: time.Hour, Retention: 24 * time.Hour}))(w)
		}, code: exitRefused, says: "delete the item sqsonce.control#billing"},
		"a record without an owner": {args: append(slices.Clone(pause), "--yes"), before: func(w *world) {
			w.putForeign("sqsonce.control#billing")
		}, code: exitRefused, says: "delete the item sqsonce.control#billing"},
		"a record without a fence": {args: append(slices.Clone(pause), "--yes"), before: func(w *world) {
			w.putForeign("sqsonce.control#billing")
			must.Get(w.stack.DynamoDB.UpdateItem(context.Background(), &dynamodb.UpdateItemInput{
				TableName: aws.String("dedup"), Key: map[string]ddbtypes.AttributeValue{"id": &ddbtypes.AttributeValueMemberS{Value: "sqsonce.control#billing"}},
				UpdateExpression: aws.String("SET #o = :o"), ExpressionAttributeNames: map[string]string{"#o": "owner"},
				ExpressionAttributeValues: map[string]ddbtypes.AttributeValue{":o": &ddbtypes.AttributeValueMemberS{Value: "by hand"}},
			}))(w)
		}, code: exitRefused, says: "delete the item sqsonce.control#billing"},
		"record free": {args: []string{"record", "free", "sqsonce.control#billing", "--again", "--yes"}, before: func(w *world) {
			w.run("pause", "--until", "2h", "--reason", "r", "--yes")
			delete(w.env, "SQSONCE_CONSUMER")
		}, code: exitRefused, says: "use pause", paused: true},
		"denied": {args: append(slices.Clone(pause), "--yes"), before: func(w *world) {
			w.stack.MemDynamoDB().Set(fault.Plan{Rules: []fault.Rule{{Op: "UpdateItem", Prob: 1, Do: fault.Error, Code: "AccessDeniedException"}}})
		}, code: exitDenied, says: "dynamodb:UpdateItem"},

		"messages too old": {args: append(slices.Clone(pause), "--yes"), before: func(w *world) { w.ages["orders.fifo"] = (4*24*time.Hour - time.Hour).Seconds() }, code: exitRefused, says: "SQS deletes it at"},
		"lost by will":     {args: append(slices.Clone(pause), "--yes", "--yes-lose"), before: func(w *world) { w.ages["orders.fifo"] = (4*24*time.Hour - time.Hour).Seconds() }, says: "BEFORE THE PAUSE ENDS", paused: true},
		"no age":           {args: append(slices.Clone(pause), "--yes"), before: func(w *world) { delete(w.ages, "orders.fifo") }, code: exitRefused, says: "CloudWatch has no value"},
		"no age, by will":  {args: append(slices.Clone(pause), "--yes", "--yes-lose"), before: func(w *world) { w.ages = nil }, says: "it is not known", paused: true},
		"a standard queue": {args: append(slices.Clone(pause), "--yes"), before: func(w *world) {
			w.env["SQSONCE_QUEUE"] = "orders"
			w.send("orders", "", "b")
		}, code: exitRefused, says: "CloudWatch leaves out those that were received three times"},
		"no queue": {args: append(slices.Clone(pause), "--yes"), before: func(w *world) { delete(w.env, "SQSONCE_QUEUE") }, code: exitRefused, says: "--queue"},
		"longer than the retention": {args: []string{"pause", "--until", "5d", "--reason", "r", "--yes"}, before: func(w *world) {
			w.env["SQSONCE_QUEUE"] = "orders" // it is empty
		}, code: exitRefused, says: "SQS deletes it at"},
	} {
		run(t, name, func(w *world) {
			w.controlled()
			w.env["SQSONCE_QUEUE"] = "orders.fifo"
			w.send("orders.fifo", "", "b")
			if test.before != nil {
				test.before(w)
			}
			w.terminal, w.answer = test.answer != "", test.answer
			got := w.run(test.args...)
			w.stack.MemDynamoDB().Set(fault.Plan{})
			if got.code != test.code || !strings.Contains(got.err, test.says) || w.controlState().Paused != test.paused {
				w.Errorf("got %+v and state %s, want exit %d, %q, paused: %t", got, w.controlState(), test.code, test.says, test.paused)
			}
		})
	}
}

// A plan is carried out while the state is the one that was seen.
func TestControlPlan(t *testing.T) {
	bubble(t, func(w *world) {
		w.controlled()
		pause := []string{"pause", "--until", "2h", "--reason", "r"}
		p := w.dryRun(pause)
		w.run("set-concurrency", "2", "--until", "1h", "--reason", "r", "--yes")
		if got := w.run(append(pause, "--yes", "--plan", p.Hash)...); got.code != exitRefused || w.controlState().Paused {
			t.Errorf("after another operator's change: got %+v, want it refused", got)
		}
		p = w.dryRun(pause)
		if got := w.run(append(pause, "--yes", "--plan", p.Hash)...); got.code != exitDone || !w.controlState().Paused {
			t.Errorf("got %+v, want a pause", got)
		}
	})
}

// What status says of workers that do not obey, or of which that is not known.
func TestControlStatus(t *testing.T) {
	said := func(change func(r *statusreport.Report)) func(w *world) func() statusreport.Report {
		return func(w *world) func() statusreport.Report {
			return func() statusreport.Report {
				r := w.working("billing-1", "orders", 1)()
				r.Controls = []statusreport.Control{{Consumer: consumer, Paused: true, Read: time.Now()}}
				r.Workers[0].Intake = "paused"
				change(&r)
				return r
			}
		}
	}
	for name, test := range map[string]struct {
		report func(w *world) func() statusreport.Report
		open   bool // nothing is asked
		args   []string
		code   exitCode
		shows  string
	}{
		"obeys":              {report: said(func(*statusreport.Report) {}), shows: "\tpaused\t3\t1\t"},
		"does not watch":     {report: said(func(r *statusreport.Report) { r.Controls = nil }), code: exitFound, shows: "not paused\t3\t1\t\tit does not watch"},
		"another consumer":   {report: said(func(r *statusreport.Report) { r.Controls[0].Consumer = "ledger" }), code: exitFound, shows: "it does not watch"},
		"not watching, open": {report: said(func(r *statusreport.Report) { r.Controls, r.Workers[0].Intake = nil, "open" }), open: true, shows: "\topen\t3\t1\t\tit does not watch"},
		"still paused":       {report: said(func(*statusreport.Report) {}), open: true, code: exitFound, shows: "not open"},
		"no hooks":           {report: said(func(r *statusreport.Report) { r.Workers[0].Intake = "open" }), code: exitFound, shows: "it lacks the hooks"},
		"stopping":           {report: said(func(r *statusreport.Report) { r.Workers[0].State, r.Controls[0].Paused = "stopping", false }), shows: "\tstopping\t"},
		"cannot read":        {report: said(func(r *statusreport.Report) { r.Controls[0].Error = "denied" }), shows: "\tdenied"},
		"of another queue": {report: said(func(r *statusreport.Report) {
			r.Workers = append(r.Workers, statusreport.Worker{Queue: "other", State: "running", Intake: "open"})
		}), args: []string{"--queue", "arn:aws:sqs:us-east-1:000000000000:orders"}, shows: "\tpaused\t"},
		"no worker": {report: said(func(r *statusreport.Report) { r.Workers = nil }), code: exitPart, shows: "it has no such worker"},
		"away": {report: func(*world) func() statusreport.Report {
			return func() statusreport.Report { return statusreport.Report{} }
		}, code: exitPart, shows: "unknown"},
	} {
		run(t, name, func(w *world) {
			w.env["SQSONCE_CONSUMER"], w.env["SQSONCE_TABLE"] = consumer, "dedup"
			w.workers = map[string]func() statusreport.Report{"billing-1:8080": test.report(w)}
			if !test.open {
				w.controlled()
				must.Get(control.Set(w.Context(), w.store, must.Get(control.Read(w.Context(), w.store, consumer))(w), control.State{Paused: true, By: "ann", Reason: "r"}, time.Hour))(w)
				delete(w.env, "SQSONCE_QUEUE")
			}
			got := w.run(append([]string{"status", "--worker", "http://billing-1:8080"}, test.args...)...)
			if got.code != test.code || !strings.Contains(got.out, test.shows) {
				w.Errorf("got %+v, want exit %d and %q", got, test.code, test.shows)
			}
			var s struct {
				State   struct{ Paused bool }
				Workers []struct {
					Obeys *bool
					Is    string
				}
			}
			got = w.run(append([]string{"status", "--json", "--worker", "http://billing-1:8080"}, test.args...)...)
			must.Do(w, json.Unmarshal([]byte(got.out), &s))
			if obeys := s.Workers[0].Obeys; s.State.Paused == test.open || (obeys == nil) != (test.code == exitPart) || obeys != nil && *obeys != (test.code == exitDone) {
				w.Errorf("got %s", got.out)
			}
		})
	}
}

// A limit that a worker has not taken over is seen by its slots.
func TestControlStatusOfALimit(t *testing.T) {
	for slots, want := range map[float64]bool{1: true, 2: true, 3: false} {
		row := &obeyRow{}
		row.watched(statusreport.Control{Concurrency: 2}, statusreport.Worker{State: "running", Stats: statusreport.Stats{fleet.Concurrency: slots}}, control.State{Concurrency: 2})
		if *row.Obeys != want {
			t.Errorf("%v slots of a limit of 2: got %t, want %t", slots, *row.Obeys, want)
		}
	}
}

// A record that workers ignore is no state.
func TestControlStatusOfABrokenRecord(t *testing.T) {
	bubble(t, func(w *world) {
		w.controlled()
		must.Get(w.store.Keep(w.Context(), dedup.Record{Lease: dedup.Lease{Key: "sqsonce.control#billing"}}, "", []byte("x"), time.Hour))(w)
		if got := w.run("status"); got.code != exitPart || !strings.Contains(got.err, "workers ignore the record") {
			t.Errorf("got %+v, want exit 4", got)
		}
		w.noAWS = fmt.Errorf("none: %w", errors.New("no credentials"))
		if got := w.run("status"); got.code == exitDone {
			t.Errorf("without a store: got %+v", got)
		}
	})
}

func TestGoldenControl(t *testing.T) {
	bubble(t, func(w *world) {
		w.controlled()
		w.send("orders.fifo", "", "b")
		w.golden("pause-dry-json", w.run("pause", "--queue", "orders.fifo", "--until", "2h", "--reason", "bank is down", "--dry-run", "--json"))
		w.golden("pause-pipe", w.run("pause", "--queue", "orders.fifo", "--until", "2h", "--reason", "bank is down", "--yes"))
		w.workers = map[string]func() statusreport.Report{"billing-1:8080": w.working("billing-1", "orders", 1)}
		w.golden("status-pipe", w.run("status", "--worker", "http://billing-1:8080"))
		w.golden("status-json", w.run("status", "--worker", "http://billing-1:8080", "--json"))
		w.golden("resume-json", w.run("resume", "--reason", "bank is back", "--yes", "--json"))
	})
}
