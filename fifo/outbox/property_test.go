package outbox_test

import (
	"testing"
	"testing/synctest"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/fifo/outbox/internal/refstore"
	"github.com/sqsonce/sqsonce/internal/outboxstorm"
)

// TestEverythingAtOnce: one to four relays, in processes that are killed and frozen, whose calls of the store and of SQS fail, lose
// their answers or arrive up to 20 minutes late; transactions that become visible event by event; refusals, and an operator who
// unparks. In the end nothing is lost, nothing invented, the first occurrences of each group are in the order of its commits, and an
// event is there twice only where two of its sends were five minutes apart.
func TestEverythingAtOnce(t *testing.T) {
	t.Parallel()
	outboxstorm.NoProblem(t, storm)
}

// Each of these is seen in some run.
func TestEverythingAtOnceSees(t *testing.T) {
	t.Parallel()
	outboxstorm.Sees(t, storm, outboxstorm.BlindPark, outboxstorm.Payloads, outboxstorm.EarlyDelete)
}

// storm runs a plan over the reference store.
func storm(t *testing.T, p outboxstorm.Plan) (problem string) {
	synctest.Test(t, func(t *testing.T) {
		table := refstore.NewTable()
		problem = outboxstorm.Run(t.Context(), p, outboxstorm.World{
			Source: refstore.Source,
			Commit: func(es []fifo.Event, _ int64) func() { return table.Half(es...) },
			Open: func(*outboxstorm.Process) outbox.Store {
				s := table.Open()
				switch {
				case p.Defect == outboxstorm.BlindPark:
					s.Defect = "parks blindly"
				case p.Seed%2 == 0: // as on DynamoDB, where nothing keeps relays from the same work
					s.Defect = "claims what is claimed for nobody"
				}
				return s
			},
			Left: func(group string) (ids []string) {
				for _, e := range table.Events(group) {
					ids = append(ids, e.ID)
				}
				return ids
			},
		})
	})
	return problem
}
