package endpoint

import (
	"github.com/sqsonce/sqsonce/bench/internal/job"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// writes are the DynamoDB operations that consume write units; no contestant reads by PartiQL.
var writes = map[string]bool{
	"PutItem": true, "UpdateItem": true, "DeleteItem": true, "BatchWriteItem": true,
	"TransactWriteItems": true, "ExecuteStatement": true, "BatchExecuteStatement": true,
}

func writeUnits(calls []fault.Call) (sum float64) {
	for _, c := range calls {
		if writes[c.Op] {
			sum += c.Units
		}
	}
	return sum
}

// order compares a queue with the backlog its publisher had. In a queue the order is that of acceptance.
func order(messages []memsqs.QueuedMessage, events int) Order {
	var o Order
	seen, last := job.NewBits(events), map[string]int{}
	for _, m := range messages {
		n := job.Number(m.Body)
		if n < 0 || n >= events {
			continue
		}
		if seen.Has(n) {
			o.Doubled++
			continue // a second copy behind the first takes nobody's place
		}
		seen.Add(n)
		if before, ok := last[m.Group]; ok && before > n {
			o.Inverted++
			continue
		}
		last[m.Group] = n
	}
	for n := range events {
		if !seen.Has(n) {
			o.Missing++
		}
	}
	return o
}
