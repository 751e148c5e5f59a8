package lambda

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
)

const maxConcurrency = "AWS_LAMBDA_MAX_CONCURRENCY"

func TestKillAt(t *testing.T) {
	for value, want := range map[string]bool{"": true, "0": true, "1": true, " 1 ": true, "2": false, "10": false, "many": false, "1.5": false} {
		t.Setenv(maxConcurrency, value)
		deadline := time.Now().Add(time.Hour)
		ctx, cancel := context.WithDeadline(t.Context(), deadline)
		defer cancel()
		f := wrap(t, func(_ context.Context, m *sqsonce.Message) error {
			if got := m.KillAt.Equal(deadline); got != want || !want && !m.KillAt.IsZero() {
				t.Errorf("%q: KillAt is %v; want the deadline: %t", value, m.KillAt, want)
			}
			return nil
		})
		t.Setenv(maxConcurrency, "5") // Wrap reads it, not the call
		invoke(t, f, ctx, batch("1"))
	}
}

func TestKillAtNeedsADeadline(t *testing.T) {
	t.Setenv(maxConcurrency, "")
	f := wrap(t, func(_ context.Context, m *sqsonce.Message) error {
		if !m.KillAt.IsZero() {
			t.Errorf("KillAt is %v without a deadline", m.KillAt)
		}
		return nil
	})
	invoke(t, f, context.Background(), batch("1"))
}

// TestSeveralInvocationsAtOnce: one process handles several events at once; each invocation has its own results.
func TestSeveralInvocationsAtOnce(t *testing.T) {
	t.Setenv(maxConcurrency, "16")
	var book logBook
	f := wrap(t, func(ctx context.Context, m *sqsonce.Message) error {
		switch m.Body[len(m.Body)-1] {
		case '3':
			return errTest
		case '5':
			panic("boom")
		case '7':
			return exits(ctx, m)
		}
		return nil
	}, func(o *Options) { o.Logger = book.logger() })
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 20 {
				var ids []string
				for k := range 10 {
					ids = append(ids, fmt.Sprintf("%d-%d-%d", i, j, k))
				}
				e := batch(ids...)
				if i%2 == 1 {
					for r := range e.Records {
						e.Records[r].EventSourceARN = fifoARN // a group each
						e.Records[r].Attributes["MessageGroupId"] = ids[r]
					}
				}
				if got, want := invoke(t, f, t.Context(), e), ids[3]+" "+ids[5]+" "+ids[7]; got != want {
					t.Errorf("failed: got %q, want %q", got, want)
				}
			}
		})
	}
	wg.Wait()
}
