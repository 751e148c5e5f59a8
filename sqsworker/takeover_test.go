package sqsworker

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
)

// The middleware says that another delivery took the event over while the handler ran: the message is that delivery's,
// whatever else the handler made of its error. It is neither deleted nor changed, and comes back by itself.
func TestEventTakenOverLeavesTheMessageAlone(t *testing.T) {
	for _, fifo := range []bool{false, true} {
		for name, err := range map[string]error{
			"plain":  sqsonce.ErrLeaseLost,
			"reject": sqsonce.Reject(fmt.Errorf("giving up: %w", sqsonce.ErrLeaseLost)),
			"retry":  sqsonce.RetryAfter(time.Second, sqsonce.ErrLeaseLost),
		} {
			t.Run(fmt.Sprintf("%s fifo=%t", name, fifo), func(t *testing.T) {
				bubble(t, setup{fifo: fifo, maxReceives: 5}, func(x *fixture) {
					x.send("g:1", "g:2")
					var r runs
					begin := time.Now()
					var again time.Duration
					j := x.start(func(_ context.Context, m *sqsonce.Message) error {
						defer r.begin(m.Body)()
						if m.Body != "g:1" {
							return nil
						}
						if m.ReceiveCount == 1 {
							return err
						}
						again = time.Since(begin)
						return nil
					}, func(o *Options) { o.Visibility = 30 * time.Second })
					time.Sleep(2 * time.Minute)
					j.stopClean()
					x.wantEmpty()
					if again < 30*time.Second || again > 31*time.Second {
						t.Errorf("came back after %s, want at the end of its visibility timeout of 30s", again)
					}
					if n := x.calls("ChangeMessageVisibilityBatch"); n != 0 {
						t.Errorf("%d visibility changes, want none", n)
					}
					if s := j.Stats(); s.Failed != 0 || s.Rejected != 0 || s.LeasesLost != 1 || r.count("g:1") != 2 || r.count("g:2") != 1 {
						t.Errorf("%v; %+v", r.list(), s)
					}
				})
			})
		}
	}
}
