package hosttest

import (
	"fmt"
	"testing"
	"time"
)

// TestBoundRestarts: for 20 min something that every message needs is down, and every worker is stopped and started again every 40 s. Nothing is
// dead-lettered, and all is done 17 min later: the delay of the fourth receive is 16 min.
func TestBoundRestarts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		load
		what   faultKind
		events int
	}{
		{load{standard, 1, 200 * time.Millisecond}, dependencyAway, 20},
		{load{standard, 5, 200 * time.Millisecond}, dependencyAway, 20},
		{load{standard, 5, 200 * time.Millisecond}, dependencyAway, 200},
		{load{standard, 5, 200 * time.Millisecond}, storeAway, 20},
		{load{fifo, 2, 200 * time.Millisecond}, dependencyAway, 40},
	} {
		t.Run(fmt.Sprintf("%s, %s, %d messages", c.load, c.what, c.events), func(t *testing.T) {
			t.Parallel()
			p := c.plan()
			p.events, p.calm = p.events[:c.events], 20*time.Minute
			for i := range p.workers {
				lives := killedEvery(30*time.Second, p.calm)
				for j := range lives {
					lives[j].killed = false
				}
				p.workers[i].lives = lives
			}
			p.faults = []window{{kind: c.what, mode: refuses, length: p.calm, host: everyone}}
			play(t, p, func(f *fleet) {
				f.wantNoneDead()
				f.wantAllDoneBy(p.calm + 17*time.Minute)
			})
		})
	}
}
