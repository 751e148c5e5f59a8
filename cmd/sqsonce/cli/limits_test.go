package cli

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/limit"
)

// The keys of a rule, and its slots with their owners and leases, are records. So they are listed under limit/NAME, and shown.
func TestRecordsOfARule(t *testing.T) {
	bubble(t, func(w *world) {
		l := must.Get(limit.New([]limit.Rule{
			{Name: "tenant", Plan: limit.Plan{Concurrency: 1, Rate: limit.Rate{N: 5}}, Counter: dynamostore.NewCounter(w.store)},
			{Name: "other", Key: limit.All, Plan: limit.Plan{Concurrency: 1}, Counter: dynamostore.NewCounter(w.store)},
		}))(t)
		h := limit.Handler(l, func(context.Context, *sqsonce.Message) error {
			got := w.run("record", "ls", "--table", "dedup", "--consumer", "limit/tenant")
			lines := strings.Split(strings.TrimSpace(got.out), "\n")
			slices.Sort(lines)
			key, slot := strings.Split(lines[0], "\t"), strings.Split(lines[len(lines)-1], "\t")
			if got.code != exitDone || len(lines) != 2 || key[0] != "limit/tenant#acme" || key[1] != "released" || slot[0] != "limit/tenant#acme#0" || slot[1] != "running" {
				t.Errorf("%+v", got)
				return nil
			}
			until := must.Get(time.Parse(time.RFC3339, slot[2]))(t)
			if left := time.Until(until); left < 25*time.Second || left > 31*time.Second {
				t.Errorf("the slot's lease ends in %s: %s", left, got.out)
			}
			if got := w.run("record", "show", "--table", "dedup", "limit/tenant#acme#0", "--json"); !strings.Contains(got.out, `"owner":"`) {
				t.Errorf("%+v", got)
			}
			return nil
		})
		err := error(sqsonce.Postpone(0, nil)) // DynamoDB's clock is known to a second at first
		for i := 2; sqsonce.OutcomeOf(err).Postpone && i < 20; i++ {
			time.Sleep(2300 * time.Millisecond)
			err = h(context.Background(), &sqsonce.Message{ID: "1", Group: "acme", ReceiveCount: i})
		}
		must.Do(t, err)
		must.Do(t, l.Close(context.Background()))
	})
}
