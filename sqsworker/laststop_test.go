package sqsworker

import (
	"fmt"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
)

// In a stop what would go to the dead-letter queue unrun is tried again while there is time: what was unavailable before the stop or
// is in it, and what is behind it.
func TestUnavailableAtLastReceiveInStop(t *testing.T) {
	t.Parallel()
	for _, asks := range []bool{false, true} {
		for _, fifo := range []bool{false, true} {
			for _, runs := range []time.Duration{100 * time.Millisecond, 10 * time.Minute} {
				runParallel(t, fmt.Sprintf("asks=%t/fifo=%t/after %s", asks, fifo, runs), setup{fifo: fifo, maxReceives: 1}, func(x *fixture) {
					d := dependency{asks: asks}
					d.set(sqsonce.Unavailable(errRefused))
					x.send("a:1", "a:2", "b:1")
					j := x.start(d.handle)
					time.Sleep(runs)
					j.cancel()
					time.Sleep(5 * time.Second)
					d.set(nil)
					if err := j.wait(); err != nil || d.handled() != 3 {
						x.Errorf("%d of 3 handled, Run: %v", d.handled(), err)
					}
				})
			}
		}
	}
}
