package sqsworker

import (
	"context"
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
