package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Dollars, from docs/cost.md, for a million each. A test compares.
const (
	priceStandard = 0.40  // S: requests to standard queues
	priceFIFO     = 0.50  // F: requests to FIFO queues; taken for all requests to SQS
	priceWrite    = 0.625 // W: write request units
	priceRead     = 0.125 // R: read request units
)

// load is what a part costs at most: measured on emulators, and several times that for empty receives and retries. A write
// of the suites may be of many units, since some cases write 400 KB.
type load struct {
	sqs, writes, reads float64
	other              float64 // dollars, of what docs/cost.md has no price of
}

var allParts = []part{
	{name: "sqs", test: "TestSQS", load: load{sqs: 20_000}},
	{name: "dynamodb", test: "TestDynamoDB", load: load{writes: 60_000, reads: 30_000}},
	{name: "store", test: "TestStore", load: load{writes: 5_000, reads: 5_000}},
	// A thousand transactions with two items, and four readers beside them.
	{name: "outbox", test: "TestOutbox", load: load{writes: 10_000, reads: 40_000}},
	{name: "smoke", test: "TestSmoke", load: load{sqs: 4_000, writes: 1_000, reads: 1_000}},
	// 5,000 orders: two records and a transaction with a booking for each, and a poll of the ledger four times a second. Lambda,
	// logs, X-Ray, alarms for an hour, a bucket with two bootstraps for minutes.
	{name: "demo", load: load{sqs: 60_000, writes: 100_000, reads: 200_000, other: 0.10}},
}

func (l load) dollars() float64 {
	return (l.sqs*priceFIFO+l.writes*priceWrite+l.reads*priceRead)/1e6 + l.other
}

func printEstimate(out io.Writer, parts []part) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "part\tSQS requests\twrite units\tread units\tother $\tat most $\t")
	total := 0.0
	for _, p := range parts {
		l := p.load
		total += l.dollars()
		fmt.Fprintf(table, "%s\t%.0f\t%.0f\t%.0f\t%.2f\t%.3f\t\n", p.name, l.sqs, l.writes, l.reads, l.other, l.dollars())
	}
	_ = table.Flush() // to a terminal; what follows asks
	fmt.Fprintf(out, "An estimate: at most %.2f dollars at the prices of docs/cost.md, without free tiers. AWS's bill decides.\n", total)
}
