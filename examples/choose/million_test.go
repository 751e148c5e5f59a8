package choose

import (
	"math"
	"testing"
)

// bill is what an event takes: requests of SQS, write and read units of DynamoDB.
type bill struct{ requests, writes, reads float64 }

func (b bill) plus(c bill, times float64) bill {
	return bill{b.requests + times*c.requests, b.writes + times*c.writes, b.reads + times*c.reads}
}

// sqs is a row of the table of SQS without what it leaves open, ddb one of the table of DynamoDB.
func (p page) sqs(row string) (b bill) {
	p.Helper()
	for i, cell := range p.row(row) {
		if i > 0 && cell != "-" {
			b.requests += p.number(row, i)
		}
	}
	return b
}

func (p page) ddb(row string) bill {
	p.Helper()
	return bill{writes: p.number(row, 2), reads: p.number(row, 3)}
}

// The table of a million events follows from the counts and prices of the page, which other tests compare with the services.
func TestMillion(t *testing.T) {
	p := readPage(t, "cost.md")
	price := func(name string) float64 { return p.number(name, 1) }
	publish := p.sqs("publisher, requests full")
	worker := publish.plus(p.sqs("worker, standard queue"), 1)
	fifoWorker := publish.plus(p.sqs("worker, FIFO queue of 100 groups"), 1)
	function := publish.plus(p.sqs("event source mapping, batches of 10"), 1)
	first, theirs := p.ddb("first delivery, 1000 handlers"), p.ddb("Powertools: first delivery")
	const twice, failing = 0.05, 0.02 // of the events: sent twice; fail once
	again := func(host, duplicate, failed bill, requests float64) bill {
		return host.plus(host, twice).plus(duplicate, twice).plus(failed, failing).plus(bill{requests: requests}, failing)
	}
	cases := map[string]struct {
		bill
		fifo bool
	}{
		"no record, a request for each step of each event": {bill{requests: 3}, false},
		"no record, worker":                                      {worker, false},
		"no record, worker, FIFO queue":                          {fifoWorker, true},
		"sqsonce, worker":                                        {worker.plus(first, 1), false},
		"sqsonce, worker, FIFO queue":                            {fifoWorker.plus(first, 1), true},
		"sqsonce, Lambda":                                        {function.plus(first, 1), false},
		"Powertools, Lambda":                                     {function.plus(theirs, 1), false},
		"sqsonce, worker, 5% sent twice, 2% fail once":           {again(worker, p.ddb("duplicate, 64 handlers"), p.ddb("failed delivery"), p.sqs("worker, an event that fails once, alone").requests+p.number("worker, standard queue", 2)).plus(first, 1), false},
		"Powertools, Lambda, 5% sent twice, 2% fail once":        {again(function, p.ddb("Powertools: duplicate"), p.ddb("Powertools: failed delivery"), p.number("event source mapping, batches of 10", 2)).plus(theirs, 1), false},
		"sqsonce, worker, handlers of 55 s":                      {worker.plus(p.sqs("worker, handlers of 55 s"), 1).plus(p.ddb("first delivery, handler of 55 s in a worker"), 1), false},
		"no record, worker, the handler writes 1 KB":             {worker.plus(p.ddb("one write of up to 1 KB, without an inbox"), 1), false},
		"sqsonce, worker, inbox, the handler writes 1 KB":        {worker.plus(p.ddb("inbox with one write of up to 1 KB"), 1), false},
		"sqsonce, worker, no inbox, the handler writes 1 KB":     {worker.plus(first, 1).plus(p.ddb("one write of up to 1 KB, without an inbox"), 1), false},
		"sqsonce or Powertools, Lambda, results of 10 KB stored": {function.plus(p.ddb("Powertools: result of 10 KB"), 1), false},
	}
	if rows := p.rows("## A million events"); len(rows) != len(cases) {
		t.Errorf("the page has %d rows, the test %d", len(rows), len(cases))
	}
	for row, c := range cases {
		request := price("S")
		if c.fifo {
			request = price("F")
		}
		dollars := c.requests*request + c.writes*price("W") + c.reads*price("R")
		for i, want := range []float64{c.requests * 1e6, c.writes * 1e6, c.reads * 1e6, dollars} {
			if got := p.number(row, i+1); math.Abs(got-want) > 0.0051 {
				t.Errorf("%q, column %d: the page says %v, its counts and prices make %.3f", row, i+1, got, want)
			}
		}
	}
}
