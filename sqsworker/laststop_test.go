package sqsworker

import (
	"fmt"
	"slices"
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

// A head that fails again and again in a stop leaves its group before the time is over, where messages behind it are at their last
// receive.
func TestFailingHeadInStop(t *testing.T) {
	t.Parallel()
	for maxReceives, runs := range map[int]time.Duration{1: 100 * time.Millisecond, 3: time.Second, 5: 100 * time.Millisecond} {
		runParallel(t, fmt.Sprint(maxReceives), setup{fifo: true, maxReceives: maxReceives}, func(x *fixture) {
			x.send("g:1bad", "g:2", "g:3")
			for range maxReceives - 1 {
				x.receive(time.Second)
				time.Sleep(2 * time.Second)
			}
			p := &poison{took: 200 * time.Millisecond}
			j := x.start(p.handle, func(o *Options) { o.Backoff = func(int) time.Duration { return 10 * time.Minute } })
			time.Sleep(runs)
			j.stopClean()
			if dead := x.dead(); !slices.Equal(p.handled(), []string{"g:2", "g:3"}) || len(dead) != 1 || dead[0].Body != "g:1bad" || len(x.queued()) > 0 {
				x.Errorf("done: %v, dead-lettered: %+v, %d left; want those behind the head done, and the head dead-lettered", p.handled(), dead, len(x.queued()))
			}
		})
	}
}
