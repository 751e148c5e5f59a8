package main

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"

	"github.com/sqsonce/sqsonce/examples/orders"
)

// input is all orders of a run, as one load for each queue.
type input struct {
	loads [2]*load // FIFO, standard
}

// load is the orders that are published to one queue: those of half of the accounts.
type load struct {
	queue  string
	dlq    string
	file   string
	events []orders.Event
}

// names are the names of a run's queues and tables.
type names struct{ fifo, standard, fifoDLQ, standardDLQ, ledger, dedup, orders, outbox string }

// newNames returns new names for each run: for a minute SQS refuses the name of a deleted queue.
func newNames() names {
	run := "orders-" + strings.ToLower(rand.Text()[:6])
	return names{
		fifo: run + ".fifo", fifoDLQ: run + "-dlq.fifo",
		standard: run, standardDLQ: run + "-dlq",
		ledger: run + "-ledger", dedup: run + "-dedup", orders: run + "-placed", outbox: run + "-outbox",
	}
}

// dlq returns the name of a queue's dead-letter queue.
func (n names) dlq(queue string) string {
	if queue == n.fifo {
		return n.fifoDLQ
	}
	return n.standardDLQ
}

// readInput reads the orders and writes a file for each queue. ORDERS names another file than the repository's.
func readInput(dir string, n names) (*input, error) {
	path := os.Getenv("ORDERS")
	if path == "" {
		path = "orders.jsonl"
	}
	events, err := orders.ReadFile(path)
	if err != nil {
		return nil, err
	}
	in := &input{loads: [2]*load{{queue: n.fifo, dlq: n.fifoDLQ}, {queue: n.standard, dlq: n.standardDLQ}}}
	byAccount, next := map[string]int{}, 0
	for _, e := range events {
		i, known := byAccount[e.Account]
		if !known {
			i, next = next, 1-next
			byAccount[e.Account] = i
		}
		in.loads[i].events = append(in.loads[i].events, e)
	}
	for _, l := range in.loads {
		l.file = filepath.Join(dir, l.queue+".jsonl")
		var text strings.Builder
		for _, e := range l.events {
			text.WriteString(e.Body)
			text.WriteByte('\n')
		}
		if err := os.WriteFile(l.file, []byte(text.String()), 0o600); err != nil {
			return nil, err
		}
	}
	return in, nil
}

func (in *input) total() int { return len(in.loads[0].events) + len(in.loads[1].events) }

// complete reports whether every event is booked.
func (in *input) complete(booked map[string]int) bool {
	return in.loads[0].count(booked)+in.loads[1].count(booked) == in.total()
}

// count returns how many events of l are booked.
func (l *load) count(booked map[string]int) int {
	n := 0
	for _, e := range l.events {
		if booked[e.ID] > 0 {
			n++
		}
	}
	return n
}
