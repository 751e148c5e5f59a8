package dynamostore

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/settle"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// While DynamoDB is away, or throttles, an event whose handler has succeeded costs a request a second at most.
func TestRequestsWhileAway(t *testing.T) {
	t.Parallel()
	const away = 10 * time.Minute
	for name, rule := range map[string]fault.Rule{
		"connections break": {Prob: 1, Do: fault.Reset},
		"throttled":         {Prob: 1, Do: fault.Error, Code: "ProvisionedThroughputExceededException"},
		"denied":            {Prob: 1, Do: fault.Error, Code: "AccessDeniedException"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBed(t)
				o, err := dedup.New(b.store(), "billing")
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(context.Background(), away)
				defer cancel()
				ctx, _ = settle.New(ctx)
				sent := 0
				err = o.Handler(func(context.Context, *sqsonce.Message) error {
					b.faults(rule)
					sent = len(b.srv.Calls())
					return nil
				})(ctx, &sqsonce.Message{ID: "1", QueueARN: "arn:aws:sqs:eu-west-1:1:orders", ReceiveCount: 1})
				if !errors.Is(err, sqsonce.ErrUnavailable) {
					t.Errorf("got error %v, want ErrUnavailable", err)
				}
				if sent = len(b.srv.Calls()) - sent; sent > int(away.Seconds()) || sent < 60 {
					t.Errorf("%d requests in %s, want one a second at most", sent, away)
				}
			})
		})
	}
}

// An answer ends that: the next call is retried as before.
func TestRetriesAfterAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		s := b.store()
		l := b.acquire(s, claim("a"))
		calls := func(rule ...fault.Rule) int {
			b.faults(rule...)
			sent := len(b.srv.Calls())
			_, _ = s.Renew(t.Context(), l, lease)
			return len(b.srv.Calls()) - sent
		}
		reset := fault.Rule{Prob: 1, Do: fault.Reset}
		for i, want := range []int{maxAttempts, 1, 1} {
			if got := calls(reset); got != want {
				t.Errorf("renewal %d of an outage: %d requests, want %d", i+1, got, want)
			}
		}
		if got := calls(); got != 1 {
			t.Errorf("the outage is over: %d requests, want 1", got)
		}
		if got := calls(reset); got != maxAttempts {
			t.Errorf("the next outage: %d requests, want %d", got, maxAttempts)
		}
	})
}
