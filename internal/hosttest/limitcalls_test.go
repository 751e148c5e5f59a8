package hosttest

import (
	"fmt"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/limit"
)

// TestBoundCallsOfLimiters is bound 6 with a limiter whose Counter is in the store: no message gets past the limiter to tell the worker that
// the store is down.
func TestBoundCallsOfLimiters(t *testing.T) {
	t.Parallel()
	slots, rate := limit.Plan{Concurrency: 3}, limit.Plan{Rate: limit.Rate{N: 5}}
	for _, c := range []struct {
		load
		policy  limit.CounterPolicy
		plan    limit.Plan
		byGroup bool
		held    int
	}{
		{load{fifo, 2, 5 * time.Second}, limit.OnCounterDownStop, rate, false, 30},
		{load{fifo, 2, 5 * time.Second}, limit.OnCounterDownKeepShare, slots, true, 8},
		{load{standard, 2, 5 * time.Second}, limit.OnCounterDownStop, slots, true, 30},
		{load{standard, 2, 5 * time.Second}, limit.OnCounterDownKeepShare, slots, true, 100},
		{load{standard, 2, 5 * time.Second}, limit.OnCounterDownKeepShare, rate, false, 30},
	} {
		t.Run(fmt.Sprintf("%s, policy %d, %s, by group %t, MaxHeld %d", c.load, c.policy, c.plan, c.byGroup, c.held), func(t *testing.T) {
			t.Parallel()
			p := c.load.plan()
			p.limiter = &limitPlan{
				counter: recordsCounter, policy: c.policy, byGroup: c.byGroup, plans: [2]limit.Plan{c.plan, c.plan}, shrinks: toTheEnd, held: c.held,
			}
			w := window{kind: storeAway, mode: refuses, length: 10 * time.Minute, host: everyone}
			p.faults, p.calm = []window{w}, w.end()
			play(t, p, (*fleet).wantNoneDead)
		})
	}
}
