package main

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"

	"github.com/sqsonce/sqsonce/examples/orders"
)

// half is the part of the orders that goes through one queue: those of half of the accounts.
type half struct {
	queue  string
	dlq    string
	file   string
	events []orders.Event
}

type input struct {
	halves [2]*half // FIFO, standard
}

// names are those of a run's resources.
type names struct{ fifo, standard, fifoDLQ, standardDLQ, ledger, dedup string }

// newNames gives every run its own: SQS refuses a queue's name for a minute after the queue was deleted.
func newNames() names {
	run := "orders-" + strings.ToLower(rand.Text()[:6])
	return names{
		fifo: run + ".fifo", fifoDLQ: run + "-dlq.fifo",
		standard: run, standardDLQ: run + "-dlq",
		ledger: run + "-ledger", dedup: run + "-dedup",
	}
}

// readInput reads the orders and writes a file for each queue. ORDERS names another file than the one in the repository.
func readInput(dir string, n names) (*input, error) {
	path := os.Getenv("ORDERS")
	if path == "" {
		path = "orders.jsonl"
	}
	events, err := orders.ReadFile(path)
	if err != nil {
		return nil, err
	}
	in := &input{halves: [2]*half{{queue: n.fifo, dlq: n.fifoDLQ}, {queue: n.standard, dlq: n.standardDLQ}}}
	side, next := map[string]int{}, 0
	for _, e := range events {
		i, known := side[e.Account]
		if !known {
			i, next = next, 1-next
			side[e.Account] = i
		}
		in.halves[i].events = append(in.halves[i].events, e)
	}
	for _, h := range in.halves {
		h.file = filepath.Join(dir, h.queue+".jsonl")
		var text strings.Builder
		for _, e := range h.events {
			text.WriteString(e.Body)
			text.WriteByte('\n')
		}
		if err := os.WriteFile(h.file, []byte(text.String()), 0o600); err != nil {
			return nil, err
		}
	}
	return in, nil
}

// count returns how many events of h are booked.
func (in *input) count(h *half, booked map[string]int) int {
	n := 0
	for _, e := range h.events {
		if booked[e.ID] > 0 {
			n++
		}
	}
	return n
}

func (in *input) total() int { return len(in.halves[0].events) + len(in.halves[1].events) }

func (in *input) complete(booked map[string]int) bool {
	return in.count(in.halves[0], booked)+in.count(in.halves[1], booked) == in.total()
}
