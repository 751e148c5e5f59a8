package hosttest

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/lambda"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// hookTally counts what the hooks of all processes of a simulation are told.
type hookTally struct {
	starts, ends, calls, answers atomic.Int64
	begun, finished              atomic.Int64 // invocations
	records, outcomes            atomic.Int64 // of the invocations that finished
}

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

func (h *hookTally) function(o *lambda.Options) {
	o.Hooks = append(o.Hooks, lambda.Hooks{
		Hooks: h.handlers(),
		Begin: func(ctx context.Context, _ []*sqsonce.Message) context.Context {
			h.begun.Add(1)
			return ctx
		},
		Finish: func(_ context.Context, r lambda.Report) {
			h.finished.Add(1)
			h.records.Add(int64(r.Records))
			for _, n := range r.Outcomes {
				h.outcomes.Add(int64(n))
			}
		},
	})
}

// check checks the counts when all processes have ended.
func (h *hookTally) check(t *testing.T) {
	t.Helper()
	if starts, ends := h.starts.Load(), h.ends.Load(); starts == 0 || starts != ends {
		t.Errorf("the hooks saw %d starts of handlers and %d ends", starts, ends)
	}
	if begun, finished := h.begun.Load(), h.finished.Load(); begun != finished {
		t.Errorf("the hooks saw %d begun invocations, and %d that finished", begun, finished)
	}
	if records, outcomes := h.records.Load(), h.outcomes.Load(); records != outcomes {
		t.Errorf("the reports have %d records and %d outcomes", records, outcomes)
	}
	if calls, answers := h.calls.Load(), h.answers.Load(); calls != answers {
		t.Errorf("the hooks saw %d calls of SQS and %d answers", calls, answers)
	}
}
