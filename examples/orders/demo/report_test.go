package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/examples/orders"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/proof/netfault"
	"github.com/sqsonce/sqsonce/localstack"
)

// The report of a good run must be good, and each case that breaks one thing of it must not.
func TestReport(t *testing.T) {
	const killed = 7
	events := []string{"a1 acct-a 10", "b1 acct-b 5", "a2 acct-a -3", "a3 acct-a 4"}
	type run struct {
		ledger     map[string]orders.Account
		calls      []orders.Call
		dead       int // messages in the dead-letter queue
		deliveries int
	}
	good := func() *run {
		return &run{
			ledger: map[string]orders.Account{
				"acct-a": {Balance: 11, Entries: []string{"a1", "a2", "a3"}},
				"acct-b": {Balance: 5, Entries: []string{"b1"}},
			},
			calls:      []orders.Call{{Event: "a1", Process: killed}, {Event: "b1", Process: 8}, {Event: "a2", Process: 8}, {Event: "a3", Process: 8}},
			deliveries: len(events),
		}
	}
	for _, tt := range []struct {
		name   string
		change func(*run)
		want   string // in the output; "" for a good run
	}{
		{"good", func(*run) {}, ""},
		{"repeated after the kill", func(r *run) { r.calls = append(r.calls, orders.Call{Event: "a1", Process: 8}) }, ""},
		{"repeated without a kill", func(r *run) { r.calls = append(r.calls, orders.Call{Event: "a2", Process: 9}) }, "repeated without a crash: a2"},
		{"repeated twice", func(r *run) {
			r.calls = append(r.calls, orders.Call{Event: "a1", Process: 8}, orders.Call{Event: "a1", Process: 9})
		}, "repeated without a crash: a1"},
		{"call missing", func(r *run) { r.calls = r.calls[1:] }, "external calls: 3 +"},
		{"lost", func(r *run) { r.ledger["acct-b"] = orders.Account{} }, "1 lost"},
		{"doubled", func(r *run) {
			r.ledger["acct-b"] = orders.Account{Balance: 10, Entries: []string{"b1", "b1"}}
		}, "1 doubled"},
		{"out of order", func(r *run) {
			r.ledger["acct-a"] = orders.Account{Balance: 11, Entries: []string{"a2", "a1", "a3"}}
		}, "1 out of order"},
		{"wrong balance", func(r *run) {
			r.ledger["acct-b"] = orders.Account{Balance: 10, Entries: []string{"b1"}}
		}, "balance 10 of acct-b, want 5"},
		{"entry that nobody sent", func(r *run) {
			r.ledger["acct-b"] = orders.Account{Balance: 5, Entries: []string{"b1", "x9"}}
		}, "entry x9 of acct-b"},
		{"account that nobody sent", func(r *run) { r.ledger["acct-z"] = orders.Account{Balance: 1} }, "account acct-z"},
		{"dead letter", func(r *run) { r.dead = 1 }, "1 messages in the dead-letter queue"},
		{"fewer deliveries than events", func(r *run) { r.deliveries = 3 }, "3 deliveries"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := good()
			tt.change(r)
			in := &input{loads: [2]*load{loadOf(events...), {queue: "orders"}}}
			got := in.compare(r.ledger, r.calls, []int{killed})
			got.queues = []queueRow{{queue: "orders.fifo", counts: counts{delivered: r.deliveries}, deadLetter: r.dead}}
			var out strings.Builder
			err := got.print(&out)
			if (err == nil) != (tt.want == "") || !strings.Contains(out.String(), tt.want) {
				t.Errorf("got error %v and\n%s\nwant %q", err, out.String(), tt.want)
			}
		})
	}
}

func loadOf(lines ...string) *load {
	l := &load{queue: "orders.fifo"}
	for _, line := range lines {
		var o orders.Order
		if _, err := fmt.Sscan(line, &o.ID, &o.Account, &o.Amount); err != nil {
			panic(err)
		}
		l.events = append(l.events, orders.Event{Order: o})
	}
	return l
}

// An outage that met no connection is not as it should be. What it does to connections is in the tests of netfault.
func TestOutage(t *testing.T) {
	t.Parallel()
	o := must.Get(netfault.Start("127.0.0.1:1"))(t)
	r := &report{}
	if r.addOutage(&stack{outage: o}); len(r.unexpected) != 1 {
		t.Errorf("before the outage: %q, want that it met no connection", r.unexpected)
	}
	o.Cut()
	if c, err := net.Dial("tcp", o.Addr); err == nil {
		_, _ = c.Read(make([]byte, 1)) // until it is refused
		_ = c.Close()
	}
	r = &report{}
	r.addOutage(&stack{outage: o})
	if want := "10 s, 0 connections broken, 1 refused"; r.outage != want || len(r.unexpected) > 0 {
		t.Errorf("reported %q and %q, want %q", r.outage, r.unexpected, want)
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
}

func TestReportWithoutOutage(t *testing.T) {
	t.Parallel()
	r := &report{}
	r.addOutage(&stack{backend: &backend{noOutage: "SQLite is a file"}})
	if want := "left out: SQLite is a file"; r.outage != want || len(r.unexpected) > 0 {
		t.Errorf("reported %q and %q, want %q", r.outage, r.unexpected, want)
	}
}

// The processes reach the DynamoDB of the endpoint by the proxy, where TLS does not hinder that.
func TestDynamoDBBehindTheProxy(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ endpoint, address, env string }{
		{"http://127.0.0.1:4566", "127.0.0.1:4566", "http://127.0.0.1:1"},
		{"http://localstack/", "localstack:80", "http://127.0.0.1:1/"},
		{"https://localhost.localstack.cloud:4566", "", "https://localhost.localstack.cloud:4566"},
	} {
		b := &backend{}
		must.Do(t, b.useDynamoDB(tt.endpoint))
		s := &stack{backend: b}
		if b.address != "" {
			s.outage = &netfault.Proxy{Addr: "127.0.0.1:1"}
		}
		if got, want := s.storeEnv(), []string{"STORE=dynamodb", "AWS_ENDPOINT_URL_DYNAMODB=" + tt.env}; b.address != tt.address || !slices.Equal(got, want) {
			t.Errorf("%s: store at %q, environment %q, want %q and %q", tt.endpoint, b.address, got, tt.address, want)
		}
		if (b.address == "") != (b.noOutage != "") {
			t.Errorf("%s: store at %q, no outage for %q", tt.endpoint, b.address, b.noOutage)
		}
	}
}

// The demo uses the queues and tables of a stack, here without its functions, and leaves them there.
func TestDeployed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", dir+"/", ".", "../publish", "../worker")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	s := must.Get(localstack.Start(t.Context(), func(o *localstack.Options) {
		o.HTTP, o.Tables = true, []string{"records"}
		o.Queues = []localstack.Queue{{Name: "s-orders", MaxReceiveCount: 20}, {Name: "s-orders.fifo", MaxReceiveCount: 20}}
	}))(t)
	t.Cleanup(func() { _ = s.Close(t.Context()) }) // in memory
	must.Do(t, orders.CreateLedger(t.Context(), s.DynamoDB, "ledger"))
	outputs := map[string]string{
		"OrdersQueueUrl": s.QueueURL["s-orders"], "OrdersDLQUrl": s.QueueURL["s-orders-dlq"],
		"OrdersFifoQueueUrl": s.QueueURL["s-orders.fifo"], "OrdersFifoDLQUrl": s.QueueURL["s-orders-dlq.fifo"],
		"DedupTableName": "records", "LedgerTableName": "ledger", "OrdersFunctionName": "not used",
	}
	few := filepath.Join(dir, "few.jsonl")
	all := must.Get(os.ReadFile("../orders.jsonl"))(t)
	lines := strings.SplitAfter(string(all), "\n")[:200]
	must.Do(t, os.WriteFile(few, []byte(strings.Join(lines, "")), 0o600))
	demo := func(outputs map[string]string) (string, error) {
		var list []map[string]string
		for key, value := range outputs {
			list = append(list, map[string]string{"OutputKey": key, "OutputValue": value})
		}
		text := must.Get(json.Marshal(list))(t)
		file := filepath.Join(dir, "outputs.json")
		must.Do(t, os.WriteFile(file, text, 0o600))
		cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "demo"))
		cmd.Env = append(os.Environ(), "STACK_OUTPUTS="+file, "ORDERS="+few, "AWS_ENDPOINT_URL="+s.URL, "STORE=",
			"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_EC2_METADATA_DISABLED=true")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := demo(outputs)
	if err != nil || !strings.Contains(out, "200 effects, 0 lost, 0 doubled, 0 out of order") || !strings.Contains(out, "killed worker") ||
		!strings.Contains(out, "kill of a function left out") || !strings.Contains(out, "not counted") {
		t.Errorf("error %v\n%s", err, out)
	}
	if ledger, err := orders.ReadLedger(t.Context(), s.DynamoDB, "ledger"); err != nil || len(ledger) == 0 {
		t.Errorf("the ledger afterwards: %d accounts, error %v; want it to be there still", len(ledger), err)
	}
	delete(outputs, "LedgerTableName")
	if out, err := demo(outputs); err == nil || !strings.Contains(out, "LedgerTableName") {
		t.Errorf("without an output: error %v\n%s", err, out)
	}
}
