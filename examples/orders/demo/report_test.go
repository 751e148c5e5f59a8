package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/examples/orders"
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
