package sqsworker

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

func TestEntryResults(t *testing.T) {
	t.Parallel()
	failed := []sqstypes.BatchResultErrorEntry{{Id: aws.String("2"), Code: aws.String("InternalError")}, {Id: aws.String("99")}}
	got := newResults(4, nil)
	for _, id := range []*string{aws.String("1"), nil, aws.String("x"), aws.String("-1")} {
		got.succeeded(id)
	}
	got.failed(failed)
	if got[1] != nil || errorCode(got[2]) != "InternalError" {
		t.Errorf("answered entries: %v", got)
	}
	if !errors.Is(got[0], errMissing) || !errors.Is(got[3], errMissing) {
		t.Errorf("entries that the answer does not name: got %v, want errors", got)
	}
	for _, err := range newResults(2, errTest) {
		if !errors.Is(err, errTest) {
			t.Errorf("failed call: %v", err)
		}
	}
}

// TestReleaseWaitsForTheExtension: an extension under way reaches SQS at 18 s. A release sent at 16 s would be undone by
// it, and the message hidden until 48 s.
func TestReleaseWaitsForTheExtension(t *testing.T) {
	rule := fault.Rule{Op: opChange, Nth: 1, Do: fault.Delay, Delay: 3 * time.Second}
	bubble(t, setup{faults: []fault.Rule{rule}}, func(x *fixture) {
		x.send("a")
		again := make(chan time.Time, 1)
		began := time.Now()
		j := x.start(func(_ context.Context, m *sqsonce.Message) error {
			if m.ReceiveCount > 1 {
				again <- time.Now()
				return nil
			}
			time.Sleep(16 * time.Second)
			return sqsonce.RetryAfter(10*time.Second, errTest)
		})
		if took := (<-again).Sub(began); took > 30*time.Second {
			t.Errorf("came back after %s, want 10 s after the extension's answer", took)
		}
		j.stopClean()
	})
}

// TestOrphanIsWaitedFor: the lease is lost while the handler runs on; the message, received again, does not run beside it.
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
