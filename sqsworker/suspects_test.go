package sqsworker

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// Messages that are tried again and again keep no suspect from its turn, and a suspect hides no question that fails wrongly. hosttest
// has the crashes.
func TestSuspectBesideUnavailable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err error
		at  int // of the suspect in the queue
	}{
		"claims":         {sqsonce.Unavailable(errRefused), 24},
		"wrong question": {sqsonce.UnavailableUntil(errRefused, refused), 5},
	} {
		bubble(t, setup{maxReceives: 2}, func(x *fixture) {
			for n := range 25 {
				x.send(fmt.Sprint("own", n))
				if n == c.at {
					x.send("suspect")
				}
			}
			var found, ran, others atomic.Int32
			j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
				if m.Body != "suspect" {
					until(ctx, 10*time.Second+time.Duration(others.Add(1)%10)*time.Second)
					return c.err
				}
				if found.Add(1) == 1 {
					return settle.NewSuspect(sqsonce.Unavailable(errTest), time.Now())
				}
				ran.Add(1)
				return nil
			})
			time.Sleep(10 * time.Minute)
			if ran.Load() != 1 {
				t.Errorf("%s: ran %d times, not ready: %q", name, ran.Load(), j.NotReady())
			}
			j.stopClean()
		})
	}
}
