package sqsworker

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// TestTwiceInOneAnswer: one run, and one entry in the batch that deletes it.
func TestTwiceInOneAnswer(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		x.send("a", "b", "c", "d", "e")
		var r runs
		j := x.startWith(receiveFunc{x.c, func(ctx context.Context, in *sqs.ReceiveMessageInput, o ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
			in.MaxNumberOfMessages = max(1, in.MaxNumberOfMessages/2)
			out, err := x.c.ReceiveMessage(ctx, in, o...)
			if err == nil {
				out.Messages = append(out.Messages, out.Messages...)
			}
			return out, err
		}}, r.take(20*time.Second))
		time.Sleep(time.Minute)
		j.stopClean()
		x.wantEmpty()
		if s := j.Stats(); len(r.list()) != 5 || s.LeasesLost != 0 || s.Received != 10 {
			t.Errorf("%v; %+v", r.list(), s)
		}
	})
}

// TestOrphanIsWaitedFor: the lease is lost and the handler runs on. The message, received again, starts when it has
// returned.
func TestOrphanIsWaitedFor(t *testing.T) {
	for name, result := range map[string]error{"succeeds": nil, "fails": errTest} {
		t.Run(name, func(t *testing.T) {
			rule := fault.Rule{Op: opChange, Nth: 1, Do: fault.FailEntries, Code: "ReceiptHandleIsInvalid"}
			bubble(t, setup{faults: []fault.Rule{rule}}, func(x *fixture) {
				x.send("a")
				var r runs
				j := x.start(func(_ context.Context, m *sqsonce.Message) error {
					defer r.begin(m.Body)()
					if m.ReceiveCount == 1 {
						time.Sleep(2 * time.Minute) // ignores its context
						return result
					}
					return nil
				})
				time.Sleep(3 * time.Minute)
				j.stopClean()
				x.wantEmpty()
				want := 2
				if result == nil {
					want = 1 // done: the second delivery is deleted
				}
				if len(r.list()) != want || len(r.twice) != 0 {
					t.Errorf("%d runs, at once: %v; want %d, none", len(r.list()), r.twice, want)
				}
			})
		})
	}
}

// TestTakenOverEventChangesNothing: middleware says that another delivery took the event over while the handler ran. The
// message belongs to that delivery, whatever else the handler made of the error: it is neither deleted nor changed, and
// comes back when its visibility timeout ends.
func TestTakenOverEventChangesNothing(t *testing.T) {
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
