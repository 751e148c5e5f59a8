package hosttest

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// hookTally counts what the hooks of all processes of a simulation are told.
type hookTally struct{ starts, ends, calls, answers atomic.Int64 }

func (h *hookTally) handlers() sqsonce.Hooks {
	return sqsonce.Hooks{
		Start: func(ctx context.Context, _ sqsonce.Delivery) context.Context {
			h.starts.Add(1)
			_, _ = dedup.FenceFrom(ctx)
			return ctx
		},
		End: func(ctx context.Context, _ sqsonce.Delivery, _ sqsonce.Return) {
			h.ends.Add(1)
			_, _ = dedup.FenceFrom(ctx)
		},
	}
}

func (h *hookTally) worker(o *sqsworker.Options) {
	o.Hooks = append(o.Hooks, sqsworker.Hooks{
		Hooks: h.handlers(),
		Call: func(ctx context.Context, _ sqsworker.Call) (context.Context, func(sqsworker.CallResult)) {
			h.calls.Add(1)
			return ctx, func(sqsworker.CallResult) { h.answers.Add(1) }
		},
	})
}

// check checks the counts when all processes have ended.
func (h *hookTally) check(t *testing.T) {
	t.Helper()
	if starts, ends := h.starts.Load(), h.ends.Load(); starts == 0 || starts != ends {
		t.Errorf("the hooks saw %d starts of handlers and %d ends", starts, ends)
	}
	if calls, answers := h.calls.Load(), h.answers.Load(); calls != answers {
		t.Errorf("the hooks saw %d calls of SQS and %d answers", calls, answers)
	}
}
