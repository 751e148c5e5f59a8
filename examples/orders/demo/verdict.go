package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/sqsonce/sqsonce/examples/orders"
)

// verdict is what the endpoint, the outside system and the ledger say afterwards, held against the input.
type verdict struct {
	events  int
	rows    []row
	ledger  tally
	calls   calls
	foreign []string // what the ledger or the dead-letter queues hold and should not
}

type row struct {
	queue      string
	events     int
	counts     counts
	effects    int
	deadLetter int
}

// tally holds the ledger against the input.
type tally struct {
	effects, lost, doubled, outOfOrder int
}

// calls holds the outside system's view against the input.
type calls struct {
	total, repeated int
	unexplained     []string // events whose repetition the crash does not explain
}

// judge asks the endpoint, the ledger and the outside system.
func judge(ctx context.Context, s *stack, in *input, callsFile string, killed []int) (*verdict, error) {
	ledger, err := s.ledger(ctx)
	if err != nil {
		return nil, err
	}
	made, err := orders.ReadCalls(callsFile)
	if err != nil {
		return nil, err
	}
	v := in.verdict(ledger, made, killed)
	booked, err := s.booked(ctx)
	if err != nil {
		return nil, err
	}
	for _, h := range in.halves {
		dead, err := s.messages(ctx, h.dlq)
		if err != nil {
			return nil, err
		}
		v.rows = append(v.rows, row{h.queue, len(h.events), s.counter.of(h.queue), in.count(h, booked), dead})
	}
	return v, nil
}

// verdict holds what the ledger and the outside system have against the input.
func (in *input) verdict(ledger map[string]orders.Account, made []orders.Call, killed []int) *verdict {
	v := &verdict{events: in.total(), calls: in.judgeCalls(made, killed)}
	known := map[string]bool{}
	for i, h := range in.halves {
		t, foreign := judgeHalf(h, ledger, i == 0)
		v.ledger.add(t)
		v.foreign = append(v.foreign, foreign...)
		for _, e := range h.events {
			known[e.Account] = true
		}
	}
	for account := range ledger {
		if !known[account] {
			v.foreign = append(v.foreign, "account "+account)
		}
	}
	return v
}

func (t *tally) add(u tally) {
	t.effects += u.effects
	t.lost += u.lost
	t.doubled += u.doubled
	t.outOfOrder += u.outOfOrder
}

// judgeHalf compares each account's entries and balance with what the input says they must be.
func judgeHalf(h *half, ledger map[string]orders.Account, ordered bool) (t tally, foreign []string) {
	position := map[string]int{}   // of an event in its account's order
	want := map[string]int64{}     // balance
	inAccount := map[string]bool{} // account|event
	next := map[string]int{}
	for _, e := range h.events {
		position[e.ID] = next[e.Account]
		next[e.Account]++
		want[e.Account] += e.Amount
		inAccount[e.Account+"|"+e.ID] = true
	}
	times := map[string]int{}
	for account := range next {
		last := -1
		for _, id := range ledger[account].Entries {
			if !inAccount[account+"|"+id] {
				foreign = append(foreign, fmt.Sprintf("entry %s of %s", id, account))
				continue
			}
			times[id]++
			if ordered && position[id] < last {
				t.outOfOrder++
			}
			last = max(last, position[id])
		}
	}
	for _, e := range h.events {
		switch n := times[e.ID]; {
		case n == 0:
			t.lost++
		default:
			t.effects++
			t.doubled += n - 1
		}
	}
	for account, balance := range want {
		if got := ledger[account].Balance; got != balance && t.lost == 0 && t.doubled == 0 {
			foreign = append(foreign, fmt.Sprintf("balance %d of %s, want %d", got, account, balance))
		}
	}
	return t, foreign
}

// judgeCalls finds the events that the outside system was told more than once. Only the crash explains one: a killed
// process had made the call and not yet completed its record.
func (in *input) judgeCalls(made []orders.Call, killed []int) calls {
	c := calls{}
	first, times := map[string]int{}, map[string]int{}
	for _, m := range made {
		if times[m.Event]++; times[m.Event] == 1 {
			first[m.Event] = m.Process
			c.total++
			continue
		}
		c.repeated++
		if !slices.Contains(killed, first[m.Event]) || times[m.Event] > 2 {
			c.unexplained = append(c.unexplained, m.Event)
		}
	}
	return c
}

func (v *verdict) print(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\nqueue\tevents\tmessages sent\tdeliveries\teffects\tin DLQ\tSQS requests\t")
	deliveries := 0
	for _, r := range v.rows {
		deliveries += r.counts.delivered
		if r.deadLetter > 0 {
			v.foreign = append(v.foreign, fmt.Sprintf("%d messages in the dead-letter queue of %s", r.deadLetter, r.queue))
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t\n", r.queue, r.events, r.counts.sent, r.counts.delivered, r.effects, r.deadLetter, r.counts.requests)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, f := range v.foreign {
		fmt.Fprintln(w, "unexpected:", f)
	}
	for _, e := range v.calls.unexplained {
		fmt.Fprintln(w, "repeated without a crash:", e)
	}
	fmt.Fprintf(w, "external calls: %d + %d repeated after the SIGKILL (at most %d were in flight)\n", v.calls.total, v.calls.repeated, mostInFlight)
	fmt.Fprintf(w, "demo: %d events, %d deliveries, %d effects, %d lost, %d doubled, %d out of order\n",
		v.events, deliveries, v.ledger.effects, v.ledger.lost, v.ledger.doubled, v.ledger.outOfOrder)
	if !v.good(deliveries) {
		return errors.New("not once per event")
	}
	return nil
}

// mostInFlight is how many calls can be repeated: the handlers of the killed worker and of the killed function.
const mostInFlight = concurrency + batchSize

func (v *verdict) good(deliveries int) bool {
	return v.ledger == tally{effects: v.events} &&
		v.calls.total == v.events && v.calls.repeated <= mostInFlight &&
		len(v.calls.unexplained) == 0 && len(v.foreign) == 0 && deliveries >= v.events
}
