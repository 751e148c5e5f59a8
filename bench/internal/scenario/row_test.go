package scenario

import (
	"testing"

	"github.com/sqsonce/sqsonce/bench/internal/endpoint"
	"github.com/sqsonce/sqsonce/bench/internal/job"
)

// A message that remains in the queue is undeleted, hidden, or visible again.
func TestAddState(t *testing.T) {
	t.Parallel()
	u := job.Usage{Done: job.NewBits(10), Doubled: 3, Mallocs: -1, CPU: 500}
	for n := range 5 {
		u.Done.Add(n)
	}
	r := run{scenario: Scenario{Name: "s"}, contestant: Contestant{Name: "c"}}
	row := rowOf(r, job.Job{Slots: 7}, 10, u, 0)
	addState(&row, u, endpoint.State{
		SQSRequests: 10, DynamoDBRequests: 5, WriteUnits: 20, Connections: 2,
		Remaining: []endpoint.Remaining{
			{Event: 0, InFlight: true}, {Event: 1}, // the handler returned: undeleted, in flight or not
			{Event: 7, InFlight: true}, // hidden
			{Event: 8}, {Event: 9},     // visible again
		},
	})
	for name, c := range map[string]struct {
		got  *float64
		want float64
	}{
		"messages": {row.Messages, 5}, "doubled": {row.Doubled, 3}, "undeleted": {row.Undeleted, 2}, "hidden": {row.Hidden, 1},
		"SQS": {row.SQS, 2}, "DynamoDB": {row.DynamoDB, 1}, "write units": {row.WriteUnits, 4}, "CPU": {row.CPU, 100},
		"connections": {row.Conns, 2}, "slots": {row.Slots, 7},
	} {
		if c.got == nil || *c.got != c.want {
			t.Errorf("%s: got %v, want %v", name, c.got, c.want)
		}
	}
	if row.Allocs != nil || row.Rate != nil {
		t.Errorf("allocations %v, rate %v, want neither", row.Allocs, row.Rate)
	}
}
