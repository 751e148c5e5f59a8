package lambda

import (
	"context"
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
