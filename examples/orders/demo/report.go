package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"text/tabwriter"

	"github.com/sqsonce/sqsonce/examples/orders"
)

// report compares what the endpoint, the ledger and the external system hold after the run with the input.
type report struct {
	events  int
	queues  []queueRow
	effects effects
	calls   calls
	outage  string // what it did
	// deployed says that functions ran elsewhere: deliveries and their calls were not counted.
	deployed   bool
	unexpected []string // what the ledger or a dead-letter queue holds, and should not
}

// queueRow is a line of the printed table.
type queueRow struct {
	queue      string
	events     int
	counts     counts
	effects    int
	deadLetter int
}

// effects counts the bookings in the ledger.
type effects struct {
	made, lost, doubled, outOfOrder int
}

// calls counts the calls of the external system.
type calls struct {
	events, repeated int
	unexplained      []string // events whose repeated call no kill explains
}

// mostRepeated is how many calls the two kills can repeat: one for each handler of the killed worker and function.
const mostRepeated = concurrency + batchSize

// newReport reads the endpoint, the ledger and the file of the external system. killed are the killed processes.
func newReport(ctx context.Context, s *stack, in *input, callsFile string, killed []int) (*report, error) {
	ledger, err := s.ledger(ctx)
	if err != nil {
		return nil, err
	}
	made, err := orders.ReadCalls(callsFile)
	if err != nil && !(s.deployed && errors.Is(err, fs.ErrNotExist)) { // Lambda may have handled everything
		return nil, err
	}
	r := in.compare(ledger, made, killed)
	r.deployed = s.deployed
	r.addOutage(s)
	if standard := in.loads[1]; !s.deployed && standard.rejected() > 0 && s.counted(standard.dlq).delivered == 0 {
		r.unexpected = append(r.unexpected, "no order was rejected and redriven")
	}
	booked, err := s.booked(ctx)
	if err != nil {
		return nil, err
	}
	for _, l := range in.loads {
		dead, err := s.messages(ctx, l.dlq)
		if err != nil {
			return nil, err
		}
		r.queues = append(r.queues, queueRow{l.queue, len(l.events), s.counted(l.queue), l.count(booked), dead})
	}
	return r, nil
}

// addOutage adds what the outage did. Where it met no connection the run says nothing about outages.
func (r *report) addOutage(s *stack) {
	if s.outage == nil {
		r.outage = "left out: " + s.backend.noOutage
		return
	}
	broken, refused := s.outage.Met()
	r.outage = fmt.Sprintf("%.0f s, %d connections broken, %d refused", outageTime.Seconds(), broken, refused)
	if broken+refused == 0 {
		r.unexpected = append(r.unexpected, "the outage of the store met no connection")
	}
}

// compare compares the ledger and the calls with the input.
func (in *input) compare(ledger map[string]orders.Account, made []orders.Call, killed []int) *report {
	r := &report{events: in.total(), calls: compareCalls(made, killed)}
	accounts := map[string]bool{}
	for i, l := range in.loads {
		e, unexpected := l.compare(ledger, i == 0)
		r.effects.add(e)
		r.unexpected = append(r.unexpected, unexpected...)
		for _, event := range l.events {
			accounts[event.Account] = true
		}
	}
	for account := range ledger {
		if !accounts[account] {
			r.unexpected = append(r.unexpected, "account "+account)
		}
	}
	return r
}

func (e *effects) add(f effects) {
	e.made += f.made
	e.lost += f.lost
	e.doubled += f.doubled
	e.outOfOrder += f.outOfOrder
}

// compare compares the entries and the balance of each account with the events. Entries must be in the order of the events
// where ordered is set.
func (l *load) compare(ledger map[string]orders.Account, ordered bool) (effects effects, unexpected []string) {
	position := map[string]int{}   // of an event among those of its account
	balance := map[string]int64{}  // that the account must have
	inAccount := map[string]bool{} // account|event
	events := map[string]int{}     // of an account
	for _, e := range l.events {
		position[e.ID] = events[e.Account]
		events[e.Account]++
		balance[e.Account] += e.Amount
		inAccount[e.Account+"|"+e.ID] = true
	}
	booked := map[string]int{} // how often an event is
	for account := range events {
		last := -1
		for _, id := range ledger[account].Entries {
			if !inAccount[account+"|"+id] {
				unexpected = append(unexpected, fmt.Sprintf("entry %s of %s", id, account))
				continue
			}
			booked[id]++
			if ordered && position[id] < last {
				effects.outOfOrder++
			}
			last = max(last, position[id])
		}
	}
	for _, e := range l.events {
		if n := booked[e.ID]; n == 0 {
			effects.lost++
		} else {
			effects.made++
			effects.doubled += n - 1
		}
	}
	for account, want := range balance {
		if got := ledger[account].Balance; got != want && effects.lost == 0 && effects.doubled == 0 {
			unexpected = append(unexpected, fmt.Sprintf("balance %d of %s, want %d", got, account, want))
		}
	}
	return effects, unexpected
}

// compareCalls finds the events that the external system was called about more than once. Only a kill explains one: the
// killed process had made the call, and not yet completed its record.
func compareCalls(made []orders.Call, killed []int) calls {
	c := calls{}
	first, times := map[string]int{}, map[string]int{}
	for _, m := range made {
		if times[m.Event]++; times[m.Event] == 1 {
			first[m.Event] = m.Process
			c.events++
			continue
		}
		c.repeated++
		if !slices.Contains(killed, first[m.Event]) || times[m.Event] > 2 {
			c.unexplained = append(c.unexplained, m.Event)
		}
	}
	return c
}

// print prints the report. It returns an error unless every event had its effect once.
func (r *report) print(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\nqueue\tevents\tmessages sent\tdeliveries\teffects\tin DLQ\tSQS requests\t")
	deliveries := 0
	for _, q := range r.queues {
		deliveries += q.counts.delivered
		if q.deadLetter > 0 {
			r.unexpected = append(r.unexpected, fmt.Sprintf("%d messages in the dead-letter queue of %s", q.deadLetter, q.queue))
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t\n", q.queue, q.events, q.counts.sent, q.counts.delivered, q.effects, q.deadLetter, q.counts.requests)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, what := range r.unexpected {
		fmt.Fprintln(w, "unexpected:", what)
	}
	for _, event := range r.calls.unexplained {
		fmt.Fprintln(w, "repeated without a crash:", event)
	}
	fmt.Fprintln(w, "outage of the store:", r.outage)
	fmt.Fprintf(w, "external calls: %d + %d repeated after the SIGKILL (at most %d were in flight)\n", r.calls.events, r.calls.repeated, mostRepeated)
	if r.deployed {
		fmt.Fprintln(w, "messages, deliveries, requests and the functions' calls were not counted")
	}
	fmt.Fprintf(w, "demo: %d events, %d deliveries, %d effects, %d lost, %d doubled, %d out of order\n",
		r.events, deliveries, r.effects.made, r.effects.lost, r.effects.doubled, r.effects.outOfOrder)
	if !r.good(deliveries) {
		return errors.New("not every event had its effect once")
	}
	return nil
}

func (r *report) good(deliveries int) bool {
	return r.effects == effects{made: r.events} &&
		(r.deployed || r.calls.events == r.events && deliveries >= r.events) && r.calls.repeated <= mostRepeated &&
		len(r.calls.unexplained) == 0 && len(r.unexpected) == 0
}
