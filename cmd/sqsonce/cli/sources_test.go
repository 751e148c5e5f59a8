package cli

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/granted"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/settle"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// Of a dead-letter queue of two queues --queue means the messages of one, whose consumer is named; the records of the other queue's
// consumer are others.
func TestQueueIsASource(t *testing.T) {
	bubble(t, func(w *world) {
		w.shareDLQ("returns")
		for _, source := range []string{"orders", "returns"} {
			w.send("orders-dlq", source, source, sqsonce.AttrEventSource, "shop", sqsonce.AttrRejectReason, "declined",
				sqsonce.AttrDeadLetterSource, "arn:aws:sqs:us-east-1:000000000000:"+source)
		}
		records := []string{"--consumer", consumer, "--table", "dedup"}
		list := w.run(append([]string{"dlq", "ls", "--messages", "--queue", "orders"}, records...)...)
		if !strings.Contains(list.out, "shop|orders") || strings.Contains(list.out, "shop|returns") || !strings.Contains(list.err, "1 of them came from other queues, and are not shown. All of them: sqsonce dlq ls") {
			t.Errorf("%s%s", list.out, list.err)
		}
		if list := w.run(append([]string{"dlq", "ls", "--messages", "--dlq", "orders-dlq"}, records...)...); !strings.Contains(list.out, "shop|orders") || !strings.Contains(list.out, "shop|returns") {
			t.Errorf("%s%s", list.out, list.err)
		}
		got := w.run(append([]string{"dlq", "redrive", "--queue", "orders", "--all", "--unknown", "--yes", "--canary", "0"}, records...)...)
		if left := w.stack.MemSQS().Messages("orders-dlq"); got.code != 0 || len(left) != 1 || left[0].Body != "returns" {
			t.Errorf("exit %d, %v left: %s%s", got.code, left, got.out, got.err)
		}
	})
}

// An event without a record never started where the operator says so of its queue, and is else left in every run: for one message too.
func TestSameKeys(t *testing.T) {
	bubble(t, func(w *world) {
		w.env["SQSONCE_QUEUE"], w.env["SQSONCE_CONSUMER"], w.env["SQSONCE_TABLE"] = "orders", consumer, "dedup"
		w.put("there", dedup.StateReleased)
		w.send("orders-dlq", "there", "b")
		w.send("orders-dlq", "missing", "b")
		id := w.stack.MemSQS().Messages("orders-dlq")[1].ID
		if got := w.run("dlq", "ls", "--messages"); !strings.Contains(got.out, "\tunknown\t") || !strings.Contains(got.err, "--same-keys") {
			t.Errorf("%s%s", got.out, got.err)
		}
		for name, want := range map[string]string{consumer: "\tnone\t", "biling": "no record under"} {
			w.env["SQSONCE_CONSUMER"] = name
			if old := w.run("dlq", "ls", "--messages", "--stock-keys"); !strings.Contains(old.out, want) || strings.Contains(w.run("dlq", "ls", "--help").out, "stock-keys") {
				t.Errorf("the flag's old name: %s%s", old.out, old.err)
			}
			if got := w.run("dlq", "ls", "--messages", "--same-keys"); !strings.Contains(got.out, want) || strings.Contains(got.out, "unknown") == (name == consumer) {
				t.Errorf("%s: %s%s", name, got.out, got.err)
			}
		}
		w.env["SQSONCE_CONSUMER"] = consumer
		for _, run := range []struct {
			args string
			left int
		}{{"--id " + id, 2}, {"--id " + id + " --same-keys", 1}} {
			got := w.run(append([]string{"dlq", "redrive", "--yes", "--canary", "0"}, strings.Fields(run.args)...)...)
			if left := left(w); left != run.left {
				t.Errorf("%s: exit %d, %d left, want %d: %s", run.args, got.code, left, run.left, got.err)
			}
		}
	})
}

// A program with the consumer's key function proves by other records under its keys that an event never started. The first look prints the
// redrive, whose canary is watched, and a class keeps its ID.
func TestSameKeysOfAKeyFunction(t *testing.T) {
	bubble(t, func(w *world) {
		w.env["SQSONCE_QUEUE"], w.env["SQSONCE_CONSUMER"], w.env["SQSONCE_TABLE"] = "orders", consumer, "dedup"
		w.keyFunction()
		w.send("orders-dlq", "event-5", "5")
		w.opts.Key = func(m *sqsonce.Message) (string, error) { return sqsonce.EventKey("shop", m.Body) }
		got := w.run("dlq", "ls", "--state", "unknown")
		class, _, _ := strings.Cut(got.out, "\t")
		if strings.Contains(got.out+got.err, "may use a key function") || !strings.Contains(w.run("dlq", "ls", "--class", class, "--same-keys").out, "\tnone\t") {
			t.Errorf("class %s: %+v", class, got)
		}
		once := must.Get(dedup.New(w.store, consumer, func(o *dedup.Options) { o.Key, o.Logger = w.opts.Key, slog.New(slog.DiscardHandler) }))(t)
		w.consume("orders", once.Handler(succeeds))
		commands := printed.FindAllStringSubmatch(got.err, -1)
		redriven := w.run(pasted(w, commands[len(commands)-1][1])[1:]...)
		if redriven.code != exitDone || left(w) != 4 || !strings.Contains(redriven.err, consumer+"#shop|5: waiting") || !strings.Contains(redriven.err, "is completed") {
			t.Errorf("%q: %+v", commands, redriven)
		}
	})
}

// A list of records ends with their number, also from a store that counts no read units. A list that has failed is no 0.
func TestRecordsAreCounted(t *testing.T) {
	bubble(t, func(w *world) {
		ls := []string{"record", "ls", "--consumer", consumer, "--state", "crashed"}
		w.opts.Store = func(context.Context) (Store, error) { return struct{ Store }{w.store}, nil }
		if got := w.run(ls...); got.code != exitDone || got.err != "0 records\n" {
			t.Errorf("%+v", got)
		}
		w.put("a", dedup.StateCrashed)
		if got := w.run(ls...); !strings.HasSuffix(got.err, "\n1 record\n") {
			t.Errorf("%+v", got)
		}
		w.stack.MemDynamoDB().Set(fault.Plan{Rules: []fault.Rule{{Op: "Scan", Prob: 1, Do: fault.Error, Code: "AccessDeniedException"}}})
		if got := w.run(ls...); got.code != exitDenied || strings.Contains(got.err, "0 records") {
			t.Errorf("denied: %+v", got)
		}
	})
}

// Where no message has a record, one that the consumer has tells a key function from a wrong name or store. A list that is denied
// costs the listing nothing.
func TestOtherKeys(t *testing.T) {
	bubble(t, func(w *world) {
		w.env["SQSONCE_QUEUE"], w.env["SQSONCE_TABLE"] = "orders", "dedup"
		key := w.put("another", dedup.StateReleased)
		w.send("orders-dlq", "missing", "b")
		for name, shown := range map[string]bool{consumer: true, "biling": false} {
			w.env["SQSONCE_CONSUMER"] = name
			if got := w.run("dlq", "ls"); got.code != exitDone || strings.Contains(got.err, key) != shown {
				t.Errorf("%s: %+v", name, got)
			}
		}
		w.stack.MemDynamoDB().Set(fault.Plan{Rules: []fault.Rule{{Op: "Scan", Prob: 1, Do: fault.Error, Code: "AccessDeniedException"}}})
		if got := w.run("dlq", "ls"); got.code != exitDone || !strings.Contains(got.err, "dynamodb:Scan") {
			t.Errorf("denied: %+v", got)
		}
	})
}

// An event that has crashed two processes goes back after a question of its own, or by a flag of its own.
func TestRedriveCrashLoop(t *testing.T) {
	bubble(t, func(w *world) {
		once := must.Get(dedup.New(w.store, consumer, func(o *dedup.Options) { o.Logger = slog.New(slog.DiscardHandler) }))(t)
		m := &sqsonce.Message{ID: "1", ReceiveCount: 3, Attributes: map[string]sqsonce.Attribute{sqsonce.AttrEventKey: {Type: "String", String: "loop"}}}
		for _, owner := range []string{"a", "b"} {
			must.Get(w.store.Acquire(context.Background(), dedup.Claim{Key: consumer + "#loop", Owner: owner, Lease: lease, Retention: time.Hour}))(t)
			time.Sleep(time.Minute)
			ctx, settled := settle.New(settle.WithSuspects(context.Background(), 3))
			if err := once.Handler(succeeds)(ctx, m); err == nil {
				t.Fatal("it ran")
			}
			_ = settled(false)
		}
		w.send("orders-dlq", "1", "b", sqsonce.AttrEventKey, "loop")
		redrive := func(terminal bool, answer string, flags ...string) result {
			w.terminal, w.answer = terminal, answer
			return w.redrive(append([]string{"--all", "--canary", "0"}, flags...)...)
		}
		for what, got := range map[string]result{
			"--yes":             redrive(false, "", "--yes", "--crashed"),
			"a no":              redrive(true, "n\ny", "--crashed"),
			"without --crashed": redrive(false, "", "--yes", "--crash-loops"),
		} {
			if left(w) != 1 {
				t.Errorf("%s sent it: %s", what, got.err)
			}
		}
		shown := w.run("record", "show", consumer+"#loop", "--table", "dedup")
		if !strings.Contains(shown.out, "crashes\t2 at least\n") {
			t.Errorf("record show: %q", shown.out)
		}
		if got := w.run("record", "ls", "--table", "dedup", "--state", "crashed"); !strings.Contains(got.out, "#loop\tcrashed") {
			t.Errorf("record ls: %+v", got)
		}
		if got := redrive(true, "y\ny", "--crashed"); left(w) != 0 || strings.Count(got.err, "[y/N]") != 2 {
			t.Errorf("exit %d, %d left: %s", got.code, left(w), got.err)
		}
		if got := w.run("record", "free", consumer+"#loop", "--table", "dedup", "--yes"); !strings.Contains(got.out, "crashed\treleased") { // as dlq ls advises
			t.Errorf("record free: %+v", got)
		}
		w.send("orders-dlq", "1", "b", sqsonce.AttrEventKey, "loop")
		if got := redrive(false, "", "--yes"); left(w) != 0 {
			t.Errorf("redrive of a freed event: %+v", got)
		}
	})
}

// shareDLQ makes another queue with the dead-letter queue of orders.
func (w *world) shareDLQ(name string) {
	w.Helper()
	policy := `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:orders-dlq","maxReceiveCount":5}`
	must.Get(w.stack.SQS.CreateQueue(w.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: map[string]string{"RedrivePolicy": policy}}))(w)
}

// A queue whose messages are hidden is not taken for an empty one.
func TestExitCodeOfHiddenMessages(t *testing.T) {
	bubble(t, func(w *world) {
		w.send("orders-dlq", "", "a")
		w.hide("orders-dlq")
		if got := w.run("dlq", "ls", "--queue", "orders", "--exit-code"); got.code != exitPart || !strings.Contains(got.err, "not all messages were read") {
			t.Errorf("exit %d: %s", got.code, got.err)
		}
	})
}

// A consumer with a key function has its records under other keys than the command asks for. Nothing says then that its events never
// ran: they are unknown, and sent where that is said for this run of the command.
func TestKeyFunctionUnknownToTheCommand(t *testing.T) {
	for name, test := range map[string]struct {
		flags  []string
		answer string // on a terminal; "": there is none
		code   exitCode
		sent   int
	}{
		"all":                  {flags: []string{"--all", "--yes"}, code: exitPart},
		"all, with a plan":     {flags: []string{"--all", "--yes", "--expect", "0"}, code: exitPart},
		"one message":          {flags: []string{"--id", "ID", "--yes"}, code: exitPart},
		"by state":             {flags: []string{"--state", "unknown", "--yes"}, code: exitPart},
		"crashed and expired":  {flags: []string{"--all", "--yes", "--crashed", "--expired"}, code: exitPart},
		"yes on a terminal":    {flags: []string{"--all", "--yes"}, answer: "y\ny", code: exitPart},
		"asked, no":            {flags: []string{"--all"}, answer: "n", code: exitPart},
		"asked, no answer":     {flags: []string{"--all"}, answer: "\n", code: exitPart},
		"asked, yes":           {flags: []string{"--all"}, answer: "y\ny", code: exitDone, sent: 4},
		"asked, and not done":  {flags: []string{"--all"}, answer: "y\nn", code: exitRefused},
		"asked of one message": {flags: []string{"--id", "ID"}, answer: "y\ny", code: exitDone, sent: 1},
		"said":                 {flags: []string{"--all", "--yes", "--unknown"}, code: exitDone, sent: 4},
		"said of one message":  {flags: []string{"--id", "ID", "--yes", "--unknown"}, code: exitDone, sent: 1},
	} {
		run(t, name, func(w *world) {
			ids := w.keyFunction()
			list := w.run("dlq", "ls", "--queue", "orders", "--consumer", consumer, "--table", "dedup")
			shown := w.run("dlq", "show", ids[0], "--json", "--queue", "orders", "--consumer", consumer, "--table", "dedup")
			if !strings.Contains(list.out, "\t4\tunknown\t") || strings.Contains(list.out, "never") || !strings.Contains(shown.out, `"state":"unknown"`) {
				w.Errorf("%s%s", list.out, shown.out)
			}
			for i, flag := range test.flags {
				test.flags[i] = strings.Replace(flag, "ID", ids[0], 1)
			}
			w.terminal, w.answer = test.answer != "", test.answer
			got := w.redrive(append(slices.Clone(test.flags), "--canary", "0")...)
			if sent := len(w.stack.MemSQS().Messages("orders")); got.code != test.code || sent != test.sent {
				w.Errorf("exit %d, %d sent, want %d, %d: %s%s", got.code, sent, test.code, test.sent, got.out, got.err)
			}
			if says := strings.Contains(got.out+got.err, "--unknown sends it anyway"); says != (test.code == exitPart) {
				w.Errorf("it says how: %t: %s%s", says, got.out, got.err)
			}
		})
	}
}

// The plan says, before it asks, what the canary of an event without a record does not prove.
func TestUnknownCanary(t *testing.T) {
	bubble(t, func(w *world) {
		w.keyFunction()
		w.terminal = true
		for canary, want := range map[string]bool{"1": true, "0": false} {
			w.answer = "n"
			got := w.redrive("--all", "--unknown", "--canary", canary)
			plan, _, asked := strings.Cut(got.err, "Do it?")
			if says := strings.Contains(plan, "does not prove"); !asked || says != want {
				w.Errorf("--canary %s: %+v", canary, got)
			}
		}
	})
}

// A class without any record is diagnosed, also beside copies that name their records, and where those were not read it is not. A list of
// its messages on a terminal shows each in a few lines, whatever their keys' length.
func TestClassOfOtherKeys(t *testing.T) {
	bubble(t, func(w *world) {
		w.env["SQSONCE_QUEUE"], w.env["SQSONCE_CONSUMER"], w.env["SQSONCE_TABLE"] = "orders", consumer, "dedup"
		w.keyFunction()
		w.send("orders-dlq", "copy", "2", sqsonce.AttrRejectReason, "no such customer", sqsonce.AttrRecordKey, consumer+"#shop|2")
		got := w.run("dlq", "ls")
		if !strings.Contains(got.err, "none of the 4 messages of class ") || !strings.Contains(got.err, "records under keys such as billing#shop|") || strings.Contains(got.err, "--same-keys") {
			t.Errorf("%+v", got)
		}
		w.width = 120
		list := w.run("dlq", "ls", "--messages", "--state", "unknown")
		table, _, _ := strings.Cut(list.out, "\n\n")
		if lines := strings.Count(table, "\n"); lines > 4*2+2 || strings.Count(table, "billing#") != 4 {
			t.Errorf("%d lines: %+v", lines, list)
		}
		w.width = 0
		w.stack.MemDynamoDB().Set(fault.Plan{Rules: []fault.Rule{{Op: "GetItem", Prob: 1, Do: fault.Reset}}})
		if got := w.run("dlq", "ls"); got.code == exitDone || strings.Contains(got.err, "none of the") {
			t.Errorf("not read: %+v", got)
		}
	})
}

// keyFunction makes four events of a consumer with a key function, one that crashed and three that are completed, and puts their
// messages into the dead-letter queue.
func (w *world) keyFunction() (ids []string) {
	w.Helper()
	once := must.Get(dedup.New(w.store, consumer, func(o *dedup.Options) {
		o.Logger = slog.New(slog.DiscardHandler)
		o.Key = func(m *sqsonce.Message) (string, error) { return sqsonce.EventKey("shop", m.Body) }
	}))(w)
	for _, order := range []string{"1", "2", "3", "4"} {
		m := &sqsonce.Message{ID: order, Body: order}
		key, err := once.Key(m)
		must.Do(w, err)
		want := dedup.StateCompleted
		if order == "1" {
			want = dedup.StateCrashed
			_, err = granted.Lease(w.store.Acquire(context.Background(), dedup.Claim{Key: key, Owner: "killed", Lease: lease, Retention: 29 * 24 * time.Hour}))
			time.Sleep(lease + 10*time.Second)
		} else {
			err = once.Handler(succeeds)(context.Background(), m)
		}
		must.Do(w, err)
		if state := w.state(key); state != want {
			w.Fatalf("%s is %s", key, state)
		}
		ids = append(ids, w.send("orders-dlq", "event-"+order, order))
	}
	return ids
}
