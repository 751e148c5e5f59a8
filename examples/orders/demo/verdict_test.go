package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/examples/orders"
)

// The verdict must be able to say no: each case breaks one thing of a good run.
func TestVerdict(t *testing.T) {
	const killed = 7
	events := []string{"a1 acct-a 10", "b1 acct-b 5", "a2 acct-a -3", "a3 acct-a 4"}
	type world struct {
		ledger map[string]orders.Account
		calls  []orders.Call
		dead   int
		more   int // deliveries
	}
	good := func() *world {
		return &world{
			ledger: map[string]orders.Account{
				"acct-a": {Balance: 11, Entries: []string{"a1", "a2", "a3"}},
				"acct-b": {Balance: 5, Entries: []string{"b1"}},
			},
			calls: []orders.Call{{Event: "a1", Process: killed}, {Event: "b1", Process: 8}, {Event: "a2", Process: 8}, {Event: "a3", Process: 8}},
			more:  len(events),
		}
	}
	for _, tt := range []struct {
		name  string
		spoil func(*world)
		want  string // in the output; "" for a good run
	}{
		{"good", func(*world) {}, ""},
		{"repeated after the kill", func(w *world) { w.calls = append(w.calls, orders.Call{Event: "a1", Process: 8}) }, ""},
		{"repeated without a kill", func(w *world) { w.calls = append(w.calls, orders.Call{Event: "a2", Process: 9}) }, "repeated without a crash: a2"},
		{"repeated twice", func(w *world) {
			w.calls = append(w.calls, orders.Call{Event: "a1", Process: 8}, orders.Call{Event: "a1", Process: 9})
		}, "repeated without a crash: a1"},
		{"call missing", func(w *world) { w.calls = w.calls[1:] }, "external calls: 3 +"},
		{"lost", func(w *world) { w.ledger["acct-b"] = orders.Account{} }, "1 lost"},
		{"doubled", func(w *world) {
			w.ledger["acct-b"] = orders.Account{Balance: 10, Entries: []string{"b1", "b1"}}
		}, "1 doubled"},
		{"out of order", func(w *world) {
			w.ledger["acct-a"] = orders.Account{Balance: 11, Entries: []string{"a2", "a1", "a3"}}
		}, "1 out of order"},
		{"wrong balance", func(w *world) {
			w.ledger["acct-b"] = orders.Account{Balance: 10, Entries: []string{"b1"}}
		}, "balance 10 of acct-b, want 5"},
		{"foreign entry", func(w *world) {
			w.ledger["acct-b"] = orders.Account{Balance: 5, Entries: []string{"b1", "x9"}}
		}, "entry x9 of acct-b"},
		{"account nobody sent", func(w *world) { w.ledger["acct-z"] = orders.Account{Balance: 1} }, "account acct-z"},
		{"dead letter", func(w *world) { w.dead = 1 }, "1 messages in the dead-letter queue"},
		{"fewer deliveries than events", func(w *world) { w.more = 3 }, "3 deliveries"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := good()
			tt.spoil(w)
			in := &input{halves: [2]*half{halfOf(events...), {queue: "orders"}}}
			v := in.verdict(w.ledger, w.calls, []int{killed})
			v.rows = []row{{queue: "orders.fifo", counts: counts{delivered: w.more}, deadLetter: w.dead}}
			var out strings.Builder
			err := v.print(&out)
			if (err == nil) != (tt.want == "") || !strings.Contains(out.String(), tt.want) {
				t.Errorf("got error %v and\n%s\nwant %q", err, out.String(), tt.want)
			}
		})
	}
}

func halfOf(lines ...string) *half {
	h := &half{queue: "orders.fifo"}
	for _, l := range lines {
		var o orders.Order
		if _, err := fmt.Sscan(l, &o.ID, &o.Account, &o.Amount); err != nil {
			panic(err)
		}
		h.events = append(h.events, orders.Event{Order: o})
	}
	return h
}
